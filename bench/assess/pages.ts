/** The pages of a cluster's lists as files: what the server sends, and at the same time a dump of the cluster. */
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { type ClusterSize, clusterLists } from "./objects.ts";

/** Objects of a page: what clients ask for. */
export const pageItems = 500;

/** Where the page of a list lies that begins at the object `from`. */
export function pageFile(directory: string, path: string, from: number): string {
  return join(directory, path.slice(path.lastIndexOf("/") + 1), `${String(from).padStart(7, "0")}.json`);
}

/** Writes every page of the cluster below `directory`; returns the bytes and the objects. */
export function writePages(
  directory: string,
  size: ClusterSize,
): { readonly bytes: number; readonly objects: number } {
  let bytes = 0;
  let objects = 0;
  for (const { path, kind, apiVersion, count, objectAt } of clusterLists(size)) {
    objects += count;
    for (let from = 0; from < count; from += pageItems) {
      const to = Math.min(from + pageItems, count);
      const items = Array.from({ length: to - from }, (_, index) => objectAt(from + index));
      const metadata = { resourceVersion: "1000000", ...(to < count ? { continue: String(to) } : {}) };
      const text = JSON.stringify({ kind: `${kind}List`, apiVersion, metadata, items });
      const file = pageFile(directory, path, from);
      if (from === 0) mkdirSync(join(file, ".."), { recursive: true });
      writeFileSync(file, text);
      bytes += text.length;
    }
  }
  return { bytes, objects };
}

/** Writes the whole cluster as one list into a file. */
export function writeOneFile(file: string, size: ClusterSize): void {
  const out = openSync(file, "w");
  writeSync(out, '{"apiVersion":"v1","kind":"List","items":[');
  let comma = "";
  for (const { kind, apiVersion, count, objectAt } of clusterLists(size)) {
    for (let from = 0; from < count; from += pageItems) {
      let text = "";
      for (let index = from; index < Math.min(from + pageItems, count); index++) {
        text += comma + JSON.stringify({ apiVersion, kind, ...objectAt(index) });
        comma = ",";
      }
      writeSync(out, text);
    }
  }
  writeSync(out, "]}");
  closeSync(out);
}
