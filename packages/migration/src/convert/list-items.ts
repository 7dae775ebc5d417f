/** What a list says of its items: those of a `PersistentVolumeList` have no kind of their own. */

import { isObject, type KubeObject, textAt } from "./kube-object.ts";

/** Kind and API version of items that name none. */
export interface ItemType {
  readonly kind: string;
  readonly apiVersion: string | undefined;
}

const LIST_KIND = /^(.+)List$/;
const YAML_MEMBER = /^(kind|apiVersion):[ \t]*["']?([A-Za-z0-9./-]+)/gm;

/** The type of the items of `list`; undefined where it does not say, as `List` does not. */
export function itemTypeOf(list: KubeObject): ItemType | undefined {
  const kind = LIST_KIND.exec(textAt(list, "kind"))?.[1];
  if (kind === undefined) return undefined;
  return { kind, apiVersion: textAt(list, "apiVersion") || undefined };
}

/** The same from the text of a list up to its first item. */
export function itemTypeOfHead(form: "json" | "yaml", head: string): ItemType | undefined {
  if (form === "yaml") {
    const members = [...head.matchAll(YAML_MEMBER)].map(([, name, value]) => [name, value]);
    return itemTypeOf(Object.fromEntries(members));
  }
  try {
    const list: unknown = JSON.parse(`${head}]}`);
    return isObject(list) ? itemTypeOf(list) : undefined;
  } catch {
    return undefined;
  }
}

/** `item` with the type from its list; the same object where it has its own type, or the list has none. */
export function typedItem(item: unknown, type: ItemType | undefined): unknown {
  if (type === undefined || !isObject(item) || item.kind !== undefined) return item;
  const { kind, apiVersion } = type;
  return { ...(apiVersion === undefined ? {} : { apiVersion }), kind, ...item };
}
