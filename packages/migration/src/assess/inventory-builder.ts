/** Gathers the objects of an inventory, from a cluster or from files, in any order. */
import { type KubeObject, keyOf, type Stored } from "@longshore/kube";
import { isObject, member } from "../convert/kube-object.ts";
import { found, type RuleFinding } from "./assessment-finding.ts";
import { type Inventory, type InventoryList, subjectOf } from "./inventory.ts";
import { type InventoryKind, inventoryKinds } from "./inventory-kinds.ts";

const kinds: ReadonlyMap<string, InventoryKind> = new Map(
  inventoryKinds.map((kind) => [`${kind.resource.group}/${kind.resource.kind}`, kind]),
);

/** The kind of the inventory that an object is of; undefined for any other. */
export function inventoryKindOf(object: KubeObject): InventoryKind | undefined {
  const { apiVersion = "", kind = "" } = object;
  const slash = apiVersion.indexOf("/");
  return kinds.get(`${slash < 0 ? "" : apiVersion.slice(0, slash)}/${kind}`);
}

/** The first of the fields that rules rely on which is of another type than the API gives it. */
function malformedField(
  { objects = [], arrays = [] }: InventoryKind,
  object: KubeObject,
): { readonly field: string; readonly evidence: string } | undefined {
  const at = (field: string) => member(object, ...field.split("."));
  const noObject = objects.find((field) => !isObject(at(field)));
  if (noObject !== undefined) return { field: noObject, evidence: "it is not an object" };
  const isNoArray = (field: string) => at(field) != null && !Array.isArray(at(field));
  const noArray = [...arrays, "metadata.finalizers", "metadata.ownerReferences"].find(isNoArray);
  return noArray === undefined ? undefined : { field: noArray, evidence: "it is not a list" };
}

/** Objects that come several times, as in trees of a must-gather, are kept once: the last one. */
export class InventoryBuilder {
  readonly gaps: RuleFinding[] = [];
  readonly unread = new Set<string>();
  readonly #objects = new Map<InventoryKind, Map<string, Stored>>();
  #secrets: Set<string> | undefined;

  /** Keeps what the rules need of the object. One whose fields are not as its kind has them is a gap. */
  add(kind: InventoryKind, object: KubeObject): void {
    const malformed = malformedField(kind, object);
    if (malformed !== undefined) {
      const { field, evidence } = malformed;
      this.gaps.push(found("LS1004", { object: subjectOf(kind.resource.kind, object), field, evidence }));
      return;
    }
    let objects = this.#objects.get(kind);
    if (objects === undefined) {
      objects = new Map();
      this.#objects.set(kind, objects);
    }
    if (kind.isKept?.(object) === false) return;
    objects.set(keyOf(object), kind.keep(object) as Stored);
  }

  /** From here on it counts which Secrets there are. */
  lookForSecrets(): void {
    this.#secrets ??= new Set();
  }

  /** Notes that the Secret is there, and nothing of what is in it; ignored unless Secrets are looked for. */
  addSecret(object: KubeObject): void {
    this.#secrets?.add(keyOf(object));
  }

  /** True when there is an object of the kind. */
  has(kind: InventoryKind): boolean {
    return this.#objects.has(kind);
  }

  /** What was gathered. */
  build(now: Date): Inventory {
    const list = <T extends Stored>(name: InventoryList): readonly T[] =>
      inventoryKinds
        .filter((kind) => kind.list === name)
        .flatMap((kind) => [...(this.#objects.get(kind)?.values() ?? [])] as T[]);
    return {
      now,
      volumes: list("volumes"),
      claims: list("claims"),
      classes: list("classes"),
      pods: list("pods"),
      workloads: list("workloads"),
      attachments: list("attachments"),
      nodes: list("nodes"),
      csiNodes: list("csiNodes"),
      csiDrivers: list("csiDrivers"),
      budgets: list("budgets"),
      snapshots: list("snapshots"),
      snapshotContents: list("snapshotContents"),
      vsphereRegistrations: list("vsphereRegistrations"),
      events: list("events"),
      secrets: this.#secrets,
      gaps: this.gaps,
      unread: this.unread,
    };
  }
}
