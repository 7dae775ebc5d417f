/**
 * `npm run vectors -- FILE…`: runs recorded answers (plain or gzipped JSON lines) through the implementation.
 * Ends with the totals; exits 1 when a case differs, or names an operation that no group knows, and 2 when there
 * is nothing to run.
 */

import { runVectors } from "./vectors/run.ts";

const files = process.argv.slice(2);
if (files.length === 0) {
  console.error("Usage: npm run vectors -- FILE… (vector files, plain or .gz)");
  process.exitCode = 2;
} else {
  try {
    const { passed, failed } = await runVectors(files, console.log);
    console.log(`${passed} passed, ${failed} failed`);
    process.exitCode = failed === 0 ? 0 : 1;
  } catch (error) {
    console.error(`Cannot run the vectors: ${(error as Error).message}; check the names of the files`);
    process.exitCode = 2;
  }
}
