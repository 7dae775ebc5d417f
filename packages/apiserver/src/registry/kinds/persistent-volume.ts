/** PersistentVolume (kubernetes pkg/registry/core/persistentvolume, pkg/apis/core/validation). */
import { type KubeObject, parseQuantity, type Stored } from "@longshore/kube/basics";
import { problemsMax } from "../../api/bounded.ts";
import {
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  requiredValue,
  unsupportedValue,
} from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import { subdomainProblems } from "../../api/names.ts";
import { sameJson } from "../../api/own.ts";
import { spendTime } from "../../api/work-time.ts";
import type { EmulatedVersion } from "../../versions/emulated-version.ts";
import { nodeSelectorProblems } from "./label-selector-problems.ts";
import {
  canonicalQuantities,
  immutable,
  type Loose,
  type LooseObject,
  withDefaults,
  withMember,
  without,
} from "./shaping.ts";
import { persistentSourceProblems, sourcesOf } from "./source-rules.ts";
import { persistentSourceDefaults } from "./volume-defaults.ts";

const oldAccessModes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"];
/** The access modes that there are in the version, as messages list them. */
export function accessModesOf(version: EmulatedVersion): readonly string[] {
  return version.has("readWriteOncePod") ? [...oldAccessModes, "ReadWriteOncePod"] : oldAccessModes;
}

const reclaimPolicies = ["Delete", "Recycle", "Retain"];
/** How a volume is given to pods. */
export const volumeModes = ["Block", "Filesystem"];

/** The spec of a volume, filled and canonical. */
export function volumeSpecDefaults(spec: Loose): Loose {
  const { persistentVolumeReclaimPolicy: policy } = spec;
  return inlineVolumeSpecDefaults(
    withDefaults(policy === "" ? without(spec, "persistentVolumeReclaimPolicy") : spec, {
      persistentVolumeReclaimPolicy: "Retain",
      volumeMode: "Filesystem",
    }),
  );
}

/** That of an inline volume in a VolumeAttachment: policy and mode stay as they are (vectors kcm-migration). */
export function inlineVolumeSpecDefaults(spec: Loose): Loose {
  return persistentSourceDefaults(withMember(spec, "capacity", canonicalQuantities));
}

/** Where a volume's spec stands. */
export interface VolumeSpecContext {
  readonly version: EmulatedVersion;
  /** Name of the volume, "" inline. */
  readonly name: string;
  /** In a VolumeAttachment: the volume is a CSI one, and nothing of a claim's concern is said. */
  readonly inline: boolean;
}

/** Problems of access modes that have been given. */
export function accessModeProblems(
  given: readonly string[],
  at: string,
  version: EmulatedVersion,
): FieldProblem[] {
  const known = accessModesOf(version);
  const unknown = given.filter((mode) => !known.includes(mode)).slice(0, problemsMax + 1);
  const problems: FieldProblem[] = unknown.map((mode) => unsupportedValue(at, mode, known));
  if (given.includes("ReadWriteOncePod") && known.includes("ReadWriteOncePod") && new Set(given).size > 1) {
    problems.push(forbiddenValue(at, "may not use ReadWriteOncePod with other access modes"));
  }
  return problems;
}

const notInline = "may not be specified in the context of inline volumes";

