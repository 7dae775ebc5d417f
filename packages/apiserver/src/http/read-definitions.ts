/** Reads CustomResourceDefinitions from files: the manifests that drivers and operators come with. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { KubeObject } from "@longshore/kube";
import { yaml } from "./yaml.ts";

/** A file holds no definitions that can be read. */
export class DefinitionFileError extends Error {
  override readonly name = "DefinitionFileError";
}

/**
 * The definitions in the files, in their order; of a directory, its `.yaml`, `.yml` and `.json` files. Objects of other
 * kinds are left out: manifests often hold both.
 * @throws DefinitionFileError naming the file that cannot be read, or in which there is no definition
 */
export async function readDefinitions(paths: readonly string[]): Promise<readonly KubeObject[]> {
  const found: KubeObject[] = [];
  for (const path of paths) {
    const files = await filesOf(path);
    const definitions = (await Promise.all(files.map(definitionsOf))).flat();
    if (definitions.length === 0) {
      throw new DefinitionFileError(
        `${path}: there is no CustomResourceDefinition in it: name a file or directory that has one`,
      );
    }
    found.push(...definitions);
  }
  return found;
}

async function filesOf(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const names = (await readdir(path)).filter((name) => /\.(ya?ml|json)$/.test(name));
    return names.sort().map((name) => join(path, name));
  } catch (cause) {
    throw new DefinitionFileError(`${path}: it cannot be read`, { cause });
  }
}

async function definitionsOf(file: string): Promise<readonly KubeObject[]> {
  const { JSON_SCHEMA, loadAll } = yaml();
  try {
    const documents = loadAll(await readFile(file, "utf8"), { schema: JSON_SCHEMA }) as readonly unknown[];
    return documents.flatMap(objectsIn).filter(({ kind }) => kind === "CustomResourceDefinition");
  } catch (cause) {
    throw new DefinitionFileError(`${file}: it is not YAML`, { cause });
  }
}

function objectsIn(document: unknown): readonly KubeObject[] {
  if (typeof document !== "object" || document === null) return [];
  const { kind, items } = document as { kind?: unknown; items?: unknown };
  return kind === "List" && Array.isArray(items) ? items.flatMap(objectsIn) : [document as KubeObject];
}
