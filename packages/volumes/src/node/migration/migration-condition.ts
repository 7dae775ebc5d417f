/** What a node says about plugins that are not yet on the way that the gates want. Source: docs/behaviour/node-agent.md 2.4. */
import { apiTime, type NodeCondition } from "@longshore/kube";
import { migrationPendingCondition } from "@longshore/storage";
import type { VolumePath } from "../volume-manager/volume-paths.ts";

/** A plugin, its way, and what holds it there. */
export interface PluginPath {
  readonly inTreeName: string;
  readonly wanted: VolumePath;
  readonly path: VolumePath;
  /** Names of the volumes that hold it. */
  readonly heldBy: readonly string[];
}

/** The condition at `now`; the time of its last transition is taken over from `before` where its status is the same. */
export function migrationCondition(
  plugins: readonly PluginPath[],
  before: NodeCondition | undefined,
  now: Date,
): NodeCondition {
  const held = plugins.filter(({ path, wanted }) => path !== wanted);
  const status = held.length > 0 ? "True" : "False";
  const time = apiTime(now);
  return {
    type: migrationPendingCondition,
    status,
    reason: held.length > 0 ? "VolumesOnOldPath" : "NothingPending",
    message:
      held.length > 0 ? held.map(heldMessage).join("; ") : "every plugin is on the path that the gates want",
    lastHeartbeatTime: time,
    lastTransitionTime: before?.status === status ? (before.lastTransitionTime ?? time) : time,
  };
}

function heldMessage({ inTreeName, path, wanted, heldBy }: PluginPath): string {
  const shown = heldBy.slice(0, 3).join(", ");
  const more = heldBy.length > 3 ? ` and ${heldBy.length - 3} more` : "";
  return `${inTreeName} stays on ${path} although the gates want ${wanted}, until these volumes are unmounted and detached (drain the node): ${shown}${more}`;
}

/** The message of the event for a plugin that has changed over. */
export function switchedMessage({ inTreeName, path }: Pick<PluginPath, "inTreeName" | "path">): string {
  return `${inTreeName} changed over to ${path}: none of its volumes was left on the other path`;
}
