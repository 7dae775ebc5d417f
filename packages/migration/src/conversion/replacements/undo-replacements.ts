/** What an undo of a replacement does: the same the other way round, from what the journal of the first one holds. Pure. */
import type { KubeObject, Stored } from "@longshore/kube";
import type { Refusal } from "../conversion-types.ts";
import { authoredMetadata, differencesOf } from "../objects/differences.ts";
import { hasBegun } from "../units/unit-run.ts";
import { replacedObject } from "./replaced-form.ts";
import { newNameOf, type PlannedReplacement, type ReplacementJournal } from "./replacement-types.ts";

/**
 * The way back of one journal. @param now the object that the conversion has made, or was to make
 * @param users StatefulSets that stay and name the class in their templates
 */
export function undoOfReplacement(
  journal: ReplacementJournal,
  now: Stored<KubeObject> | undefined,
  users: readonly string[] = [],
): PlannedReplacement | { readonly refusals: readonly Refusal[] } {
  const { planned } = journal;
  const { kind, key } = planned;
  const isOpen = journal.finishedAt === undefined;
  const isBeside = newNameOf(planned) !== planned.name;
  const refusal = refusalOf(journal, now, users);
  if (refusal !== undefined) return { refusals: [refusal] };
  const before: KubeObject =
    now === undefined ? planned.after : { ...now, apiVersion: planned.after.apiVersion ?? "", kind };
  const original = { ...planned.before, metadata: authoredMetadata(planned.before.metadata) } as KubeObject;
  const after = isBeside ? original : replacedObject(kind, before, original);
  return {
    key,
    kind,
    ...(planned.namespace === undefined ? {} : { namespace: planned.namespace }),
    name: newNameOf(planned),
    uid: now?.metadata.uid ?? "",
    before,
    after,
    keepsOld: false,
    deletionBegun: isOpen && !isBeside && (planned.deletionBegun || hasBegun(journal, "delete old object")),
    differences: differencesOf(before, after, {}),
    owners: planned.owners,
  };
}

function refusalOf(
  journal: ReplacementJournal,
  now: Stored<KubeObject> | undefined,
  users: readonly string[],
): Refusal | undefined {
  const { planned } = journal;
  const object = planned.key;
  if (users.length > 0) {
    return {
      code: "owner-needs-action",
      object,
      reason: `templates of ${users.join(", ")} name ${newNameOf(planned)}`,
      remedy: "undo these as well: `templates`",
    };
  }
  if (journal.finishedAt === undefined) return undefined;
  const isBeside = newNameOf(planned) !== planned.name;
  if (now !== undefined || isBeside) return undefined;
  const remedy = "create it from the saved object, if it is wanted";
  return { code: "changed-by-others", object, reason: "it is gone since its conversion", remedy };
}
