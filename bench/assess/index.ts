/**
 * `longshore assess` on a large cluster, live, from a tree of files and from one file of more than a gigabyte, compared in the same run with a program that only reads and
 * parses the same objects and keeps nothing of them.
 *
 *   npm run bench -- assess [--volumes=100000] [--nodes=5000] [--pods=150000] [--rounds=3]
 *
 * Marks: at most 1.5 times the time of the bare program, in less than 1 GB. Processor time is shown as well: it has the threads of the
 * garbage collector in it, and says whether others used the machine meanwhile. Rounds take turns; shown are medians of the times and the largest of the sizes. Needs
 * `npm run build`.
 */
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { clusterLists } from "./objects.ts";
import { writeOneFile, writePages } from "./pages.ts";

const option = (name: string, fallback: number) =>
  Number(process.argv.find((arg) => arg.startsWith(`--${name}=`))?.split("=")[1] ?? fallback);
const size = {
  volumes: option("volumes", 100_000),
  nodes: option("nodes", 5000),
  pods: option("pods", 150_000),
};
const rounds = option("rounds", 3);
const script = (name: string) => fileURLToPath(new URL(`./${name}.mjs`, import.meta.url));
const largestMb = 1000;
const largestRatio = 1.5;

interface Usage {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly rssMb: number;
}

/** Runs a script with its output thrown away; it reports what it used on descriptor 3. */
async function used(args: readonly string[]): Promise<Usage> {
  const start = performance.now();
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "ignore", "inherit", "pipe"],
    // The reader of kubeconfigs requires its parser at run time.
    env: { ...process.env, NODE_PATH: join(process.cwd(), "node_modules") },
  });
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

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
}

/** True when the marks are reached. */
async function compare(name: string, bare: readonly string[], ours: readonly string[]): Promise<boolean> {
  const results = { bare: [] as Usage[], ours: [] as Usage[] };
  for (let round = 0; round < rounds; round++) {
    results.bare.push(await used([script("bare"), ...bare]));
    results.ours.push(await used([script("assess-cli"), ...ours]));
  }
  const of = (key: keyof Usage, who: "bare" | "ours") => median(results[who].map((usage) => usage[key]));
  for (const who of ["bare", "ours"] as const) {
    console.log(
      `  ${name} ${who === "bare" ? "reading and parsing" : "longshore assess   "}  ${of("seconds", who).toFixed(2).padStart(6)} s` +
        `   processor ${of("cpuSeconds", who).toFixed(2).padStart(6)} s   ${Math.max(
          ...results[who].map(({ rssMb }) => rssMb),
        )
          .toFixed(0)
          .padStart(5)} MB`,
    );
  }
  const ratio = of("seconds", "ours") / of("seconds", "bare");
  const cpuRatio = of("cpuSeconds", "ours") / of("cpuSeconds", "bare");
  const isReached = ratio <= largestRatio && results.ours.every(({ rssMb }) => rssMb < largestMb);
  console.log(
    `  ${name} ratio ${ratio.toFixed(2)} (wall), ${cpuRatio.toFixed(2)} (processor); mark: at most ${largestRatio} in less than ${largestMb} MB: ${isReached ? "reached" : "MISSED"}`,
  );
  return isReached;
}

const directory = mkdtempSync(join(tmpdir(), "longshore-assess-"));
try {
  const pages = join(directory, "pages");
  const { bytes, objects } = writePages(pages, size);
  console.log(
    `${objects} objects: ${JSON.stringify(size)}, ${(bytes / 1e6).toFixed(0)} MB of JSON, ${rounds} rounds`,
  );
  const server = fork(script("server"), [pages, process.cwd()], {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  try {
    const [line] = (await once(server.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
    const where = line.toString().trim();
    const { port, ca } = JSON.parse(where) as { port: number; ca: string };
    const kubeconfig = join(directory, "kubeconfig");
    const cluster = {
      server: `https://127.0.0.1:${port}`,
      "certificate-authority-data": Buffer.from(ca).toString("base64"),
    };
    writeFileSync(
      kubeconfig,
      JSON.stringify({
        apiVersion: "v1",
        kind: "Config",
        "current-context": "bench",
        clusters: [{ name: "bench", cluster }],
        users: [{ name: "bench", user: {} }],
        contexts: [{ name: "bench", context: { cluster: "bench", user: "bench" } }],
      }),
    );
    const flags = ["assess", "--target-version", "1.27"];
    const paths = clusterLists(size).map(({ path }) => path);
    const live = await compare("live    ", ["live", where, ...paths], [...flags, "--kubeconfig", kubeconfig]);
    const offline = await compare("offline ", ["offline", pages], [...flags, "-f", pages]);
    // The same in one file, which no program could parse as one text.
    const oneFile = join(directory, "dump.json");
    writeOneFile(oneFile, size);
    const inOne = await compare("one file", ["offline", pages], [...flags, "-f", oneFile]);
    if (!live || !offline || !inOne) process.exitCode = 1;
  } finally {
    server.kill();
  }
} finally {
  rmSync(directory, { recursive: true });
}
