/**
 * The sidecars under load: attaching, detaching, provisioning and expanding many volumes at once, with a driver that
 * costs little. Against the real kube-apiserver where KUBEBUILDER_ASSETS names it, else against the embedded one;
 * compared with the libraries alone (`bare.ts`), and with the reference sidecars where REFERENCE_SIDECARS names a
 * directory with csi-attacher, csi-provisioner and csi-resizer. Ours are the built command, so build first.
 *
 * The marks were set from figures of the reference on one machine, and machines differ and change: where the reference
 * runs along, a mark is the same share of what the reference needs here, else its plain figure. "CPU s of the
 * server", "driver" and "bench" is what API server and etcd, the CSI driver and this program used meanwhile: their sum,
 * divided by the cores, is a time that no sidecar can be faster than.
 *
 *   npm run bench -- sidecars [--attach=1000] [--provision=500] [--expand=300] [--rounds=1] [--warm] [--quick] [--defaults] [--big]
 *     [--reference-defaults] [--attacher]
 *
 * `--rounds`: so many times in turns, and the median of each figure, since a machine's speed changes by the minute;
 * `--warm`: everything is done once before it is timed, as in a process that has run for a while; `--quick`: no
 * libraries alone, no count of requests; `--attacher`: our attacher and the reference's by themselves, which attach and
 * detach; `--defaults`: also with default flags; `--big`: also the memory with 10,000 volumes with attachments and
 * 20,000 pods.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import type { Target } from "../apiserver/raw-http.ts";
import { type Server, startOurs, startReal } from "../apiserver/servers.ts";
import { startCountingProxy } from "./counting-proxy.ts";
import {
  attachment,
  basics,
  claim,
  following,
  paths,
  pod,
  type Request,
  range,
  read,
  sendAll,
  volume,
} from "./objects.ts";
import { bare, type Contender, cpuMsOf, hasReference, ours, type Program, reference } from "./programs.ts";

const option = (name: string, fallback: number) =>
  Number(process.argv.find((arg) => arg.startsWith(`--${name}=`))?.split("=")[1] ?? fallback);
const has = (name: string) => process.argv.includes(`--${name}`);
const counts = {
  attach: option("attach", 1000),
  provision: has("attacher") ? 0 : option("provision", 500),
  expand: has("attacher") ? 0 : option("expand", 300),
};
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Figures by measure, then by contender: one a round. */
const figures = new Map<string, Map<string, number[]>>();
/** What ours are to reach, by measure, and what the reference needed where that was set; without it the plain figure counts. */
const marks: Readonly<Record<string, { readonly figure: number; readonly reference?: number }>> = {
  "attach, wall s": { figure: 2, reference: 2.3 },
  "attach, CPU s": { figure: 1, reference: 0.83 },
  "detach, wall s": { figure: 1.7, reference: 1.9 },
  "provision, wall s": { figure: 1.8 }, // With the intent stored, which the reference does not do.
  "expand, wall s": { figure: 1, reference: 1 },
  "start to first item, s": { figure: 0.5, reference: 0.15 },
  "idle, MiB": { figure: 120 },
};

function note(contender: string, measure: string, value: number): void {
  const values = figures.get(measure) ?? new Map<string, number[]>();
  values.set(contender, [...(values.get(contender) ?? []), value]);
  figures.set(measure, values);
  console.log(`  ${contender}: ${measure.padEnd(34)} ${value.toFixed(2)}`);
}

/** One cluster with a driver, and a place for files. */
interface Stage {
  readonly server: Server;
  readonly socket: string;
  readonly kubeconfig: string;
  /** CPU time that all but the sidecars have used, in milliseconds, by what they are. */
  othersCpuMs(): ReadonlyMap<string, number>;
  /** A kubeconfig of another URL without credentials. */
  kubeconfigOf(url: string): string;
  end(): Promise<void>;
}

