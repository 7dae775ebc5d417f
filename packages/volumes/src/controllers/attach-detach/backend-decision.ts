/**
 * The agreement between controller and kubelet: who attaches a volume of a plugin that can migrate,
 * on this node, the in-tree code or CSI? Pure. Source: docs/behaviour/controllers.md A5, both tables.
 *
 *     CSINode   lists the plugin   controller's gates   decision
 *     missing   –                  any                  in-tree; unknown if the driver is at work there
 *     exists    no                 any                  in-tree
 *     exists    yes                on                   CSI; error while the driver is not on the node
 *     exists    yes                off                  error
 *
 * With the plugin's Complete gate the node is not asked: CSI. `compat` behaves like Kubernetes 1.20:
 * gates off is in-tree without asking the node, a missing CSINode is an error.
 */
import type { CSINode } from "@longshore/kube";
import { migratedPluginsOf } from "@longshore/storage";

/** What the controller's gates say of the plugin. */
export type GateState = "off" | "on" | "complete";

/** Everything that affects the decision. */
export interface BackendQuestion {
  readonly inTreePlugin: string;
  readonly driver: string;
  readonly nodeName: string;
  readonly gates: GateState;
  /** As just read from the API server; undefined only when that answered 404. */
  readonly csiNode: CSINode | undefined;
  /** Whether VolumeAttachments join the node to the driver. */
  readonly driverHasAttachments: boolean;
  readonly compat: boolean;
}

/** The decision. */
export type BackendDecision =
  | { readonly kind: "in-tree" }
  | { readonly kind: "csi" }
  /** Nothing is attached until this changes. */
  | { readonly kind: "error"; readonly message: string };

/** Whether the decision needs the node's CSINode at all. */
export function needsCsiNode(gates: GateState, compat: boolean): boolean {
  return gates === "on" || (gates === "off" && !compat);
}

/** Decides. */
export function decideBackend(question: BackendQuestion): BackendDecision {
  const { inTreePlugin, driver, nodeName, gates, csiNode, compat } = question;
  if (gates === "complete") return { kind: "csi" };
  if (gates === "off" && compat) return { kind: "in-tree" };
  if (csiNode === undefined) {
    if (compat) return error(`csinode.storage.k8s.io "${nodeName}" not found`);
    if (!question.driverHasAttachments) return { kind: "in-tree" };
    return error(
      `CSINode "${nodeName}" is missing although driver ${driver} has VolumeAttachments on that node: ` +
        "who is responsible is unknown until the kubelet has written its CSINode again",
    );
  }
  if (!listsPlugin(csiNode, inTreePlugin)) return { kind: "in-tree" };
  if (gates === "off") {
    return error(
      `in-tree plugin ${inTreePlugin} is migrated on node ${nodeName} but its migration to ${driver} is not ` +
        "enabled in the controller: enable it there, or drain the node and disable it on the node",
    );
  }
  if (!(csiNode.spec.drivers ?? []).some(({ name }) => name === driver)) {
    return error(
      `in-tree plugin ${inTreePlugin} is migrated on node ${nodeName} but driver ${driver} is not installed`,
    );
  }
  return { kind: "csi" };
}

/** Whether the CSINode lists the plugin. */
export function listsPlugin(csiNode: CSINode, inTreePlugin: string): boolean {
  return migratedPluginsOf(csiNode).has(inTreePlugin);
}

function error(message: string): BackendDecision {
  return { kind: "error", message };
}
