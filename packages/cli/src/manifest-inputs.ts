/** The files of manifests that flags name. */
import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { type ManifestInput, ManifestInputError } from "@longshore/migration";

/** The files that kubectl takes from a directory, too. */
const manifestFile = /\.(?:json|ya?ml)$/;
/** How much of a file is read at once, in bytes. */
const chunkBytes = 256 * 1024;
/** Items of a dump are cut out of texts of this size; those of 128 KiB and more are not allocated with other objects, which costs time. */
const dumpChunkBytes = 64 * 1024;
/** What dumps of clusters have besides. */
const dumpFile = /\.(?:jsonl?|ya?ml)(?:\.gz)?$/;

/**
 * The inputs that were named, in that order: files, `-` for `stdin`, and directories, which stand for the manifests in
 * them, by name. @throws ManifestInputError for what cannot be read
 */
export async function manifestInputs(
  filenames: readonly string[],
  stdin: AsyncIterable<Uint8Array>,
): Promise<readonly ManifestInput[]> {
  return inputsOf(filenames, stdin, async (directory) =>
    (await readdir(directory)).filter((file) => manifestFile.test(file)),
  );
}

/** The same for a dump of a cluster: whole trees, compressed files as well. Links in a tree are not followed. */
export async function dumpInputs(
  filenames: readonly string[],
  stdin: AsyncIterable<Uint8Array>,
): Promise<readonly ManifestInput[]> {
  return inputsOf(filenames, stdin, filesBelow, dumpChunkBytes);
}

async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isFile() && dumpFile.test(entry.name))
    .map((entry) => join(entry.parentPath.slice(directory.length), entry.name));
}

async function inputsOf(
  filenames: readonly string[],
  stdin: AsyncIterable<Uint8Array>,
  filesOf: (directory: string) => Promise<string[]>,
  chunk = chunkBytes,
): Promise<readonly ManifestInput[]> {
  const inputs: ManifestInput[] = [];
  for (const name of filenames) {
    if (name === "-") inputs.push({ name: "standard input", bytes: stdin });
    else if (!(await isDirectory(name))) inputs.push(fileInput(name, chunk));
    else {
      const files = (await filesOf(name)).sort();
      if (files.length === 0)
        throw new ManifestInputError(`${name} holds no .yaml, .yml or .json file: name another directory`);
      for (const file of files) inputs.push(fileInput(join(name, file), chunk));
    }
  }
  return inputs;
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    throw unreadable(path, error);
  }
}

function fileInput(name: string, chunk: number): ManifestInput {
  return { name, bytes: bytesOf(name, chunk) };
}

/** Opened when it is read: many files are never open at once. */
async function* bytesOf(path: string, highWaterMark: number): AsyncGenerator<Uint8Array> {
  const stream = createReadStream(path, { highWaterMark });
  try {
    yield* stream;
  } catch (error) {
    throw unreadable(path, error);
  } finally {
    stream.destroy();
  }
}

function unreadable(path: string, error: unknown): ManifestInputError {
  // The sentence of a failure says the cause, too.
  return new ManifestInputError(`cannot read ${path}, check the file`, { cause: error });
}