/** Problems of a volume's spec. */
export function volumeSpecProblems(spec: Loose, at: string, context: VolumeSpecContext): FieldProblem[] {
  const { inline, version } = context;
  const problems: FieldProblem[] = [];
  const forbidInline = (member: string) => {
    if (inline) problems.push(forbiddenValue(`${at}.${member}`, notInline));
    return inline;
  };
  if (inline) {
    if (spec.claimRef !== undefined) forbidInline("claimRef");
    if (Object.keys(spec.capacity ?? {}).length > 0) forbidInline("capacity");
    if (spec.csi === undefined) {
      problems.push(requiredValue(`${at}.csi`, "has to be specified in the context of inline volumes"));
    }
  }
  const modes: readonly string[] = spec.accessModes ?? [];
  if (modes.length === 0) problems.push(requiredValue(`${at}.accessModes`));
  problems.push(...accessModeProblems(modes, `${at}.accessModes`, version));
  if (!inline) problems.push(...capacityProblems(spec.capacity ?? {}, `${at}.capacity`));
  const { persistentVolumeReclaimPolicy: policy, storageClassName, volumeMode } = spec;
  if (policy && inline && policy !== "Retain") {
    const why = "may only be Retain in the context of inline volumes";
    problems.push(forbiddenValue(`${at}.persistentVolumeReclaimPolicy`, why));
  } else if (policy && !inline && !reclaimPolicies.includes(policy)) {
    problems.push(unsupportedValue(`${at}.persistentVolumeReclaimPolicy`, policy, reclaimPolicies));
  }
  problems.push(...affinityProblems(spec.nodeAffinity, `${at}.nodeAffinity`));
  if (spec.nodeAffinity !== undefined) forbidInline("nodeAffinity");
  problems.push(
    ...persistentSourceProblems(spec, at, {
      persistent: true,
      name: context.name,
      secretsAreSubdomains: version.has("secretNamesOfDriversAreSubdomains"),
    }),
  );
  if (spec.local !== undefined && spec.nodeAffinity === undefined && sourcesOf(spec)[0] === "local") {
    problems.push(requiredValue(`${at}.nodeAffinity`, "Local volume requires node affinity"));
  }
  // All spellings of the root: recycling deletes what is in the directory.
  if (policy === "Recycle" && /^\/+\.?\/*$/.test(spec.hostPath?.path ?? "")) {
    const why = "may not be 'recycle' for a hostPath mount of '/'";
    problems.push(forbiddenValue(`${at}.persistentVolumeReclaimPolicy`, why));
  }
  if (storageClassName && !forbidInline("storageClassName")) {
    problems.push(
      ...subdomainProblems(storageClassName).map((why) =>
        invalidValue(`${at}.storageClassName`, storageClassName, why),
      ),
    );
  }
  if (volumeMode !== undefined && inline && volumeMode !== "Filesystem") {
    const why = "may not specify volumeMode other than Filesystem in the context of inline volumes";
    problems.push(forbiddenValue(`${at}.volumeMode`, why));
  } else if (volumeMode !== undefined && !inline && !volumeModes.includes(volumeMode)) {
    problems.push(unsupportedValue(`${at}.volumeMode`, volumeMode, volumeModes));
  }
  const { volumeAttributesClassName: attributes } = spec;
  if (attributes !== undefined && version.gate("VolumeAttributesClass")) {
    problems.push(...attributesClassProblems(spec, at, forbidInline("volumeAttributesClassName")));
  }
  return problems;
}

function attributesClassProblems(spec: Loose, at: string, inline: boolean): FieldProblem[] {
  const { volumeAttributesClassName: name } = spec;
  const field = `${at}.volumeAttributesClassName`;
  if (inline) return [];
  const problems =
    name === ""
      ? [requiredValue(field, "an empty string is disallowed")]
      : subdomainProblems(name).map((why) => invalidValue(field, name, why));
  if (spec.csi === undefined) {
    const why = "has to be specified when using volumeAttributesClassName";
    problems.push(requiredValue(`${at}.csi`, why));
  }
  return problems;
}

function affinityProblems(affinity: Loose | undefined, at: string): FieldProblem[] {
  if (affinity === undefined) return [];
  return affinity.required === undefined
    ? [requiredValue(`${at}.required`, "must specify required node constraints")]
    : nodeSelectorProblems(affinity.required, `${at}.required`);
}

function capacityProblems(capacity: Loose, at: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (Object.keys(capacity).length === 0) problems.push(requiredValue(at));
  if (capacity.storage === undefined || Object.keys(capacity).length > 1) {
    problems.push(unsupportedValue(at, capacity, ["storage"]));
  }
  for (const [key, value] of Object.entries(capacity)) {
    spendTime();
    problems.push(...positiveProblems(value, `${at}[${key}]`));
  }
  return problems;
}

/** An amount that must be more than nothing. */
export function positiveProblems(value: unknown, at: string): FieldProblem[] {
  const amount = quantityOf(value);
  if (amount === undefined) return [invalidValue(at, value, "must be a quantity, such as 10Gi")];
  const problems: FieldProblem[] = [];
  if (amount.sign() < 0) {
    problems.push(invalidValue(at, Number(amount.toBytes()), "must be a valid resource quantity"));
  }
  if (amount.sign() <= 0) problems.push(invalidValue(at, amount.toString(), "must be greater than zero"));
  return problems;
}

function quantityOf(value: unknown) {
  try {
    return parseQuantity(String(value));
  } catch {
    return undefined;
  }
}

/** Labels of zones and regions that have got new names; a volume's affinity may follow. */
const newLabels: Readonly<Record<string, string>> = {
  "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
  "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
  "beta.kubernetes.io/os": "kubernetes.io/os",
  "beta.kubernetes.io/arch": "kubernetes.io/arch",
  "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
};

const withNewLabels = (affinity: unknown): unknown =>
  JSON.parse(JSON.stringify(affinity ?? null), (key, value) =>
    key === "key" && typeof value === "string" ? (newLabels[value] ?? value) : value,
  );

function affinityUpdateProblems(next: Loose, before: Loose, version: EmulatedVersion): FieldProblem[] {
  const [now, was] = [next.nodeAffinity, before.nodeAffinity];
  if (was === undefined || sameJson(now, was) || version.gate("MutablePVNodeAffinity")) return [];
  if (!version.has("volumeAffinityLabelsMutable"))
    return [invalidValue("nodeAffinity", now ?? null, immutable)];
  if (sameJson(withNewLabels(now), withNewLabels(was)) && !sameJson(now, was)) return [];
  return [
    invalidValue("nodeAffinity", now ?? null, `${immutable}, except for updating from beta label to GA`),
  ];
}

function updateProblems(next: KubeObject, old: Stored, version: EmulatedVersion): FieldProblem[] {
  const [spec, before] = [(next as LooseObject).spec ?? {}, (old as LooseObject).spec ?? {}];
  const problems: FieldProblem[] = [];
  const sources = new Set([...sourcesOf(spec), ...sourcesOf(before)]);
  if ([...sources].some((name) => !sameJson(withoutLateSecret(spec[name], before[name]), before[name]))) {
    const why = "spec.persistentvolumesource is immutable after creation";
    problems.push(forbiddenValue("spec.persistentvolumesource", why));
  }
  if (spec.volumeMode !== before.volumeMode) {
    problems.push(invalidValue("volumeMode", spec.volumeMode, immutable));
  }
  problems.push(...affinityUpdateProblems(spec, before, version));
  const [attributes, had] = [spec.volumeAttributesClassName, before.volumeAttributesClassName];
  if (version.gate("VolumeAttributesClass") && had !== undefined && attributes === undefined) {
    const why = "update from non-nil value to nil is forbidden";
    problems.push(forbiddenValue("spec.volumeAttributesClassName", why));
  }
  return problems;
}

/** A Secret for growing may be named later. */
function withoutLateSecret(source: Loose | undefined, before: Loose | undefined): unknown {
  if (source === undefined || before === undefined) return source;
  return before.controllerExpandSecretRef === undefined
    ? without(source, "controllerExpandSecretRef")
    : source;
}

/** The kind PersistentVolume, as that version of Kubernetes has it. */
export const persistentVolume = (version: EmulatedVersion): Kind => ({
  group: "",
  versions: ["v1"],
  kind: "PersistentVolume",
  plural: "persistentvolumes",
  shortNames: ["pv"],
  namespaced: false,
  statusSubresource: true,
  answersDeleted: true,
  defaults: (object) =>
    withMember(
      withDefaults(object as LooseObject, { status: { phase: "Pending" } }),
      "spec",
      volumeSpecDefaults,
    ),
  prepareCreate: (object) => ({ ...object, status: { phase: "Pending" } }) as KubeObject,
  validate: (object) =>
    volumeSpecProblems((object as LooseObject).spec ?? {}, "spec", {
      version,
      name: object.metadata?.name ?? "",
      inline: false,
    }),
  validateUpdate: (next, old) => updateProblems(next, old, version),
});
