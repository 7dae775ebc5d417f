/**
 * The attach/detach controller in clusters of several sizes: what one event of a pod costs, and how long it takes after a
 * restart to the first correct decision. Against an API server of maps in the same process.
 *
 *   npm run bench -- volumes [--sizes=1000,10000,50000] [--cycles=60]
 *
 * A cycle is a pod that comes to a node and goes again: a VolumeAttachment is created, the Node written, the
 * VolumeAttachment deleted, the Node written. The ratio is that of the median time of a cycle to the first size's; the goal
 * is at most 1.5, since an event costs in proportion to what it touches. The mean CPU time of a cycle is that of the
 * whole process, its garbage collection included: shown, not judged. "Restart" is from the start, with
 * one attachment that no pod wants, until that is detached: everything is read and populated before.
 */
import { resources } from "@longshore/kube";
import { featureGates, noMeter, silentLogger, systemClock, systemRandom } from "@longshore/runtime";
import { attachmentName } from "@longshore/storage";
import { csiPlugin, startAttachDetachController, volumeGates } from "@longshore/volumes";
import { addNode, addPod, addVolume, attachmentOf, fill, MemoryKube, names } from "./memory-kube.ts";

const word = (name: string) => process.argv.find((arg) => arg.startsWith(`--${name}=`))?.split("=")[1];
const sizes = (word("sizes") ?? "1000,10000,50000").split(",").map(Number);
const cycles = Number(word("cycles") ?? 60);
const warmUp = 10;
names.attachment = attachmentName;

const cpuMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
const median = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

interface Figures {
  readonly size: number;
  readonly restartMs: number;
  readonly restartCpuMs: number;
  readonly cycleMs: number;
  readonly cycleCpuMs: number;
  readonly statusCpuMs: number;
}

async function measure(size: number): Promise<Figures> {
  const kube = new MemoryKube();
  fill(kube, size);
  addNode(kube, "busy", []);
  for (let index = size; index < size + warmUp + cycles; index++) addVolume(kube, index);
  kube.remove("pods", "default/pod-0");
  const began = performance.now();
  const beganCpu = cpuMs();
  const detached = written(kube, "DELETED", (object) => object.metadata.name === attachmentOf(0));
  const controller = startAttachDetachController(
    {
      clock: systemClock,
      random: systemRandom,
      logger: silentLogger,
      meter: noMeter,
      kube: kube.client(),
      plugins: [csiPlugin()],
    },
    { gates: featureGates(volumeGates, { CSIMigrationAWS: true }), verifyPeriodMs: 0 },
  );
  await detached;
  const restart = { restartMs: performance.now() - began, restartCpuMs: cpuMs() - beganCpu };
  await quiet();
  const took: number[] = [];
  let cyclesCpuMs = 0;
  for (let at = 0; at < warmUp + cycles; at++) {
    const cpu = cpuMs();
    const from = performance.now();
    await cycle(kube, size + at);
    if (at < warmUp) continue;
    took.push(performance.now() - from);
    cyclesCpuMs += cpuMs() - cpu;
  }
  const statusCpuMs = await statusEvents(kube);
  await controller.stop();
  return { size, ...restart, cycleMs: median(took), cycleCpuMs: cyclesCpuMs / cycles, statusCpuMs };
}

/** The pod comes, its volume is listed, it goes, and the list is empty. */
async function cycle(kube: MemoryKube, index: number): Promise<void> {
  const listed = written(
    kube,
    "MODIFIED",
    ({ metadata: { name }, status }) => name === "busy" && lists(status) === 1,
  );
  addPod(kube, index, "busy");
  await listed;
  const gone = written(kube, "MODIFIED", ({ metadata: { name, annotations }, status }) => {
    return (
      name === "busy" && lists(status) === 0 && annotations?.["longshore.dev/volumes-uncertain"] === undefined
    );
  });
  kube.remove("pods", `default/pod-${index}`);
  await gone;
}

/** Updates of a pod's status, which bear on nothing: CPU ms of a thousand. */
async function statusEvents(kube: MemoryKube): Promise<number> {
  const cpu = cpuMs();
  for (let at = 0; at < 1000; at++) {
    addPod(kube, 1, "node-0");
    if (at % 50 === 0) await quiet(0);
  }
  await quiet(0);
  return cpuMs() - cpu;
}

function lists(status: unknown): number {
  return (status as { volumesAttached?: unknown[] } | undefined)?.volumesAttached?.length ?? 0;
}

type Written = Parameters<MemoryKube["onWrite"]>;

function written(
  kube: MemoryKube,
  type: Written[0],
  matches: (object: Written[2]) => boolean,
): Promise<void> {
  return new Promise((resolve) => {
    kube.onWrite = (what, plural, object) => {
      const isOne = plural === resources.nodes.plural || plural === resources.volumeAttachments.plural;
      if (isOne && what === type && matches(object)) resolve();
    };
  });
}

const quiet = (ms = 200) => new Promise((resolve) => setTimeout(resolve, ms));

const all: Figures[] = [];
console.log("attachments  restart s  (CPU s)   cycle p50 ms  ratio  CPU ms   1000 status events, CPU ms");
for (const size of sizes) {
  const figures = await measure(size);
  all.push(figures);
  const ratio = figures.cycleMs / (all[0]?.cycleMs ?? Number.NaN);
  console.log(
    [
      String(size).padStart(11),
      (figures.restartMs / 1000).toFixed(2).padStart(10),
      (figures.restartCpuMs / 1000).toFixed(2).padStart(8),
      figures.cycleMs.toFixed(1).padStart(14),
      ratio.toFixed(2).padStart(6),
      figures.cycleCpuMs.toFixed(2).padStart(7),
      figures.statusCpuMs.toFixed(1).padStart(20),
    ].join(" "),
  );
}
const worst = Math.max(...all.map(({ cycleMs }) => cycleMs)) / (all[0]?.cycleMs ?? Number.NaN);
if (worst > 1.5) {
  console.error(
    `an event takes up to ${worst.toFixed(2)} times as long as in the first cluster; the goal is 1.5`,
  );
  process.exitCode = 1;
}
