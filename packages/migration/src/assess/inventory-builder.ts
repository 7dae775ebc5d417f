/** Gathers the objects of an inventory, from a cluster or from files, in any order. */
import { type KubeObject, keyOf, type Stored } from "@longshore/kube";
import { isObject } from "../convert/kube-object.ts";
import { found, type RuleFinding } from "./assessment-finding.ts";
import { type Inventory, type InventoryList, subjectOf } from "./inventory.ts";
import { type InventoryKind, inventoryKinds } from "./inventory-kinds.ts";
import { isPluralOf, type TemplateHolder, type TemplatePath, templateKind } from "./template-paths.ts";

const keyOfKind = (kind: InventoryKind): string => `${kind.resource.group}/${kind.resource.kind}`;
const ownKinds: ReadonlyMap<string, InventoryKind> = new Map(
  inventoryKinds.map((kind) => [keyOfKind(kind), kind]),
);

/** Fields that are to be objects or lists, with the members that lead to each. */
interface CheckedFields {
  readonly objects: readonly (readonly [field: string, path: readonly string[]])[];
  readonly arrays: readonly (readonly [field: string, path: readonly string[]])[];
}

const checkedFields = new Map<InventoryKind, CheckedFields>();

function checkedFieldsOf(kind: InventoryKind): CheckedFields {
  let checked = checkedFields.get(kind);
  if (checked === undefined) {
    const { objects = [], arrays = [] } = kind;
    const withPath = (field: string) => [field, field.split(".")] as const;
    const lists = [...arrays, "metadata.finalizers", "metadata.ownerReferences"];
    checked = { objects: objects.map(withPath), arrays: lists.map(withPath) };
    checkedFields.set(kind, checked);
  }
  return checked;
}

function valueAt(object: KubeObject, path: readonly string[]): unknown {
  let at: unknown = object;
  for (const name of path) {
    if (typeof at !== "object" || at === null) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[name];
  }
  return at;
}

/** The first of the fields that rules rely on which is of another type than the API gives it. */
export function malformedField(
  kind: InventoryKind,
  object: KubeObject,
): { readonly field: string; readonly evidence: string } | undefined {
  const { objects, arrays } = checkedFieldsOf(kind);
  for (const [field, path] of objects) {
    if (!isObject(valueAt(object, path))) return { field, evidence: "it is not an object" };
  }
  for (const [field, path] of arrays) {
    const value = valueAt(object, path);
    if (value != null && !Array.isArray(value)) return { field, evidence: "it is not a list" };
  }
  return undefined;
}

/** Objects that come several times, as in trees of a must-gather, are kept once: the last one. */
export class InventoryBuilder {
  readonly gaps: RuleFinding[] = [];
  readonly unread = new Set<string>();
  /** Every kind that is gathered, in the order in which they are read. */
  readonly kinds: readonly InventoryKind[];
  readonly #named: readonly InventoryKind[];
  readonly #objects = new Map<InventoryKind, Map<string, Stored>>();
  #secrets: Set<string> | undefined;

  /** @param templates custom resources that are gathered as well */
  constructor(templates: readonly TemplatePath[] = []) {
    this.#named = templates.map(templateKind);
    this.kinds = [...inventoryKinds, ...this.#named];
  }

  /** The kind of the inventory that an object is of; undefined for any other. */
  kindOf({ apiVersion = "", kind = "" }: KubeObject): InventoryKind | undefined {
    const slash = apiVersion.indexOf("/");
    const group = slash < 0 ? "" : apiVersion.slice(0, slash);
    const own = ownKinds.get(`${group}/${kind}`);
    if (own !== undefined || this.#named.length === 0) return own;
    return this.#named.find(({ resource }) => resource.group === group && isPluralOf(resource.plural, kind));
  }

  /** Keeps what the rules need of the object. One whose fields are not as its kind has them is a gap. */
  add(kind: InventoryKind, object: KubeObject): void {
    if (this.#isMalformed(kind, object)) return;
    const objects = this.#objectsOf(kind);
    if (kind.isKept?.(object) === false) return;
    objects.set(keyOf(object), kind.keep(object) as Stored);
  }

  /** Takes an object of which only what the rules need is there. One whose fields are not as its kind has them is a gap. */
  addKept(kind: InventoryKind, object: Stored): void {
    if (this.#isMalformed(kind, object)) return;
    this.#objectsOf(kind).set(keyOf(object), object);
  }

  #objectsOf(kind: InventoryKind): Map<string, Stored> {
    let objects = this.#objects.get(kind);
    if (objects === undefined) {
      objects = new Map();
      this.#objects.set(kind, objects);
    }
    return objects;
  }

  #isMalformed(kind: InventoryKind, object: KubeObject): boolean {
    const malformed = malformedField(kind, object);
    if (malformed === undefined) return false;
    const { field, evidence } = malformed;
    this.gaps.push(found("LS1004", { object: subjectOf(kind.resource.kind, object), field, evidence }));
    return true;
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

  #noteEmptyPaths(): void {
    for (const kind of this.#named) {
      const objects = [...(this.#objects.get(kind)?.values() ?? [])] as readonly Partial<TemplateHolder>[];
      if (objects.length === 0 || objects.some(({ podSpecs }) => podSpecs?.length !== 0)) continue;
      const evidence = `the path leads to a pod in none of ${objects.length} objects`;
      this.gaps.push(
        found("LS1004", { object: `kind ${kind.resource.plural}.${kind.resource.group}`, evidence }),
      );
    }
  }

  /** What was gathered. */
  build(now: Date): Inventory {
    this.#noteEmptyPaths();
    const list = <T extends Stored>(name: InventoryList): readonly T[] =>
      this.kinds
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
