/** The scripts that convert the volumes of a plan, and put them back, by commands of kubectl, one after the other. Pure. */
import type { PersistentVolume } from "@longshore/kube";
import { shellWord } from "@longshore/runtime";
import type { ConversionDirection, PlannedVolume, ScaledWorkload } from "../conversion-types.ts";
import { replacementScript, type ScriptedReplacement } from "./replacement-script.ts";
import { scriptStart } from "./script-start.ts";
import { undoFunctions } from "./undo-functions.ts";

/** A volume with the directory, beside the script, that has its files. */
export interface ScriptedVolume {
  readonly planned: PlannedVolume;
  readonly directory: string;
}

/** Files of a volume from which the script of a direction creates the objects. */
export const manifestsOf = {
  convert: { volume: "volume.yaml", claim: "claim.yaml" },
  undo: { volume: "undo-volume.yaml", claim: "undo-claim.yaml" },
} as const;

const purposes: Readonly<Record<ConversionDirection, string>> = {
  convert: "Puts a PersistentVolume of a CSI driver in the place of each volume below, on the same disk.",
  undo: "Puts each volume below back in the place of the PersistentVolume of a CSI driver that it became, on the same disk.",
};

/** The script. Volumes of one workload are carried together, while it has no replicas. */
export function conversionScript(
  volumes: readonly ScriptedVolume[],
  direction: ConversionDirection,
  objects: readonly ScriptedReplacement[] = [],
): string {
  const isUndo = direction === "undo";
  const groups = groupsOf(volumes);
  let count = 0;
  const parts = groups.map(({ members, workloads }) => {
    const numbered = members.map((volume) => ({ volume, name: `volume_${++count}` }));
    return [
      ...numbered.map(({ volume, name }) => functionOf(name, volume, direction)),
      ...(isUndo ? numbered.map(({ name }) => `${name}\ncheck_accepted`) : []),
      ...scaleDown(
        workloads,
        numbered.map(({ name }) => name),
      ),
      ...numbered.map(
        ({ name }) =>
          `say "${name.slice("volume_".length)} of ${volumes.length}"\n${name}\n${isUndo ? "identify\n" : ""}convert`,
      ),
      ...workloads.map(
        ({ kind, namespace, name, replicas }) =>
          `scale_up ${words(kind.toLowerCase(), namespace, name, String(replicas))}`,
      ),
    ].join("\n");
  });
  const volumesText = volumes.length === 1 ? "1 volume" : `${volumes.length} volumes`;
  const objectsText = objects.length === 0 ? "" : `, ${objects.length} classes and StatefulSets`;
  const functions = isUndo ? undoFunctions.slice(undoFunctions.indexOf("\n")) : "";
  const start = `${scriptStart.replace("PURPOSE", purposes[direction])}${functions}`;
  const end = `say ${shellWord(`done: ${volumesText}${objectsText}`)}\n`;
  return `${start}\n${parts.join("\n\n")}\n${replacementScript(objects)}\n${end}`;
}

/** Not again once all the volumes are converted. */
function scaleDown(workloads: readonly ScaledWorkload[], volumes: readonly string[]): readonly string[] {
  if (workloads.length === 0) return [];
  const calls = workloads.map(
    ({ kind, namespace, name, uid }) => `  scale_down ${words(kind.toLowerCase(), namespace, name, uid)}`,
  );
  return [`if any_left ${volumes.join(" ")}; then`, ...calls, "fi"];
}

function functionOf(
  name: string,
  { planned, directory }: ScriptedVolume,
  direction: ConversionDirection,
): string {
  const { claim, fromBefore, toAfter } = planned;
  const isUndo = direction === "undo";
  const [from, to] = isUndo ? [toAfter, fromBefore] : [fromBefore, toAfter];
  const source = sourceOf(to, from);
  const variables = {
    dir: directory,
    saved: isUndo ? `${directory}-undo` : directory,
    volume_file: manifestsOf[direction].volume,
    claim_file: manifestsOf[direction].claim,
    old: from.metadata?.name ?? "",
    ...(isUndo ? undoVariables(planned) : { old_uid: planned.volumeUid, claim_uid: claim.uid }),
    new: to.metadata?.name ?? "",
    new_path: source.path,
    new_source: source.words,
    namespace: claim.namespace,
    claim: claim.name,
    policy: planned.policy,
  };
  const lines = Object.entries(variables).map(([variable, value]) => `  ${variable}=${shellWord(value)}`);
  return `${name}() {\n${lines.join("\n")}\n}`;
}

/** By which the objects of a conversion are known: their UIDs are not. */
function undoVariables({ claimBefore, fromBefore, toAfter }: PlannedVolume) {
  const { path, words: text } = sourceOf(toAfter, fromBefore);
  return {
    old_path: path,
    old_source: text,
    capacity: String(fromBefore.spec?.capacity?.storage ?? ""),
    size: String(claimBefore.spec?.resources?.requests?.storage ?? ""),
  };
}

/** Words of the source that say which disk it is, and how jsonpath prints them: driver and handle, or all of an in-tree source. */
function sourceOf(
  { spec }: PersistentVolume,
  other: PersistentVolume,
): { readonly path: string; readonly words: string } {
  if (spec?.csi != null) {
    const { driver, volumeHandle } = spec.csi;
    return { path: "{.spec.csi.driver} {.spec.csi.volumeHandle}", words: `${driver} ${volumeHandle}` };
  }
  const found = Object.entries(spec ?? {})
    // What both have is not the source.
    .filter(([member, value]) => isMap(value) && !(member in (other.spec ?? {})))
    .flatMap(([member, value]) =>
      Object.entries(value as object)
        .filter(([field, word]) => /^\w+$/.test(field) && typeof word === "string" && word !== "")
        .map(([field, word]) => ({ path: `{.spec.${member}.${field}}`, word: String(word) })),
    );
  return {
    path: found.map(({ path }) => path).join(" "),
    words: found.map(({ word }) => word).join(" "),
  };
}

const isMap = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const words = (...all: readonly string[]): string => all.map(shellWord).join(" ");

interface Group {
  readonly members: readonly ScriptedVolume[];
  readonly workloads: readonly ScaledWorkload[];
}

interface GrowingGroup {
  readonly members: ScriptedVolume[];
  readonly workloads: Map<string, ScaledWorkload>;
}

/** Volumes that share a workload, also by way of others, in the order of the first of them. */
function groupsOf(volumes: readonly ScriptedVolume[]): readonly Group[] {
  const groups = new Set<GrowingGroup>();
  const groupOf = new Map<string, GrowingGroup>();
  for (const volume of volumes) {
    const { workloads } = volume.planned;
    const [first, ...others] = new Set(workloads.flatMap(({ uid }) => groupOf.get(uid) ?? []));
    const group: GrowingGroup = first ?? { members: [], workloads: new Map() };
    groups.add(group);
    for (const other of others) {
      group.members.push(...other.members);
      for (const [uid, workload] of other.workloads) group.workloads.set(uid, workload);
      groups.delete(other);
    }
    group.members.push(volume);
    for (const workload of workloads) group.workloads.set(workload.uid, workload);
    for (const uid of group.workloads.keys()) groupOf.set(uid, group);
  }
  return [...groups].map(({ members, workloads }) => ({ members, workloads: [...workloads.values()] }));
}
