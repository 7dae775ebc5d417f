/** The recordings of kube-apiserver 1.20.2: those beside the checkout where they are, else the copies in the repository. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import type { Recording } from "./replay.ts";

const shared = fileURLToPath(new URL("../../../../../shared/vectors/apiserver/", import.meta.url));
const copies = fileURLToPath(new URL("../../../../tests/vectors-data/apiserver/", import.meta.url));

/** All of them, by topic. */
export function recordings(): readonly Recording[] {
  const directory = existsSync(shared) ? shared : copies;
  return readdirSync(directory)
    .filter((file) => /\.json(\.gz)?$/.test(file))
    .sort()
    .map((file) => {
      const bytes = readFileSync(`${directory}${file}`);
      return JSON.parse((file.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString()) as Recording;
    });
}
