/** What a plan looks at, from files in place of a cluster. */
import type { KubeObject, Stored } from "@longshore/kube";
import { foreignText } from "@longshore/runtime";
import { subjectOf } from "../../assess/inventory.ts";
import { InventoryBuilder, malformedField } from "../../assess/inventory-builder.ts";
import { ManifestReader } from "../../assess/manifest-reader.ts";
import type { ManifestInput } from "../../convert/manifest-input.ts";
import type { ConversionView } from "../conversion-view.ts";

/** A dump as a plan needs it. */
export interface ConversionDump {
  readonly view: ConversionView;
  /** What of the dump could not be read or used, a sentence each. */
  readonly gaps: readonly string[];
}

const lists: Readonly<Record<string, keyof ConversionView>> = {
  PersistentVolume: "volumes",
  PersistentVolumeClaim: "claims",
  Pod: "pods",
  Node: "nodes",
  VolumeAttachment: "attachments",
  StatefulSet: "statefulSets",
  Deployment: "deployments",
  ReplicaSet: "replicaSets",
  CSINode: "csiNodes",
  CSIDriver: "csiDrivers",
  VolumeSnapshot: "snapshots",
  VolumeSnapshotContent: "snapshotContents",
  StorageClass: "classes",
};

/** Without these a plan would take what is in use for unused, or find nothing. */
const needed = ["PersistentVolume", "PersistentVolumeClaim", "Pod", "Node"];

/**
 * Reads the dump, as `kubectl get -o json` or `-o yaml` writes it: with UIDs, by which the script knows the objects again. An
 * object that comes several times counts once, as it comes last.
 * @throws what reading an input throws
 */
export async function readConversionDump(inputs: readonly ManifestInput[]): Promise<ConversionDump> {
  const kinds = new InventoryBuilder();
  const found = new Map<keyof ConversionView, Map<string, Stored>>();
  const gaps: string[] = [];
  const reader = new ManifestReader({
    object(object) {
      const list = listOf(kinds, object);
      if (list === undefined) return;
      const kind = kinds.kindOf(object);
      const fault = kind === undefined ? undefined : malformedField(kind, object);
      const { uid, resourceVersion } = object.metadata ?? {};
      const subject = subjectOf(object.kind ?? "", object);
      if (fault !== undefined)
        gaps.push(`${subject}: ${fault.field}: ${fault.evidence}; write the dump again`);
      else if (typeof uid !== "string" || typeof resourceVersion !== "string") {
        gaps.push(`${subject}: metadata.uid is missing; write the dump with kubectl get -o json`);
      } else {
        const objects = found.get(list) ?? new Map<string, Stored>();
        found.set(list, objects.set(uid, object as Stored));
      }
    },
    gap: (place, reason) => gaps.push(`${place}: ${foreignText(reason)}`),
  });
  for (const input of inputs) await reader.read(input);
  for (const kind of needed) {
    if (found.has(lists[kind] ?? "volumes") || reader.listed.has(kind)) continue;
    gaps.push(`the dump has no ${kind}; add it to the command that writes the dump`);
  }
  const listed = Object.values(lists).map((list) => [list, [...(found.get(list)?.values() ?? [])]]);
  return { view: Object.fromEntries(listed) as ConversionView, gaps };
}

/** Kinds of other groups have the same names. */
function listOf(kinds: InventoryBuilder, object: KubeObject): keyof ConversionView | undefined {
  if (kinds.kindOf(object) === undefined) return undefined;
  return Object.hasOwn(lists, object.kind ?? "") ? lists[object.kind ?? ""] : undefined;
}
