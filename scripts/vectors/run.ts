/** Runs the cases of vector files against the implementation, one line at a time. */

import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { createGunzip } from "node:zlib";
import { type Answer, difference } from "./compare.ts";
import { handlerTable } from "./groups.ts";
import type { VectorCase, VectorHandler } from "./types.ts";

/** How a run ended. */
export interface VectorTotals {
  readonly passed: number;
  readonly failed: number;
}

/** Runs every case of `files`; writes a report of each that differs through `print`. */
export async function runVectors(
  files: readonly string[],
  print: (line: string) => void,
  handlers: ReadonlyMap<string, VectorHandler> = handlerTable(),
): Promise<VectorTotals> {
  let passed = 0;
  let failed = 0;
  for (const file of files) {
    let lineNumber = 0;
    for await (const line of linesOf(file)) {
      lineNumber += 1;
      if (line.trim() === "") continue;
      const report = await judge(line, `${file}:${lineNumber}`, handlers);
      if (report === undefined) passed += 1;
      else {
        failed += 1;
        for (const text of report) print(text);
      }
    }
  }
  return { passed, failed };
}

/** The lines of a plain or gzipped file. */
async function* linesOf(file: string): AsyncGenerator<string> {
  const bytes = createReadStream(file);
  const plain = file.endsWith(".gz") ? bytes.pipe(createGunzip()) : bytes;
  bytes.on("error", (error) => plain.destroy(error));
  yield* createInterface({ input: plain, crlfDelay: Number.POSITIVE_INFINITY });
}

async function judge(
  line: string,
  place: string,
  handlers: ReadonlyMap<string, VectorHandler>,
): Promise<readonly string[] | undefined> {
  let vector: VectorCase;
  try {
    vector = JSON.parse(line);
  } catch (error) {
    return [`FAIL ${place}: not a line of JSON: ${(error as Error).message}`];
  }
  const handler = handlers.get(vector.op);
  if (handler === undefined) return [`FAIL ${vector.id} (${place}): unknown op ${JSON.stringify(vector.op)}`];
  const lines = difference(vector, await answer(handler, vector));
  return lines && [`FAIL ${vector.id} ${vector.op} (${place})`, ...lines.map((text) => `  ${text}`)];
}

async function answer(handler: VectorHandler, vector: VectorCase): Promise<Answer> {
  try {
    return { output: await handler(vector.input as never, vector) };
  } catch (error) {
    return { error };
  }
}
