/** The script that converts the volumes of a plan by commands of kubectl, one after the other. Pure. */
import { shellWord } from "@longshore/runtime";
import type { PlannedVolume, ScaledWorkload } from "../conversion-types.ts";
import { replacementScript, type ScriptedReplacement } from "./replacement-script.ts";
import { scriptStart } from "./script-start.ts";

/** A volume with the directory, beside the script, that has its files. */
export interface ScriptedVolume {
  readonly planned: PlannedVolume;
  readonly directory: string;
}

/** The script. Volumes of one workload are converted together, while it has no replicas. */
export function conversionScript(
  volumes: readonly ScriptedVolume[],
  objects: readonly ScriptedReplacement[] = [],
): string {
  const groups = groupsOf(volumes);
  let count = 0;
  const parts = groups.map(({ members, workloads }) => {
    const numbered = members.map((volume) => ({ volume, name: `volume_${++count}` }));
    return [
      ...numbered.map(({ volume, name }) => functionOf(name, volume)),
      ...scaleDown(
        workloads,
        numbered.map(({ name }) => name),
      ),
      ...numbered.map(
        ({ name }) => `say "${name.slice("volume_".length)} of ${volumes.length}"\n${name}\nconvert`,
      ),
      ...workloads.map(
        ({ kind, namespace, name, replicas }) =>
          `scale_up ${words(kind.toLowerCase(), namespace, name, String(replicas))}`,
      ),
    ].join("\n");
  });
  const volumesText = volumes.length === 1 ? "1 volume" : `${volumes.length} volumes`;
  const objectsText = objects.length === 0 ? "" : `, ${objects.length} classes and StatefulSets`;
  const end = `say ${shellWord(`done: ${volumesText}${objectsText}`)}\n`;
  return `${scriptStart}\n${parts.join("\n\n")}\n${replacementScript(objects)}\n${end}`;
}

/** Not again once all the volumes are converted. */
function scaleDown(workloads: readonly ScaledWorkload[], volumes: readonly string[]): readonly string[] {
  if (workloads.length === 0) return [];
  const calls = workloads.map(
    ({ kind, namespace, name, uid }) => `  scale_down ${words(kind.toLowerCase(), namespace, name, uid)}`,
  );
  return [`if any_left ${volumes.join(" ")}; then`, ...calls, "fi"];
}

function functionOf(name: string, { planned, directory }: ScriptedVolume): string {
  const { claim, toAfter } = planned;
  const variables = {
    dir: directory,
    old: planned.volume,
    old_uid: planned.volumeUid,
    new: toAfter.metadata?.name ?? "",
    namespace: claim.namespace,
    claim: claim.name,
    claim_uid: claim.uid,
    driver: planned.driver,
    handle: toAfter.spec?.csi?.volumeHandle ?? "",
    policy: planned.policy,
  };
  const lines = Object.entries(variables).map(([variable, value]) => `  ${variable}=${shellWord(value)}`);
  return `${name}() {\n${lines.join("\n")}\n}`;
}

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
