/**
 * Whether a node's `status.volumesAttached` and its record of uncertain volumes have to be written. Pure.
 * Source: docs/behaviour/controllers.md A8.
 */
import type { Node } from "@longshore/kube";
import { uncertainVolumesAnnotation } from "@longshore/storage";
import type { NodeReport } from "../actual-state.ts";

/** One node as the caches show it, and what its status should say. */
export interface ObservedNodeStatus {
  readonly nodeName: string;
  /** Undefined: there is no such node. */
  readonly node: Node | undefined;
  readonly report: NodeReport;
  /** The report has changed since it was written. */
  readonly isDirty: boolean;
}

/** The next step for one node. */
export type NodeStatusStep =
  | { readonly step: "write"; readonly nodeName: string; readonly report: NodeReport }
  /** There is nothing to write to: what waits for the write goes on. */
  | { readonly step: "countAsWritten"; readonly nodeName: string; readonly version: number }
  | { readonly step: "settle" };

/**
 * Decides. A status that says something else than the report is written too: another writer, or a node object that was
 * created again, has lost what it said.
 */
export function decideNodeStatus({ nodeName, node, report, isDirty }: ObservedNodeStatus): NodeStatusStep {
  if (node === undefined) {
    return isDirty ? { step: "countAsWritten", nodeName, version: report.version } : { step: "settle" };
  }
  if (isDirty || !statusMatches(node, report)) return { step: "write", nodeName, report };
  return { step: "settle" };
}

function statusMatches(node: Node, { listed, record }: NodeReport): boolean {
  if (node.metadata?.annotations?.[uncertainVolumesAnnotation] !== record) return false;
  const attached = node.status?.volumesAttached ?? [];
  if (attached.length !== listed.length) return false;
  const paths = new Map(attached.map(({ name, devicePath }) => [name, devicePath]));
  return listed.every(({ name, devicePath }) => paths.get(name) === devicePath);
}
