/**
 * `npm run bench -- NAME…`: runs the benchmarks `bench/<name>/index.ts`, all of them when none is named. Words that
 * begin with a dash are handed on to each.
 *
 * The scripts of a benchmark are bundled first and run by plain Node, so that what is measured is what is shipped
 * and not the loader of the sources; they find one another as `<script>.mjs` in their own directory.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL("./", import.meta.url));

/** Modules in CommonJS form can be loaded from a bundle in ESM form only with this. */
const requireForBundle =
  'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);';

/** Bundles every script of a benchmark, with the sources of our packages, into `directory`. */
async function bundle(name: string, directory: string): Promise<void> {
  const scripts = readdirSync(join(here, name)).filter(
    (file) => file.endsWith(".ts") && !file.endsWith(".test.ts"),
  );
  await build({
    entryPoints: scripts.map((file) => join(here, name, file)),
    outdir: directory,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    tsconfig: join(here, "../tsconfig.tests.json"),
    banner: { js: requireForBundle },
  });
}

/** Runs one benchmark; returns its exit code. */
async function runBenchmark(name: string, args: readonly string[]): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), "longshore-bench-"));
  try {
    await bundle(name, directory);
    console.log(`# ${name}`);
    const child = spawn(process.execPath, [join(directory, "index.mjs"), ...args], { stdio: "inherit" });
    const [code] = await once(child, "close");
    return code ?? 1;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const known = readdirSync(here, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && existsSync(join(here, entry.name, "index.ts")))
  .map((entry) => entry.name)
  .sort();
const words = process.argv.slice(2);
const names = words.filter((word) => !word.startsWith("-"));
const unknown = names.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  console.error(`No benchmark ${unknown.join(", ")}; there are: ${known.join(", ")}`);
  process.exitCode = 2;
} else {
  const args = words.filter((word) => word.startsWith("-"));
  for (const name of names.length > 0 ? names : known) {
    const code = await runBenchmark(name, args);
    if (code !== 0) process.exitCode = code;
  }
}
