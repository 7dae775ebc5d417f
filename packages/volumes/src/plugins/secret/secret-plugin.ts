/** Volumes that hold the keys of a Secret as files. Source: docs/behaviour/pod-volumes.md 3. */
import type { VolumePlugin } from "../../framework/volume-plugin.ts";
import { filesPlugin } from "../pod-files/files-plugin.ts";
import { secretPayload } from "../pod-files/object-payloads.ts";
import { selectionOf } from "../pod-files/payload.ts";

/** The plugin `kubernetes.io/secret`. */
export function secretPlugin(): VolumePlugin {
  return filesPlugin({
    pluginName: "kubernetes.io/secret",
    source: "secret",
    isSecret: true,
    payload(of) {
      const { secret } = of.volume.volume;
      return secretPayload(of, secret?.secretName ?? "", selectionOf(secret), of.signal);
    },
  });
}
