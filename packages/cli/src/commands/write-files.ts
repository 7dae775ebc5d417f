/** Writes the files of a chart. */
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { UsageError } from "../exit.ts";

/** Writes all files, or none where one is in the way. */
export async function writeFiles(
  dir: string,
  files: ReadonlyMap<string, string>,
  force: boolean,
): Promise<void> {
  const inTheWay = [...files.keys()].filter((path) => existsSync(join(dir, path)));
  if (inTheWay.length > 0 && !force) {
    throw new UsageError(
      `${join(dir, inTheWay[0] ?? "")} is there already: choose another --output-dir, or use --force`,
    );
  }
  for (const [path, text] of files) {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), text);
  }
}
