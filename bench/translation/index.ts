/**
 * Translation, in process and from JSON lines to JSON lines, compared with what JavaScript itself needs to copy the
 * same objects. `--volumes=N` for another number than a million. Marks: 1 µs a volume in process, 100,000 volumes a
 * second and 150 MB on the command line.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { translateCSIPVToInTree, translateInTreePVToCSI } from "@longshore/translation";
import { inTreeVolume } from "./volumes.ts";

const VOLUMES = 1_000_000;
/** Distinct objects held at once; the million goes over them again and again. */
const DISTINCT = 10_000;
const ROUNDS = 5;

function inProcess(volumes: number): void {
  const inTree = Array.from({ length: DISTINCT }, (_, i) => JSON.parse(JSON.stringify(inTreeVolume(i))));
  const cases: readonly [
    name: string,
    objectsOf: () => readonly unknown[],
    work: (object: never) => unknown,
    count: number,
  ][] = [
    ["translate to CSI", () => inTree, translateInTreePVToCSI, volumes],
    [
      "translate to in-tree",
      () => inTree.map((pv) => translateInTreePVToCSI(pv)),
      translateCSIPVToInTree,
      volumes,
    ],
    ["JSON.parse(JSON.stringify)", () => inTree, (pv) => JSON.parse(JSON.stringify(pv)), volumes / 5],
    ["structuredClone", () => inTree, (pv) => structuredClone(pv), volumes / 10],
  ];
  // Each case has its rounds to itself, as a program that crosses a cluster does one thing at a time.
  const best = new Map<string, number>();
  for (const [name, objectsOf, work, count] of cases) {
    const objects = objectsOf();
    for (let round = 0; round < ROUNDS; round++) {
      const micros = measure(objects, work as (object: unknown) => unknown, Math.ceil(count / ROUNDS));
      best.set(name, Math.min(best.get(name) ?? Number.POSITIVE_INFINITY, micros));
    }
  }
  const own = best.get("translate to CSI") as number;
  console.log(
    `in process, ${volumes} volumes of ${JSON.stringify(inTree[0]).length} bytes, best of ${ROUNDS} rounds`,
  );
  for (const [name, micros] of best) {
    console.log(
      `  ${name.padEnd(28)} ${micros.toFixed(3).padStart(8)} µs a volume   ${(micros / own).toFixed(1).padStart(6)} x`,
    );
  }
  console.log(`  mark: at most 1 µs a volume: ${own <= 1 ? "reached" : "missed"}`);
}

function measure(objects: readonly unknown[], work: (object: unknown) => unknown, count: number): number {
  const start = performance.now();
  let kept: unknown;
  for (let i = 0; i < count; i++) kept = work(objects[i % DISTINCT]);
  const micros = ((performance.now() - start) * 1000) / count;
  // Using the last result keeps the compiler from leaving the work out.
  if (kept === undefined) throw new Error("The work gave nothing");
  return micros;
}

async function commandLine(volumes: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "longshore-bench-"));
  try {
    const file = join(directory, "volumes.jsonl");
    await writeVolumes(file, volumes);
    const bytes = statSync(file).size;
    console.log(`JSON lines to JSON lines, ${volumes} volumes, ${Math.round(bytes / volumes)} bytes each`);
    const bare = await runNode([scriptPath("bare-json"), file]);
    const ours = await runNode([scriptPath("translate-cli"), "translate", "-f", file, "-o", "jsonl"]);
    for (const [name, usage] of [
      ["longshore translate", ours],
      ["JSON.parse + JSON.stringify", bare],
    ] as const) {
      const perSecond = (seconds: number) =>
        Math.round(volumes / seconds)
          .toLocaleString("en-US")
          .padStart(9);
      const ratio = (usage.seconds / ours.seconds).toFixed(2);
      console.log(
        `  ${name.padEnd(28)} ${perSecond(usage.seconds)} volumes/s (${perSecond(usage.cpuSeconds)} per CPU second)` +
          `  ${usage.rssMb.toFixed(0).padStart(4)} MB   ${ratio} x`,
      );
    }
    const reached = volumes / ours.seconds >= 100_000 && ours.rssMb < 150;
    console.log(`  mark: 100,000 volumes/s in less than 150 MB: ${reached ? "reached" : "missed"}`);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

async function writeVolumes(file: string, volumes: number): Promise<void> {
  const out = createWriteStream(file);
  for (let i = 0; i < volumes; ) {
    let text = "";
    for (const end = Math.min(volumes, i + 200); i < end; i++) text += `${JSON.stringify(inTreeVolume(i))}\n`;
    if (!out.write(text)) await once(out, "drain");
  }
  out.end();
  await once(out, "finish");
}

interface Usage {
  /** Wall time from start to end of the process. */
  readonly seconds: number;
  /** Time on a processor, all threads. */
  readonly cpuSeconds: number;
  readonly rssMb: number;
}

/** Runs a script with its output thrown away; it reports what it used on descriptor 3. */
async function runNode(args: readonly string[]): Promise<Usage> {
  const start = performance.now();
  const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "inherit", "pipe"] });
  let report = "";
  child.stdio[3]?.on("data", (chunk) => {
    report += chunk;
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${args[0]} ended with ${code}`);
  const { maxRSS, userCPUTime, systemCPUTime } = JSON.parse(report) as NodeJS.ResourceUsage;
  const seconds = (performance.now() - start) / 1000;
  return { seconds, cpuSeconds: (userCPUTime + systemCPUTime) / 1e6, rssMb: maxRSS / 1024 };
}

/** A script of this benchmark, bundled into the same directory. */
function scriptPath(name: string): string {
  return fileURLToPath(new URL(`./${name}.mjs`, import.meta.url));
}

const volumes = Number(process.argv.find((arg) => arg.startsWith("--volumes="))?.split("=")[1] ?? VOLUMES);
inProcess(volumes);
await commandLine(volumes);
