/** Volumes that show a pod what is known of itself. Source: docs/behaviour/pod-volumes.md 3. */
import { resources } from "@longshore/kube";
import type { VolumePlugin } from "../../framework/volume-plugin.ts";
import { type FilesOf, filesPlugin } from "../pod-files/files-plugin.ts";
import { type Payload, usualMode } from "../pod-files/payload.ts";
import { type DownwardApi, downwardApiPayload } from "./downward-api-payload.ts";

/** The plugin `kubernetes.io/downward-api`. */
export function downwardApiPlugin(): VolumePlugin {
  return filesPlugin({
    pluginName: "kubernetes.io/downward-api",
    source: "downwardAPI",
    followsPod: () => true,
    payload(of) {
      const { items = [], defaultMode = usualMode } = of.volume.volume.downwardAPI ?? {};
      return downwardApiFiles(of, items, defaultMode);
    },
  });
}

/** The files of a list of items, for a volume of their own or a part of one. @throws PayloadError */
export function downwardApiFiles(
  { volume, volumeHost, signal }: FilesOf,
  items: DownwardApi["items"],
  defaultMode: number,
): Promise<Payload> {
  const { kube, kubelet } = volumeHost;
  const node = () => kube.get(resources.nodes, { name: kubelet?.nodeName ?? "" }, { signal });
  return downwardApiPayload({ pod: volume.pod, items, defaultMode, node });
}