async function setUp(): Promise<Stage> {
  const directory = mkdtempSync("/tmp/ls-bench-");
  const server =
    process.env.KUBEBUILDER_ASSETS === undefined ? await startOurs(process.cwd()) : await startReal();
  const socket = join(directory, "csi.sock");
  const driver: ChildProcess = spawn(
    process.execPath,
    [fileURLToPath(new URL("./driver.mjs", import.meta.url)), socket],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  await once(driver.stdout as NodeJS.ReadableStream, "data");
  let files = 0;
  const write = (cluster: object, user: object) => {
    const path = join(directory, `kubeconfig-${files++}`);
    const config = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "bench", cluster }],
      users: [{ name: "bench", user }],
      contexts: [{ name: "bench", context: { cluster: "bench", user: "bench" } }],
      "current-context": "bench",
    };
    writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
    return path;
  };
  const { host, port, ca, token } = server.target;
  const data = Buffer.from(ca).toString("base64");
  await sendAll(server.target, basics, 1);
  return {
    server,
    socket,
    kubeconfig: write({ server: `https://${host}:${port}`, "certificate-authority-data": data }, { token }),
    othersCpuMs: () =>
      new Map([
        ["server", server.cpuMs()],
        ["driver", cpuMsOf(driver.pid as number)],
        ["bench", cpuMsOf(process.pid)],
      ]),
    kubeconfigOf: (url) => write({ server: url }, {}),
    async end() {
      driver.kill("SIGKILL");
      await server.stop();
      rmSync(directory, { recursive: true });
    },
  };
}

const isAttached = (line: string) => line.includes('"attached":true');
const isDeleted = (line: string) => line.startsWith('{"type":"DELETED"');
const isAdded = (line: string) => line.startsWith('{"type":"ADDED"');
const hasGrown = (line: string) => line.includes('"capacity":{"storage":"2Gi"}');

