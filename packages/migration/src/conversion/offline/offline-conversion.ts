/** A conversion as files: manifests, and a script of kubectl commands for those who apply by themselves. */
import type { KubeObject, PersistentVolume, PersistentVolumeClaim } from "@longshore/kube";
import { isDns1123Subdomain } from "@longshore/storage";
import type { ManifestInput } from "../../convert/manifest-input.ts";
import { formatYaml } from "../../convert/yaml-text.ts";
import { uniqueNamesOf, volumeFormOf } from "../../crossing/volume-form.ts";
import type { ConversionPlanOptions } from "../conversion-options.ts";
import type { ConversionPlan, PlannedVolume, Refusal } from "../conversion-types.ts";
import { authoredMetadata } from "../objects/differences.ts";
import { convertedClaim } from "../objects/index.ts";
import { conversionPlanOf } from "../plan-conversion.ts";
import { planReplacements } from "../replacements/plan-replacements.ts";
import type { PlannedReplacement } from "../replacements/replacement-types.ts";
import { restoredVolume } from "../restored-volume.ts";
import { unitName } from "../units/unit-journal.ts";
import { conversionScript, manifestsOf } from "./conversion-script.ts";
import { readConversionDump } from "./dump-view.ts";
import { replacementFiles } from "./replacement-script.ts";

/** One file of a conversion. */
export interface OfflineFile {
  /** Relative, with `/`. */
  readonly path: string;
  readonly text: string;
  readonly executable: boolean;
}

/** What is written, and what is not. */
export interface OfflineConversion {
  /** What of the dump could not be read or used, a sentence each. */
  readonly gaps: readonly string[];
  readonly files: readonly OfflineFile[];
  readonly volumes: readonly PlannedVolume[];
  /** Classes and StatefulSets that the script replaces after the volumes. */
  readonly objects: readonly PlannedReplacement[];
  readonly refused: ConversionPlan["refused"];
}

/**
 * Plans the conversion of a dump, and makes the files that carry it out. A disk that is in use is no reason against it: the
 * script waits.
 * @throws what reading an input throws
 */
export async function offlineConversion(
  inputs: readonly ManifestInput[],
  options: ConversionPlanOptions,
): Promise<OfflineConversion> {
  const { view, gaps } = await readConversionDump(inputs);
  const plan = conversionPlanOf(view, { ...options, wait: true });
  const { replacements, refused } = planReplacements(view, options, plan.volumes);
  return {
    ...filesOfPlan({ volumes: plan.volumes, refused: [...plan.refused, ...refused], replacements }),
    gaps,
  };
}

/**
 * The files: `convert.sh`, its way back `undo.sh`, and for each volume a directory with the new objects (`volume.yaml`, `claim.yaml`), the
 * old ones as they are made again (`undo-volume.yaml`, `undo-claim.yaml`) and as they were (`before.yaml`), and what the scripts read. Names that are no names of the API are refused, since they become paths.
 */
export function filesOfPlan({
  volumes,
  refused,
  replacements = [],
}: Pick<ConversionPlan, "volumes" | "refused" | "replacements">): Omit<OfflineConversion, "gaps"> {
  const faults = volumes.map(nameFault);
  const accepted = volumes.filter((_volume, at) => faults[at] === undefined);
  const width = String(accepted.length).length;
  const scripted = accepted.map((planned, at) => ({
    planned,
    directory: `${String(at + 1).padStart(width, "0")}-${planned.volume}`,
  }));
  const files = scripted.flatMap(({ planned, directory }) => filesOf(planned, directory));
  const wrong = replacements.map(replacedFault);
  const replaced = replacements.filter((_object, at) => wrong[at] === undefined);
  const objects = replaced.map((planned) => ({ planned, directory: `objects/${unitName(planned.key)}` }));
  const convert = {
    path: "convert.sh",
    text: conversionScript(scripted, "convert", objects),
    executable: true,
  };
  const undo = { path: "undo.sh", text: conversionScript(scripted, "undo"), executable: true };
  const all = [...files, ...objects.flatMap(replacementFiles)];
  const scripts = scripted.length === 0 ? [convert] : [convert, undo];
  return {
    files: all.length === 0 ? [] : [...scripts, ...all],
    volumes: accepted,
    objects: replaced,
    refused: [
      ...refused,
      ...wrong.flatMap((fault) => (fault === undefined ? [] : [{ volume: fault.object, refusals: [fault] }])),
      ...volumes.flatMap(({ volume }, at) => {
        const fault = faults[at];
        return fault === undefined ? [] : [{ volume, refusals: [fault] }];
      }),
    ],
  };
}

