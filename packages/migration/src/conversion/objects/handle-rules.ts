/**
 * Rules by which volumes of one CSI driver become those of another for the same disks. Pure.
 *
 *     version: 1
 *     fromDriver: old.csi.example
 *     toDriver: new.csi.example
 *     handles:
 *       - pattern: ^vol-(?<id>[0-9a-f]+)$
 *         handle: disks/$<id>
 *         attributes: { pool: fast }
 *     attributes:
 *       keep: [tier]
 *       rename: { fstype: fsType }
 *     topologyKeys:
 *       topology.old.csi.example/zone: topology.new.csi.example/zone
 */
import type { CSIPersistentVolumeSource, PersistentVolume, VolumeNodeAffinity } from "@longshore/kube";
import { parseYaml } from "../../convert/yaml-text.ts";
import type { Converted, HandleRule } from "../conversion-types.ts";
import { differencesOf } from "./differences.ts";

/** A rule file that cannot be used: names the field and the remedy. */
export class HandleRuleError extends Error {
  override readonly name = "HandleRuleError";
}

/** What the CSI specification allows a volume's id to be long, in bytes, twice over. */
const handleLengthMax = 512;

const text = { type: "string", minLength: 1 } as const;
const texts = { type: "object", additionalProperties: { type: "string" } } as const;

/** JSON Schema (2020-12) of a rule file. */
export const handleRulesSchema: object = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "longshore convert: rules from one CSI driver to another",
  type: "object",
  additionalProperties: false,
  required: ["version", "fromDriver", "toDriver", "handles"],
  properties: {
    version: { const: 1 },
    fromDriver: text,
    toDriver: text,
    handles: {
      type: "array",
      minItems: 1,
      items: {
        type: "object",
        additionalProperties: false,
        required: ["pattern", "handle"],
        properties: { pattern: text, handle: text, attributes: texts },
      },
    },
    attributes: {
      type: "object",
      additionalProperties: false,
      properties: { keep: { type: "array", items: text }, rename: texts },
    },
    topologyKeys: texts,
  },
};

interface Handle {
  readonly pattern: RegExp;
  readonly handle: string;
  readonly attributes: Readonly<Record<string, string>>;
}

interface Rules {
  readonly fromDriver: string;
  readonly toDriver: string;
  readonly handles: readonly Handle[];
  readonly keep: ReadonlySet<string>;
  readonly rename: Readonly<Record<string, string>>;
  readonly topologyKeys: Readonly<Record<string, string>>;
}

/** Reads a rule file. @throws HandleRuleError */
export function parseHandleRules(file: string): HandleRule {
  const rules = rulesOf(file);
  return {
    fromDriver: rules.fromDriver,
    toDriver: rules.toDriver,
    convert: (volume) => converted(rules, volume),
  };
}

function rulesOf(file: string): Rules {
  let value: unknown;
  try {
    value = parseYaml(file);
  } catch (error) {
    const reason = error instanceof Error ? error.message.split("\n", 1)[0] : "";
    throw new HandleRuleError(`it is no YAML: ${reason}`, { cause: error });
  }
  const all = membersOf(value, "the file");
  onlyFields(all, "", ["version", "fromDriver", "toDriver", "handles", "attributes", "topologyKeys"]);
  if (all.version !== 1) throw new HandleRuleError("version: it is not 1, the only one there is");
  const attributes = all.attributes === undefined ? {} : membersOf(all.attributes, "attributes");
  onlyFields(attributes, "attributes.", ["keep", "rename"]);
  const fromDriver = textOf(all.fromDriver, "fromDriver", "the driver of the volumes that are there");
  const toDriver = textOf(all.toDriver, "toDriver", "the driver that is to have them");
  if (fromDriver === toDriver)
    throw new HandleRuleError(`toDriver: it is ${fromDriver} as well; name another driver`);
  return {
    fromDriver,
    toDriver,
    handles: listOf(all.handles, "handles").map(handleOf),
    keep: new Set(
      attributes.keep === undefined
        ? []
        : listOf(attributes.keep, "attributes.keep", 0).map((name, at) =>
            textOf(name, `attributes.keep[${at}]`, "the name of an attribute"),
          ),
    ),
    rename: textsOf(attributes.rename, "attributes.rename"),
    topologyKeys: textsOf(all.topologyKeys, "topologyKeys"),
  };
}

function handleOf(value: unknown, index: number): Handle {
  const at = `handles[${index}]`;
  const members = membersOf(value, at);
  onlyFields(members, `${at}.`, ["pattern", "handle", "attributes"]);
  const written = textOf(members.pattern, `${at}.pattern`, "a regular expression for the whole handle");
  let pattern: RegExp;
  try {
    pattern = new RegExp(`^(?:${written})$`, "u");
  } catch (error) {
    const reason = error instanceof Error ? error.message : "";
    throw new HandleRuleError(`${at}.pattern: it is no regular expression: ${reason}`, { cause: error });
  }
  return {
    pattern,
    handle: textOf(
      members.handle,
      `${at}.handle`,
      "the other driver's handle, with $1 or $<name> for a group",
    ),
    attributes: textsOf(members.attributes, `${at}.attributes`),
  };
}

type Members = Readonly<Record<string, unknown>>;

