/** The text of the Multi-Attach event. It names pods of the same namespace only. Source: docs/behaviour/controllers.md A7. */
import type { Pod } from "@longshore/kube";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";

/** The event message for `pod` about a volume that other pods use on other nodes. */
export function multiAttachMessage(spec: VolumeSpec, pod: Pod, otherPods: readonly Pod[]): string {
  const prefix = `Multi-Attach error for volume "${specName(spec)}"`;
  if (otherPods.length === 0) {
    return `${prefix} Volume is already exclusively attached to one node and can't be attached to another`;
  }
  const namespace = pod.metadata?.namespace;
  const names = otherPods
    .filter((other) => other.metadata?.namespace === namespace)
    .map((other) => other.metadata?.name ?? "");
  const elsewhere = otherPods.length - names.length;
  if (names.length === 0) {
    return `${prefix} Volume is already used by ${elsewhere} pod(s) in different namespaces`;
  }
  const more = elsewhere > 0 ? ` and ${elsewhere} pod(s) in different namespaces` : "";
  return `${prefix} Volume is already used by pod(s) ${names.join(", ")}${more}`;
}
