/** Where recorded answers are: in the repository, compressed. Nothing outside the checkout is read. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";

/** Path of the vectors of one name, such as `translation`: gzip over JSON lines. */
export function vectorFile(name: string): string {
  return fileURLToPath(new URL(`../../tests/vectors-data/${name}.jsonl.gz`, import.meta.url));
}

/** The cases of one name, such as `translation`, each a parsed line. */
export function vectorCases<T>(name: string): readonly T[] {
  const text = gunzipSync(readFileSync(vectorFile(name))).toString("utf8");
  return text.split("\n").flatMap((line): T[] => (line === "" ? [] : [JSON.parse(line)]));
}
