/**
 * The object that held a node's CSI drivers before CSINode did. Its three published forms are read:
 *
 *     csiDrivers[].name      the first design
 *     csiDrivers[].driver    1.12
 *     spec.drivers[].name    1.13; stands over the other two
 *
 * Source: docs/behaviour/node-agent.md 2.1.
 */
import type { CSINodeDriver, KubeObject, Resource } from "@longshore/kube";

/** A CSINodeInfo as a server keeps it: a custom resource, so nothing has checked its fields. */
export interface CSINodeInfo extends KubeObject {
  readonly csiDrivers?: unknown;
  readonly spec?: unknown;
}

/** Where CSINodeInfos are served, if they are. */
export const csiNodeInfos: Resource<CSINodeInfo> = {
  group: "csi.storage.k8s.io",
  versions: ["v1alpha1"],
  plural: "csinodeinfos",
  kind: "CSINodeInfo",
  namespaced: false,
};

/** The drivers of a CSINodeInfo, or the first thing that is wrong with it. */
export type OldDrivers =
  | { readonly drivers: readonly CSINodeDriver[] }
  /** The field, and what it must be. */
  | { readonly malformed: string };

/** The drivers that have a node ID, each once, as a CSINode holds them. Pure. */
export function oldDriversOf({ csiDrivers, spec }: CSINodeInfo): OldDrivers {
  const drivers = new Map<string, CSINodeDriver>();
  try {
    for (const entry of listAt("csiDrivers", csiDrivers)) add(drivers, entry, ["driver", "name"]);
    if (!isAbsent(spec)) {
      for (const entry of listAt("spec.drivers", fieldsAt("spec", spec).drivers))
        add(drivers, entry, ["name"]);
    }
  } catch (error) {
    if (error instanceof MalformedField) return { malformed: error.message };
    throw error;
  }
  return { drivers: [...drivers.values()] };
}

/** A value with the field that it came from. */
interface Entry {
  readonly field: string;
  readonly value: unknown;
}

class MalformedField extends Error {}

const isAbsent = (value: unknown): value is undefined | null => value === undefined || value === null;

function add(
  drivers: Map<string, CSINodeDriver>,
  { field, value }: Entry,
  nameFields: readonly string[],
): void {
  const fields = fieldsAt(field, value);
  const nameField = nameFields.find((one) => !isAbsent(fields[one])) ?? "name";
  const name = textAt(`${field}.${nameField}`, fields[nameField]);
  if (name === "") throw new MalformedField(`${field}.${nameField} must not be empty`);
  const nodeID = isAbsent(fields.nodeID) ? "" : textAt(`${field}.nodeID`, fields.nodeID);
  if (nodeID === "") return;
  const keys = listAt(`${field}.topologyKeys`, fields.topologyKeys).map((key) =>
    textAt(key.field, key.value),
  );
  const topologyKeys = [...new Set(keys)].sort();
  drivers.set(name, { name, nodeID, ...(topologyKeys.length > 0 && { topologyKeys }) });
}

function fieldsAt(field: string, value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new MalformedField(`${field} must be an object`);
  }
  return value as Readonly<Record<string, unknown>>;
}

function listAt(field: string, value: unknown): readonly Entry[] {
  if (isAbsent(value)) return [];
  if (!Array.isArray(value)) throw new MalformedField(`${field} must be a list`);
  return value.map((one: unknown, index) => ({ field: `${field}[${index}]`, value: one }));
}

function textAt(field: string, value: unknown): string {
  if (typeof value !== "string") throw new MalformedField(`${field} must be a string`);
  return value;
}
