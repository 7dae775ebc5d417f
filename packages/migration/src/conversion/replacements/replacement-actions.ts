/** The writes of a replacement: each one request, which fails where the object is not the one that was observed. */
import { join } from "node:path";
import type { KubeObject } from "@longshore/kube";
import { unitName } from "../units/unit-journal.ts";
import type { UnitKind, UnitPlaces } from "../units/unit-run.ts";
import { decideReplacementStep } from "./decide-replacement-step.ts";
import { observeReplacement, refOf, replacedResource } from "./observe-replacement.ts";
import { defaultMarksPatch, isDefaultClass, replacedObject } from "./replaced-form.ts";
import type {
  PlannedReplacement,
  ReplacementJournal,
  ReplacementObservation,
  ReplacementStep,
} from "./replacement-types.ts";

type Actions = UnitKind<ReplacementStep, ReplacementJournal, ReplacementObservation>["actions"];

const actions: Actions = {
  "save object": async (places, { planned }, { from }) => {
    if (from === undefined) return undefined;
    const { kind, after } = planned;
    const { apiVersion = "" } = after;
    const before: KubeObject = { ...from, apiVersion, kind };
    await saveFile(places, planned, before);
    // Of two objects the one that stays is made from itself, not from this one.
    const isSame = after.metadata?.name === planned.name;
    return {
      planned: { ...planned, before, ...(isSame ? { after: replacedObject(kind, before, after) } : {}) },
    };
  },
  "delete old object": async ({ kube }, { planned }, { from }, signal) => {
    if (from === undefined) return undefined;
    const { uid, resourceVersion } = from.metadata;
    await kube.delete(replacedResource(planned.kind), refOf(planned, planned.name), {
      uid,
      resourceVersion,
      // A class has no dependents that a collector would have to leave.
      propagationPolicy: planned.kind === "StatefulSet" ? "Orphan" : "Background",
      signal,
    });
    return undefined;
  },
  "create new object": async ({ kube }, { planned }, _seen, signal) => {
    await kube.create(replacedResource(planned.kind), planned.after, { signal });
    return undefined;
  },
  "hand default over": async ({ kube }, { planned }, { from, to }, signal) => {
    // First the new one: a claim in between is refused by the server, where one without a class would stay without.
    const isToNew = to !== undefined && isDefaultClass(planned.after) && !isDefaultClass(to);
    const object = isToNew ? to : from;
    if (object === undefined) return undefined;
    const { uid, resourceVersion } = object.metadata;
    const body = { metadata: { uid, resourceVersion, annotations: defaultMarksPatch(isToNew) } };
    const ref = refOf(planned, object.metadata.name);
    await kube.patch(replacedResource(planned.kind), ref, { type: "merge", body }, { signal });
    return undefined;
  },
};

/** How classes and StatefulSets are replaced. */
export const replacementKind: UnitKind<ReplacementStep, ReplacementJournal, ReplacementObservation> = {
  observe: observeReplacement,
  decide: decideReplacementStep,
  actions,
  dangerous: new Set<ReplacementStep>(["delete old object"]),
};

/** The first one that is saved stays: what a later run finds is younger. */
async function saveFile(
  { host, backupDir }: UnitPlaces,
  { key, kind }: PlannedReplacement,
  object: KubeObject,
): Promise<void> {
  if (backupDir === undefined) return;
  const dir = join(backupDir, unitName(key));
  await host.makeDirectory(dir);
  const path = join(dir, `${kind.toLowerCase()}.json`);
  if ((await host.stat(path)) !== undefined) return;
  await host.writeFileAtomic(path, `${JSON.stringify(object, undefined, 2)}\n`, { mode: 0o600 });
}
