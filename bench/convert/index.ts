/**
 * Converts many PersistentVolumes in one run, and has a bare client do the same writes on as many others, with the same number at the
 * same time, against the same API server and controllers.
 *
 *   npm run bench -- convert [--volumes=1000] [--parallel=16]
 *
 * Shown: volumes a second of both, their ratio, the processor time of this process for a volume of each, and the requests that one
 * volume costs. The marks: at most 1.5 times the time of the
 * bare client, and at most 30 requests a volume. Needs `npm run build`.
 */
import { fork } from "node:child_process";
import { once, setMaxListeners } from "node:events";
import { fileURLToPath } from "node:url";
import { createHttpClient, fixedCredential, type KubeClient, resources } from "@longshore/kube";
import { newJournal, planConversion, runConversion } from "@longshore/migration";
import { noMeter, SimulatedHost, silentLogger, systemClock, systemRandom } from "@longshore/runtime";
import { claimOf, csiVolumeOf, namespace } from "./pairs.ts";

const option = (name: string, fallback: number) =>
  Number(process.argv.find((arg) => arg.startsWith(`--${name}=`))?.split("=")[1] ?? fallback);
const count = option("volumes", 1000);
const parallel = option("parallel", 16);
const marks = { ratio: 1.5, requests: 30 };
const { signal } = new AbortController();
setMaxListeners(0, signal);
const env = { clock: systemClock, random: systemRandom, logger: silentLogger, meter: noMeter };

/** Processor time that this process has used, in milliseconds. */
function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** How often each verb is called. */
function counting(kube: KubeClient, counts: Map<string, number>): KubeClient {
  return new Proxy(kube, {
    get(target, key) {
      const member = target[key as keyof KubeClient] as unknown;
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => {
        const what = `${String(key)} ${(args[0] as { kind?: string }).kind ?? ""}`;
        counts.set(what, (counts.get(what) ?? 0) + 1);
        return Reflect.apply(member, target, args);
      };
    },
  });
}

/** Runs the work for each number, so many at the same time; resolves with the seconds. */
async function timed(work: (at: number) => Promise<void>): Promise<number> {
  const start = performance.now();
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return (performance.now() - start) / 1000;
}

/** The writes of one volume, and what has to be waited for, without a check of anything. */
async function bareVolume(kube: KubeClient, name: string, journalWrites: number): Promise<void> {
  const old = { name: `pv-${name}` };
  const claim = { namespace, name };
  const policy = (value: string) =>
    ({ type: "merge", body: { spec: { persistentVolumeReclaimPolicy: value } } }) as const;
  const until = async (holds: () => Promise<boolean>) => {
    while (!(await holds())) await systemClock.sleep(20, signal);
  };
  const metadata = { namespace: "kube-system", name: `bare-${name}` };
  const data = { "journal.json": "x".repeat(4000) };
  for (let write = 0; write < journalWrites; write++) {
    if (write === 0) await kube.create(resources.configMaps, { metadata, data }, { signal });
    else
      await kube.patch(
        resources.configMaps,
        metadata,
        { type: "merge", body: { data: { "journal.json": `${write}${"x".repeat(4000)}` } } },
        { signal },
      );
  }
  await kube.patch(resources.persistentVolumes, old, policy("Retain"), { signal });
  await kube.create(resources.persistentVolumes, csiVolumeOf(name), { signal });
  await kube.delete(resources.persistentVolumeClaims, claim, { signal });
  await until(
    async () => (await kube.get(resources.persistentVolumeClaims, claim, { signal })) === undefined,
  );
  await kube.create(resources.persistentVolumeClaims, claimOf(name, `pv-${name}-csi`), { signal });
  await until(async () => {
    const stored = await kube.get(resources.persistentVolumeClaims, claim, { signal });
    return stored?.status?.phase === "Bound";
  });
  await kube.delete(resources.persistentVolumes, old, { signal });
  await until(async () => (await kube.get(resources.persistentVolumes, old, { signal })) === undefined);
  await kube.patch(resources.persistentVolumes, { name: `pv-${name}-csi` }, policy("Delete"), { signal });
}

const script = fileURLToPath(new URL("./server.mjs", import.meta.url));
const child = fork(script, [process.cwd(), String(count)]);
try {
  const [where] = (await once(child, "message")) as [{ server: string; ca: string; token: string }];
  const credentials = fixedCredential({ authorization: `Bearer ${where.token}` });
  const http = createHttpClient(env, { server: where.server, ca: where.ca, credentials });
  const counts = new Map<string, number>();
  const host = new SimulatedHost({ name: "bench" });
  const ours = { ...env, host, kube: counting(http, counts) };
  const names = new Set(Array.from({ length: count }, (_, at) => `pv-a-${at}`));
  const planStart = performance.now();
  const plan = await planConversion(ours, { volumes: [...names] }, signal);
  const planSeconds = (performance.now() - planStart) / 1000;
  if (plan.volumes.length !== count) throw new Error(`refused: ${JSON.stringify(plan.refused[0])}`);
  const planRequests = [...counts.values()].reduce((sum, each) => sum + each, 0);
  counts.clear();
  const start = performance.now();
  const processor = processorMs();
  const journals = plan.volumes.map((planned) => newJournal(planned, plan.clusterId, "convert"));
  const result = await runConversion(ours, journals, { journalDir: "/journals", parallel }, signal);
  const seconds = (performance.now() - start) / 1000;
  const oursMs = (processorMs() - processor) / count;
  if (result.failed.length > 0) throw result.failed[0]?.error;
  const requests = [...counts.values()].reduce((sum, each) => sum + each, 0) / count;
  const journalWrites = Math.round(
    ((counts.get("create ConfigMap") ?? 0) + (counts.get("update ConfigMap") ?? 0)) / count,
  );
  const processorBefore = processorMs();
  const bare = await timed((at) => bareVolume(http, `b-${at}`, journalWrites));
  const bareMs = (processorMs() - processorBefore) / count;
  const rate = (of: number) => `${(count / of).toFixed(1)} volumes/s`;
  console.log(`plan: ${planSeconds.toFixed(1)} s, ${(planRequests / count).toFixed(1)} requests a volume`);
  console.log(`convert: ${rate(seconds)}; bare client with ${journalWrites} journal writes: ${rate(bare)}`);
  console.log(`ratio of times: ${(seconds / bare).toFixed(2)} (mark ${marks.ratio})`);
  console.log(
    `processor time of the client: ${oursMs.toFixed(1)} ms a volume, of the bare one ${bareMs.toFixed(1)} ms`,
  );
  console.log(`requests a volume: ${requests.toFixed(1)} (mark ${marks.requests})`);
  for (const [what, number] of [...counts].sort(([, a], [, b]) => b - a))
    console.log(`  ${what}: ${(number / count).toFixed(2)}`);
  if (seconds / bare > marks.ratio || requests > marks.requests) process.exitCode = 1;
  await http.close();
} finally {
  child.disconnect();
}