const WORD = /^[\w.-]+$/;
const policies: ReadonlySet<string> = new Set(["Retain", "Delete", "Recycle"]);

/** What becomes a path, a part of a URL or of a patch is what the API server would have accepted. */
function nameFault({
  volume,
  volumeUid,
  claim,
  claimAfter,
  toAfter,
  policy,
  workloads,
}: PlannedVolume): Refusal | undefined {
  const names = [
    volume,
    toAfter.metadata?.name ?? "",
    claim.namespace,
    claim.name,
    ...workloads.flatMap(({ namespace, name }) => [namespace, name]),
  ];
  const words = ownersOf(claimAfter).flat();
  const uids = [volumeUid, claim.uid, ...workloads.map(({ uid }) => uid)];
  const wrong =
    names.find((name) => !isDns1123Subdomain(name)) ??
    uids.find((uid) => !WORD.test(uid)) ??
    words.find((word) => !WORD.test(word)) ??
    (policies.has(policy) ? undefined : policy);
  if (wrong === undefined) return undefined;
  return {
    code: "changed-by-others",
    object: `PersistentVolume ${volume}`,
    reason: `${JSON.stringify(wrong)} is no name, UID or policy that the API server accepts`,
    remedy: "write the dump again with kubectl, and change nothing in it",
  };
}

/** The same for a class or a StatefulSet. */
function replacedFault({ key, namespace, name, uid, after }: PlannedReplacement): Refusal | undefined {
  const names = [...(namespace === undefined ? [] : [namespace]), name, after.metadata?.name ?? ""];
  const wrong = names.find((each) => !isDns1123Subdomain(each)) ?? (WORD.test(uid) ? undefined : uid);
  if (wrong === undefined) return undefined;
  return {
    code: "changed-by-others",
    object: key,
    reason: `${JSON.stringify(wrong)} is no name or UID that the API server accepts`,
    remedy: "write the dump again with kubectl, and change nothing in it",
  };
}

function filesOf(planned: PlannedVolume, directory: string): readonly OfflineFile[] {
  const { fromBefore, claimBefore, toAfter, claimAfter } = planned;
  const restored = restoredVolume(fromBefore, undefined);
  const disks = new Set([fromBefore, toAfter].flatMap((pv) => uniqueNamesOf(volumeFormOf(pv))));
  const file = (name: string, text: string) => ({ path: `${directory}/${name}`, text, executable: false });
  return [
    file(manifestsOf.convert.volume, formatYaml(toAfter)),
    file(manifestsOf.convert.claim, formatYaml(claimAfter)),
    file(manifestsOf.undo.volume, formatYaml(restored)),
    file(manifestsOf.undo.claim, formatYaml(claimOfUndo(claimBefore, restored))),
    file(
      "before.yaml",
      [fromBefore, claimBefore].map((object) => formatYaml(authored(object))).join("---\n"),
    ),
    file(
      "owners",
      ownersOf(claimAfter)
        .map((words) => `${words.join(" ")}\n`)
        .join(""),
    ),
    file("disk-names", [...disks].map((name) => `${name.replaceAll("\n", " ")}\n`).join("")),
  ];
}

/** The claim as it was, bound to its volume by name. @throws Error for one that a plan refuses */
function claimOfUndo(before: PersistentVolumeClaim, restored: PersistentVolume): PersistentVolumeClaim {
  const made = convertedClaim(before, restored.metadata?.name ?? "");
  if ("failure" in made) throw new Error(`PersistentVolumeClaim ${before.metadata?.name}: ${made.failure}`);
  return made.object;
}

/** Owners of a claim, as kubectl takes their kinds: `Kind.version.group`. */
function ownersOf({ metadata }: PersistentVolumeClaim): readonly (readonly string[])[] {
  return (metadata?.ownerReferences ?? []).map(({ apiVersion, kind, name, uid }) => {
    const [group, version] = apiVersion.includes("/") ? apiVersion.split("/", 2) : ["", apiVersion];
    return [group === "" ? kind : `${kind}.${version}.${group}`, name, uid];
  });
}

function authored(object: KubeObject): object {
  const { status: _status, ...rest } = object as KubeObject & { status?: unknown };
  return { ...rest, metadata: authoredMetadata(object.metadata) };
}
