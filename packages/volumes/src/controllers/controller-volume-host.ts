/** What a volume plugin gets of a controller of the control plane. Source: docs/behaviour/volume-plugins.md 2. */
import { type KubeEnv, resources } from "@longshore/kube";
import type { VolumeHost } from "../framework/volume-host.ts";

/** The host of plugins over the controller's seams: CSIDrivers are read live. */
export function controllerVolumeHost({ clock, random, logger, meter, kube }: KubeEnv): VolumeHost {
  return {
    clock,
    random,
    logger,
    meter,
    kube,
    csiDriver: (name, signal) => kube.get(resources.csiDrivers, { name }, { signal }),
  };
}