function membersOf(value: unknown, at: string): Members {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Members;
  throw new HandleRuleError(`${at}: it is no object; write it as the guide to convert has it`);
}

function onlyFields(members: Members, at: string, known: readonly string[]): void {
  const other = Object.keys(members).find((name) => !known.includes(name));
  if (other === undefined) return;
  throw new HandleRuleError(`${at}${other}: not a field; there are ${known.join(", ")}`);
}

function textOf(value: unknown, at: string, expected: string): string {
  if (typeof value === "string" && value !== "") return value;
  throw new HandleRuleError(`${at}: ${value === undefined ? "missing" : "no text"}; write ${expected}`);
}

function listOf(value: unknown, at: string, min = 1): readonly unknown[] {
  if (Array.isArray(value) && value.length >= min) return value;
  const what = value === undefined ? "missing" : "no list with an entry";
  throw new HandleRuleError(`${at}: ${what}; write a list`);
}

function textsOf(value: unknown, at: string): Readonly<Record<string, string>> {
  if (value === undefined) return {};
  const members = membersOf(value, at);
  for (const [name, inner] of Object.entries(members)) {
    if (typeof inner !== "string") throw new HandleRuleError(`${at}.${name}: no text; write it in quotes`);
  }
  return members as Readonly<Record<string, string>>;
}

function converted(rules: Rules, volume: PersistentVolume): Converted<PersistentVolume> {
  const csi = volume.spec?.csi;
  if (csi?.driver !== rules.fromDriver) {
    return {
      failure: `spec.csi.driver: the rules are for ${rules.fromDriver}, and this is ${csi?.driver ?? "no CSI volume"}`,
    };
  }
  const { volumeHandle } = csi;
  if (volumeHandle.length > handleLengthMax) {
    return { failure: `spec.csi.volumeHandle: it is longer than ${handleLengthMax} characters` };
  }
  const rule = rules.handles.find(({ pattern }) => pattern.test(volumeHandle));
  if (rule === undefined) {
    return {
      failure: `spec.csi.volumeHandle: no pattern of the rules matches ${JSON.stringify(volumeHandle)}; add one`,
    };
  }
  const of = (template: string) => volumeHandle.replace(rule.pattern, template);
  const kept = attributesOf(rules, csi);
  if ("failure" in kept) return kept;
  const set = Object.entries(rule.attributes).map(([name, template]) => [name, of(template)] as const);
  const volumeAttributes = { ...kept.attributes, ...Object.fromEntries(set) };
  const affinity = affinityOf(rules, volume.spec?.nodeAffinity);
  if (affinity !== undefined && "failure" in affinity) return affinity;
  const { volumeAttributes: _before, ...others } = csi;
  const object: PersistentVolume = {
    ...volume,
    spec: {
      ...volume.spec,
      csi: {
        ...others,
        driver: rules.toDriver,
        volumeHandle: of(rule.handle),
        ...(Object.keys(volumeAttributes).length === 0 ? {} : { volumeAttributes }),
      },
      ...(affinity === undefined ? {} : { nodeAffinity: affinity.nodeAffinity }),
    },
  };
  return { object, differences: differencesOf(volume, object, {}) };
}

/** Made by the provisioner of the old driver, for itself. */
const provisionerIdentity = "storage.kubernetes.io/csiProvisionerIdentity";

/** An attribute that is neither kept nor renamed is a mistake of the rules: a driver may need it to find the disk. */
function attributesOf(
  { keep, rename }: Rules,
  { volumeAttributes = {} }: CSIPersistentVolumeSource,
): { readonly attributes: Record<string, string> } | { readonly failure: string } {
  const attributes: Record<string, string> = {};
  for (const [name, value] of Object.entries(volumeAttributes)) {
    if (name === provisionerIdentity) continue;
    const renamed = Object.hasOwn(rename, name) ? rename[name] : keep.has(name) ? name : undefined;
    if (renamed === undefined) {
      const failure = `spec.csi.volumeAttributes.${name}: the rules do not say what becomes of it; add it to attributes.keep, or to attributes.rename (with "" it is dropped)`;
      return { failure };
    }
    if (renamed !== "") attributes[renamed] = value;
  }
  return { attributes };
}

/** A key that the rules do not know, and that is not of Kubernetes, would keep the pod from every node. */
function affinityOf(
  { topologyKeys }: Rules,
  affinity: VolumeNodeAffinity | undefined,
): { readonly nodeAffinity: VolumeNodeAffinity } | { readonly failure: string } | undefined {
  if (affinity?.required === undefined) return undefined;
  let unknown: string | undefined;
  const nodeSelectorTerms = affinity.required.nodeSelectorTerms.map((term) => ({
    ...term,
    ...(term.matchExpressions === undefined
      ? {}
      : {
          matchExpressions: term.matchExpressions.map((requirement) => {
            const { key } = requirement;
            if (Object.hasOwn(topologyKeys, key)) return { ...requirement, key: topologyKeys[key] ?? key };
            if (!/(^|\.)(kubernetes|k8s)\.io\//.test(key)) unknown ??= key;
            return requirement;
          }),
        }),
  }));
  if (unknown === undefined) return { nodeAffinity: { ...affinity, required: { nodeSelectorTerms } } };
  return {
    failure: `spec.nodeAffinity: the rules do not say what becomes of the key ${unknown}; add it to topologyKeys`,
  };
}
