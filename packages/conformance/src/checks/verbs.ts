/**
 * How binding the sentence behind a check is. Only what the specification says with MUST fails a driver; the table
 * names the others. A check that is not in it is a MUST.
 */
import type { Verb } from "../check-result.ts";

/** SHOULD: the specification recommends it. ADVICE: it leaves this open, and the suite recommends it. */
const weaker: Readonly<Record<string, Verb>> = {
  // OK for a volume that is large enough already is a recommendation.
  "controller.expand-volume.already-larger": "SHOULD",
  // A list over several pages is no consistent view: a volume may be missed while others go away.
  "controller.list-volumes.paging-while-deleting": "ADVICE",
  // Not to send a negative number is the duty of the CO.
  "controller.create-volume.negative-size": "ADVICE",
  "controller.expand-volume.negative-size": "ADVICE",
  "controller.list-volumes.negative-max-entries": "ADVICE",
  "controller.list-snapshots.negative-max-entries": "ADVICE",
  // Absolute paths are the duty of the CO, too; no code is named for others.
  "node.stage-volume.relative-path": "ADVICE",
  "node.publish-volume.relative-path": "ADVICE",
  // The tables of errors have no line for a source that does not exist.
  "controller.create-snapshot.unknown-source": "ADVICE",
  "group-controller.create-group-snapshot.unknown-source": "ADVICE",
  // A plugin must delete the path that it made; this one was made by the check.
  "node.unpublish-volume.removes-empty-target": "ADVICE",
  // NOT_FOUND is for a volume_id that is not known, not for a path.
  "node.expand-volume.unknown-path": "ADVICE",
  // A CO calls nothing that is not declared, and nothing is said of a capability that no call can show.
  "controller.capabilities.undeclared-refused": "ADVICE",
  "node.capabilities.undeclared-refused": "ADVICE",
  "controller.capabilities.condition-reported": "ADVICE",
  // A later version of the specification may have kinds that this one does not know.
  "identity.plugin-capabilities.known": "ADVICE",
  "controller.capabilities.known": "ADVICE",
  "group-controller.capabilities.known": "ADVICE",
  "node.capabilities.known": "ADVICE",
};

/** The verb of a check, by its id. */
export function verbOf(id: string): Verb {
  return weaker[id] ?? "MUST";
}
