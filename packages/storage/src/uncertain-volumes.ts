/**
 * The record of volumes that may be attached to a node although its `status.volumesAttached` does not list
 * them: an attach or a detach is under way, or how it ended is not known. `volumesAttached` is emptied
 * before the detach, so alone it says too early that nothing is attached (docs/behaviour/controllers.md A7).
 *
 * The attach/detach controller writes the record together with `volumesAttached`, in one request: a volume
 * that an in-tree plugin, its CSI driver or a Flexvolume driver may have attached is in one of the two at any time. A Node that was deleted
 * takes both with it: its agent makes it again with a record of the Flexvolumes that it has found mounted.
 */
import type { Node } from "@longshore/kube";
import { changingOverAnnotation, uncertainVolumesAnnotation } from "./well-known.ts";

/** Unique names of the volumes that may be attached to the node, besides those that its status lists. */
export function uncertainVolumesOf(node: Node | undefined): readonly string[] {
  const text = node?.metadata?.annotations?.[uncertainVolumesAnnotation] ?? "";
  return text.split("\n").filter((name) => name !== "");
}

/** The value of the annotation, or undefined when there is none: one unique name a line, since names have commas and spaces. */
export function uncertainVolumesText(uniqueNames: readonly string[]): string | undefined {
  return uniqueNames.length === 0 ? undefined : [...uniqueNames].sort().join("\n");
}

/** The in-tree plugins that the node's agent is about to hand over to CSI. */
export function pluginsChangingOver(node: Node | undefined): readonly string[] {
  const text = node?.metadata?.annotations?.[changingOverAnnotation] ?? "";
  return text.split(",").filter((name) => name !== "");
}
