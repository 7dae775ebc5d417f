/** Where recorded answers are: beside the checkout when that is there, else the copy in the repository. */

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = new URL("../../", import.meta.url);

/** Path of the vectors of one name, such as `translation`. */
export function vectorFile(name: string): string {
  const shared = fileURLToPath(new URL(`../shared/vectors/${name}.jsonl`, root));
  return existsSync(shared) ? shared : fileURLToPath(new URL(`tests/vectors-data/${name}.jsonl.gz`, root));
}
