/** The recordings of kube-apiserver 1.20.2, from the repository's vectors. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import type { Recording } from "./replay.ts";

const directory = fileURLToPath(new URL("../../../../tests/vectors-data/apiserver/", import.meta.url));

/** All of them, by topic. */
export function recordings(): readonly Recording[] {
  return readdirSync(directory)
    .filter((file) => file.endsWith(".json.gz"))
    .sort()
    .map((file) => JSON.parse(gunzipSync(readFileSync(`${directory}${file}`)).toString()) as Recording);
}
