/** Volumes that hold the keys of a ConfigMap as files. Source: docs/behaviour/pod-volumes.md 3. */
import type { VolumePlugin } from "../../framework/volume-plugin.ts";
import { filesPlugin } from "../pod-files/files-plugin.ts";
import { configMapPayload } from "../pod-files/object-payloads.ts";
import { selectionOf } from "../pod-files/payload.ts";

/** The plugin `kubernetes.io/configmap`. */
export function configMapPlugin(): VolumePlugin {
  return filesPlugin({
    pluginName: "kubernetes.io/configmap",
    source: "configMap",
    payload(of) {
      const { configMap } = of.volume.volume;
      return configMapPayload(of, configMap?.name ?? "", selectionOf(configMap), of.signal);
    },
  });
}
