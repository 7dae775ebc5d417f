/** All groups of vectors; a group joins by being listed here. */

import { attacherVectors } from "./attacher.ts";
import { provisionerVectors } from "./provisioner.ts";
import { quantityVectors } from "./quantity.ts";
import { selectorVectors } from "./selectors.ts";
import { storageVectors } from "./storage.ts";
import { translationVectors } from "./translation.ts";
import type { VectorGroup, VectorHandler } from "./types.ts";

export const vectorGroups: readonly VectorGroup[] = [
  translationVectors,
  storageVectors,
  quantityVectors,
  selectorVectors,
  attacherVectors,
  provisionerVectors,
];

/** The table from operation to handler over all groups. */
export function handlerTable(groups: readonly VectorGroup[] = vectorGroups): ReadonlyMap<string, VectorHandler> {
  const table = new Map<string, VectorHandler>();
  for (const group of groups) {
    for (const [op, handler] of Object.entries(group.handlers)) {
      if (table.has(op)) throw new Error(`Operation ${op} of group ${group.name} is in another group too`);
      table.set(op, handler);
    }
  }
  return table;
}
