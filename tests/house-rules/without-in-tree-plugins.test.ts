/** The last phase of a migration: programs can be built without in-tree code (docs/behaviour/volume-plugins.md 7.4). */
import { existsSync, readFileSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { isNode, parse, walk } from "../../scripts/house-rules/source.ts";
import { packageEntries } from "../../scripts/lib/package-entries.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const sources = new Map(packageEntries.map(({ specifier, source }) => [specifier, source]));

/** What a module brings with it before it asks for more at run time, types included. */
function imported(path: string): readonly string[] {
  const modules: string[] = [];
  walk(parse(path, readFileSync(path, "utf8")).program, (node) => {
    const isStatic = /^(?:Import|ExportNamed|ExportAll)Declaration$/.test(node.type);
    if (isStatic && isNode(node.source)) modules.push(String(node.source.value));
  });
  return modules.flatMap((module) => {
    const source = module.startsWith(".") ? resolve(dirname(path), module) : sources.get(module);
    return source !== undefined && existsSync(source) ? [source] : [];
  });
}

/** All sources of a program that begins with these. */
function programOf(...entries: readonly string[]): readonly string[] {
  const found = new Set(entries.map((specifier) => sources.get(specifier) ?? `${root}${specifier}`));
  for (const path of found) for (const next of imported(path)) found.add(next);
  return [...found].map((path) => relative(root, path)).sort();
}

const inTreeCode =
  /^packages\/volumes\/src\/plugins\/(?:aws-ebs|gce-pd|azure-disk|azure-file|cinder|vsphere-volume|portworx-volume|rbd|disk|grow-in-tree|in-tree-plugins)\b/;

it.each([
  ["the volume subsystem", "@longshore/volumes"],
  ["the processes of a cluster", "@longshore/local/processes"],
])("%s can be built without in-tree plugins", (_what, entry) => {
  const program = programOf(entry);
  expect(program).toContain("packages/volumes/src/controllers/attach-detach/attach-detach-controller.ts");
  expect(program).toContain("packages/volumes/src/node/node-volumes.ts");
  expect(program).toContain("packages/volumes/src/plugins/csi/csi-plugin.ts");
  expect(program.filter((path) => inTreeCode.test(path))).toEqual([]);
});

it("the entry with the in-tree plugins has all of them", () => {
  const folders = programOf("@longshore/volumes/in-tree-plugins").flatMap((path) => {
    return /^packages\/volumes\/src\/plugins\/([a-z-]+)\//.exec(path)?.[1] ?? [];
  });
  expect([...new Set(folders)].filter((folder) => folder !== "disk")).toEqual([
    "aws-ebs",
    "azure-disk",
    "azure-file",
    "cinder",
    "gce-pd",
    "portworx-volume",
    "rbd",
    "vsphere-volume",
  ]);
});