/** The four kinds of work, each a batch of requests and how it is known to be done. */
function work(target: Target, prefix: string) {
  const until = async (
    requests: readonly Request[],
    path: string,
    matches: (line: string) => boolean,
    begun: () => void = () => {},
  ) => {
    const { end } = await following(target, path, requests.length, matches);
    begun();
    await sendAll(target, requests);
    await end;
  };
  return {
    prepareAttach: (count: number) =>
      sendAll(
        target,
        range(count).map((i) => volume(`${prefix}-pv-${i}`)),
      ),
    attach: (count: number, begun?: () => void) =>
      until(
        range(count).map((i) => attachment(`${prefix}-va-${i}`, `${prefix}-pv-${i}`)),
        paths.attachments,
        isAttached,
        begun,
      ),
    detach: (count: number, begun?: () => void) =>
      until(
        range(count).map((i) => ({ method: "DELETE", path: `${paths.attachments}/${prefix}-va-${i}` })),
        paths.attachments,
        isDeleted,
        begun,
      ),
    provision: (count: number, begun?: () => void) =>
      until(
        range(count).map((i) => claim(`${prefix}-claim-${i}`)),
        paths.volumes,
        isAdded,
        begun,
      ),
    /** What the persistent-volume controller does with claim and volume. */
    async bind(count: number) {
      const names = range(count).map((i) => `${prefix}-claim-${i}`);
      const { items } = (await read(target, paths.claims)) as {
        readonly items: readonly { readonly metadata: { readonly name: string; readonly uid: string } }[];
      };
      const uids = new Map(items.map(({ metadata }) => [metadata.name, metadata.uid]));
      const spec = (name: string) => ({ volumeName: `pvc-${uids.get(name)}` });
      const status = { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" } };
      await sendAll(
        target,
        names.map((name) => ({
          method: "PATCH",
          path: `${paths.claims}/${name}`,
          body: { spec: spec(name) },
        })),
      );
      await sendAll(
        target,
        names.map((name) => ({ method: "PATCH", path: `${paths.claims}/${name}/status`, body: { status } })),
      );
    },
    expand: (count: number, begun?: () => void) =>
      until(
        range(count).map((i) => ({
          method: "PATCH",
          path: `${paths.claims}/${prefix}-claim-${i}`,
          body: { spec: { resources: { requests: { storage: "2Gi" } } } },
        })),
        paths.claims,
        hasGrown,
        begun,
      ),
  };
}

/** Times one kind of work, and its CPU until all is quiet. */
async function timed(
  contender: string,
  what: string,
  stage: Stage,
  program: Program,
  run: (begun: () => void) => Promise<void>,
): Promise<void> {
  await sleep(500);
  let beganMs = 0;
  const cpuMs = program.cpuMs();
  const othersCpuMs = stage.othersCpuMs();
  await run(() => {
    beganMs = performance.now();
  });
  const wallMs = performance.now() - beganMs;
  const othersEndMs = stage.othersCpuMs();
  await sleep(1000);
  note(contender, `${what}, wall s`, wallMs / 1000);
  note(contender, `${what}, CPU s`, (program.cpuMs() - cpuMs) / 1000);
  for (const [other, ms] of othersEndMs) {
    note(contender, `${what}, CPU s of the ${other}`, (ms - (othersCpuMs.get(other) ?? 0)) / 1000);
  }
}

/** @param counted how many requests each volume takes is counted too */
async function measure(contender: Contender, lifted: boolean, counted = false): Promise<void> {
  const name = lifted ? contender.name : `${contender.name}, default flags`;
  const stage = await setUp();
  try {
    const { target } = stage.server;
    const first = work(target, "first");
    await first.prepareAttach(1);
    await sendAll(target, [attachment("first-va-0", "first-pv-0")]);
    const { end: attached } = await following(target, paths.attachments, 1, isAttached);
    const startMs = performance.now();
    const program = contender.start(stage, lifted);
    await attached;
    note(name, "start to first item, s", (performance.now() - startMs) / 1000);
    await sleep(5000);
    note(name, "idle, MiB", program.residentMb());

    if (has("warm")) {
      const before = work(target, "before");
      await before.prepareAttach(counts.attach);
      await before.attach(counts.attach);
      await before.detach(counts.attach);
      await before.provision(counts.provision);
      await before.bind(counts.expand);
      await before.expand(counts.expand);
    }
    const main = work(target, "main");
    await main.prepareAttach(counts.attach);
    await timed(name, "attach", stage, program, (begun) => main.attach(counts.attach, begun));
    note(name, "after attaching, MiB", program.residentMb());
    await timed(name, "detach", stage, program, (begun) => main.detach(counts.attach, begun));
    if (counts.provision > 0) {
      await timed(name, "provision", stage, program, (begun) => main.provision(counts.provision, begun));
    }
    if (counts.expand > 0) {
      await main.bind(counts.expand);
      await timed(name, "expand", stage, program, (begun) => main.expand(counts.expand, begun));
    }
    note(name, "after all, MiB", program.residentMb());
    await program.stop();
    if (counted && contender !== bare) await countRequests(contender, stage);
  } finally {
    await stage.end();
  }
}

/** Requests for each volume, in a pass of its own. */
async function countRequests(contender: Contender, stage: Stage): Promise<void> {
  const volumes = 40;
  const proxy = await startCountingProxy(stage.server.target);
  const program = contender.start({ ...stage, kubeconfig: stage.kubeconfigOf(proxy.url) }, true);
  const counted = work(stage.server.target, "counted");
  const passes: readonly (readonly ["detach" | keyof typeof counts, () => Promise<void>])[] = [
    ["attach", () => counted.attach(volumes)],
    ["detach", () => counted.detach(volumes)],
    ["provision", () => counted.provision(volumes)],
    ["expand", () => counted.expand(volumes)],
  ];
  await counted.prepareAttach(volumes);
  await sleep(5000);
  for (const [what, run] of passes) {
    if (counts[what === "detach" ? "attach" : what] === 0) continue;
    if (what === "expand") await counted.bind(volumes);
    await sleep(2000);
    proxy.take();
    await run();
    await sleep(2000);
    const taken = [...proxy.take()].sort(([a], [b]) => (a < b ? -1 : 1));
    const writes = taken.filter(([key]) => !/^(GET|WATCH) | events$| leases$/.test(key));
    const each = writes.reduce((total, [, count]) => total + count, 0) / volumes;
    note(contender.name, `${what}, writes each`, each);
    for (const [key, count] of taken) console.log(`      ${key.padEnd(44)} ${(count / volumes).toFixed(2)}`);
  }
  await program.stop();
  proxy.close();
}

/** Memory with many objects that are all in their desired state. */
async function measureBig(contenders: readonly Contender[]): Promise<void> {
  const [volumes, pods] = [option("big-volumes", 10_000), option("big-pods", 20_000)];
  const stage = await setUp();
  try {
    const { target } = stage.server;
    const names = range(volumes).map((i) => `big-${i}`);
    await sendAll(
      target,
      names.map((name) => volume(name, true)),
    );
    await sendAll(
      target,
      names.map((name) => attachment(name, name, true)),
    );
    const status = { attached: true, attachmentMetadata: { devicePath: "/dev/xvdba" } };
    await sendAll(
      target,
      names.map((name) => ({
        method: "PATCH",
        path: `${paths.attachments}/${name}/status`,
        body: { status },
      })),
    );
    await sendAll(
      target,
      range(pods).map((i) => pod(`big-${i}`, `claim-${i}`)),
    );
    for (const contender of contenders) {
      const program = contender.start(stage, true);
      await sleep(20_000);
      note(contender.name, `beside ${volumes} volumes, MiB`, program.residentMb());
      note(contender.name, `beside ${volumes} volumes, start CPU s`, program.cpuMs() / 1000);
      await program.stop();
    }
  } finally {
    await stage.end();
  }
}

const median = (values: readonly number[]): number | undefined =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

function verdict(measure: string, own: number | undefined, theirs: number | undefined): string {
  const mark = marks[measure];
  if (mark === undefined || own === undefined) return "";
  const { figure, reference: then } = mark;
  if (theirs === undefined || then === undefined) return `   ≤ ${figure}${own > figure ? " missed" : ""}`;
  const share = figure / then;
  return `   ≤ ${share.toFixed(2)} of the reference${own > share * theirs ? " missed" : ""}`;
}

function printTable(): void {
  const names = [...new Set([...figures.values()].flatMap((values) => [...values.keys()]))];
  console.log(
    `\n${"".padEnd(36)}${names.map((name) => name.padStart(26)).join("")}    to libraries      to reference   mark`,
  );
  for (const [measure, values] of figures) {
    const typical = (name: string) => median(values.get(name) ?? []);
    const cells = names.map((name) => (typical(name)?.toFixed(2) ?? "").padStart(26));
    const own = typical("longshore");
    const ratios = [bare.name, "reference"].map((name) => {
      const theirs = typical(name);
      return (own === undefined || theirs === undefined ? "" : (own / theirs).toFixed(2)).padStart(18);
    });
    console.log(
      `${measure.padEnd(36)}${cells.join("")}${ratios.join("")}${verdict(measure, own, typical("reference"))}`,
    );
  }
}

const directory = process.env.REFERENCE_SIDECARS;
const contenders = [
  ours(process.cwd(), has("attacher")),
  ...(hasReference(directory) ? [reference(directory, has("attacher"))] : []),
];
for (const round of range(option("rounds", 1))) {
  for (const contender of has("quick") ? contenders : [...contenders, bare]) {
    await measure(contender, true, !has("quick") && round === 0);
  }
}
if (has("defaults")) {
  for (const contender of contenders) {
    if (contender.name === "longshore" || has("reference-defaults")) await measure(contender, false);
  }
}
if (has("big")) await measureBig(contenders);
printTable();
