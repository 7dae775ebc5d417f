/**
 * The version of Kubernetes whose behaviour the server shows, as kube-apiserver's own `--emulated-version`, with
 * its feature gates. What differs between versions is in `changes.ts`; others only ask.
 */

import { parseFeatureGates } from "@longshore/runtime/basics";
import {
  type Behaviour,
  behaviours,
  type Change,
  deprecations,
  gates,
  groupVersions,
  newestMinor,
  oldestMinor,
  storageVersions,
} from "./changes.ts";
import { fieldsSince, fieldsUntil } from "./field-changes.ts";

/** An emulated version of Kubernetes with its feature gates. */
export interface EmulatedVersion {
  readonly minor: number;
  /** `1.20`. */
  readonly text: string;
  /** The values of all gates that are known, with those that were requested. */
  readonly gates: Readonly<Record<string, boolean>>;
  /** Gates that were asked for and that nothing here depends on. */
  readonly unknownGates: readonly string[];
  /** True when the behaviour belongs to this version. */
  has(behaviour: Behaviour): boolean;
  /** The value of a feature gate; false for one that is not known. */
  gate(name: string): boolean;
  /** True when the type (`core.v1.Pod`) has the member in this version. */
  hasField(struct: string, member: string): boolean;
  /** The version in which the kind is stored, where that is not its first one. */
  storageVersion(group: string, kind: string): string | undefined;
  /** The warning for clients that use the kind in that version; undefined when it is not deprecated. */
  deprecation(group: string, version: string, kind: string): string | undefined;
  /** True when the kind is served in that version of its group. */
  serves(group: string, version: string, kind: string): boolean;
}

/** The requested version, or a gate, cannot be emulated. */
export class EmulatedVersionError extends Error {
  override readonly name = "EmulatedVersionError";
}

/** The version that is emulated when none is named. */
export const defaultVersionText: string = `1.${newestMinor}`;

/**
 * @param text `1.20` to `1.36`
 * @param featureGates `A=true,B=false`, or the same as a record; gates that are not known are kept without effect
 * @throws EmulatedVersionError naming what is wrong; FeatureGateError for gates that cannot be read
 */
export function emulatedVersion(
  text: string = defaultVersionText,
  featureGates: string | Readonly<Record<string, boolean>> = {},
): EmulatedVersion {
  const match = /^v?1\.(\d+)(?:\.\d+)?$/.exec(text);
  const minor = Number(match?.[1]);
  if (match === null || minor < oldestMinor || minor > newestMinor) {
    throw new EmulatedVersionError(
      `emulated version "${text}": name one from 1.${oldestMinor} to 1.${newestMinor}`,
    );
  }
  const asked = typeof featureGates === "string" ? parseFeatureGates(featureGates) : featureGates;
  const values = gateValues(minor, asked);
  return {
    minor,
    text: `1.${minor}`,
    gates: values,
    unknownGates: Object.keys(asked).filter((name) => !Object.hasOwn(gates, name)),
    has: (behaviour) => isThere(behaviours[behaviour], minor),
    hasField: (struct, member) => isThere(fieldChanges.get(`${struct}.${member}`) ?? {}, minor),
    gate: (name) => values[name] ?? false,
    storageVersion(group, kind) {
      const stored = storageVersions[`${group}/${kind}`];
      return stored !== undefined && isThere(stored, minor) ? stored.version : undefined;
    },
    deprecation: (group, version, kind) => deprecationText(group, version, kind, minor),
    serves: (group, version, kind) =>
      isThere(
        groupVersions[`${group}/${version}/${kind}`] ?? groupVersions[`${group}/${version}`] ?? {},
        minor,
      ),
  };
}

/** The changes of fields, by type and member. */
const fieldChanges: ReadonlyMap<string, Change> = new Map([
  ...fieldTable(fieldsSince, (since) => ({ since })),
  ...fieldTable(fieldsUntil, (until) => ({ until })),
]);

function* fieldTable(
  table: typeof fieldsSince,
  change: (minor: number) => Change,
): Iterable<readonly [string, Change]> {
  for (const [minor, structs] of Object.entries(table)) {
    for (const [struct, members] of Object.entries(structs)) {
      for (const member of members.split(" ")) yield [`${struct}.${member}`, change(Number(minor))];
    }
  }
}

/** The text of apiserver's deprecation.WarningMessage. */
function deprecationText(group: string, version: string, kind: string, minor: number): string | undefined {
  const apiVersion = group === "" ? version : `${group}/${version}`;
  const found = deprecations[`${apiVersion}/${kind}`] ?? deprecations[apiVersion];
  if (found === undefined || minor < found.since) return undefined;
  const { since, until, use } = found;
  const end = until === undefined ? "" : `, unavailable in v1.${until}+`;
  const instead = use === undefined ? "" : `; use ${use.includes(" ") ? use : `${use} ${kind}`}`;
  return `${apiVersion} ${kind} is deprecated in v1.${since}+${end}${instead}`;
}

function isThere({ since = 0, until = Number.POSITIVE_INFINITY }: Change, minor: number): boolean {
  return minor >= since && minor < until;
}

function gateValues(minor: number, asked: Readonly<Record<string, boolean>>): Record<string, boolean> {
  const values: Record<string, boolean> = {};
  for (const [name, gate] of Object.entries(gates)) {
    // Keys that are integers come in ascending order: the newest that applies stays.
    for (const [since, value] of Object.entries(gate.default)) {
      if (Number(since) <= minor) values[name] = value;
    }
    if (gate.locked !== undefined && minor >= gate.locked && (asked[name] ?? values[name]) !== values[name]) {
      throw new EmulatedVersionError(
        `feature gate "${name}" is locked to ${values[name]} in 1.${minor}: remove it`,
      );
    }
  }
  return { ...values, ...asked };
}
