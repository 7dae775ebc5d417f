/**
 * How soon a volume is mounted: from the pod that is assigned to its node, with a bound claim, to the volume that is mounted for it.
 *
 *   npm run bench -- mount [--volumes=20] [--noted=5]
 *
 * Controllers, sidecars, driver and node agent run in this process, as shipped, on the embedded API server, a process of its own
 * that is reached over HTTPS. They mount one volume after the other. The reference is the bare sequence (`bare.ts`): the same
 * requests, calls of the same driver and mounts one after the other, without any controller, on the same server in the same
 * run. Both take turns in blocks; the controllers are stopped during those of the bare sequence. The goal is at most 1.5 times
 * the median of the reference.
 *
 * Afterwards `--noted` more volumes are mounted while requests and timers are noted. Shown are the requests of the last one, what
 * only it or only the bare sequence asks, and every timer that ran to its end before its volume was mounted: on this way
 * nothing should wait for time.
 *
 * The server is the built command: run `npm run build` first.
 */
import { noMeter, silentLogger, systemRandom } from "@longshore/runtime";
import { startOurs as startServer } from "../apiserver/servers.ts";
import { connect } from "../attach/client.ts";
import { createBare } from "./bare.ts";
import type { Mounted } from "./objects.ts";
import { type Ours, startOurs } from "./ours.ts";
import { type NotedRequest, notingClient } from "./requests.ts";
import { type NotingClock, notingClock } from "./waits.ts";

const option = (name: string, fallback: number) =>
  Number(process.argv.find((arg) => arg.startsWith(`--${name}=`))?.split("=")[1] ?? fallback);
const volumes = option("volumes", 20);
const notedVolumes = option("noted", 5);
const goal = 1.5;
const blocks = 2;
/** Volumes that are mounted first in each block: before that, much of the code that is measured is not compiled yet. */
const warmUps = 30;
let isNoting = false;

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Mounts so many volumes, one after the other, after a warm-up. @returns the times, in milliseconds */
async function block(prefix: string, mountOne: (name: string) => Promise<Mounted>): Promise<number[]> {
  const times: number[] = [];
  for (let index = -warmUps; index < volumes / blocks; index++) {
    const { tookMs } = await mountOne(`${prefix}-${index + warmUps}`);
    if (index >= 0) times.push(tookMs);
  }
  return times;
}

/** @returns the requests of the last one that began before its volume was mounted */
async function showNotes(ours: Ours, clock: NotingClock): Promise<readonly NotedRequest[]> {
  isNoting = true;
  let made: readonly NotedRequest[] = [];
  for (let index = 0; index < notedVolumes; index++) {
    ours.takeRequests();
    const { beganMs, tookMs } = await ours.mountOne(`noted-${index}`);
    const requests = ours.takeRequests();
    made = during(requests, { beganMs, tookMs });
    if (index === notedVolumes - 1) showRequests(requests, beganMs, tookMs);
  }
  const ended = [...clock.ended()];
  console.log(`timers that ended by time while ${notedVolumes} volumes were mounted: ${ended.length}`);
  for (const [name, count] of ended) console.log(`  ${count} x ${name}`);
  return made;
}

const during = (requests: readonly NotedRequest[], { beganMs, tookMs }: Mounted): NotedRequest[] =>
  requests.filter((request) => request.beganMs >= beganMs && request.beganMs < beganMs + tookMs);

/** The reference is only one if it asks the same. */
function showDifference(ours: readonly NotedRequest[], bare: readonly NotedRequest[]): void {
  const without = (all: readonly NotedRequest[], others: readonly NotedRequest[]): string => {
    const left = others.map(({ what }) => what);
    const only = all.filter(({ what }) => {
      const index = left.indexOf(what);
      if (index >= 0) left.splice(index, 1);
      return index < 0;
    });
    return only.map(({ what }) => what).join(", ") || "none";
  };
  console.log(`requests until it is mounted: ours ${ours.length}, bare sequence ${bare.length}`);
  console.log(`  only ours: ${without(ours, bare)}; only the bare sequence: ${without(bare, ours)}`);
}

function showRequests(requests: readonly NotedRequest[], beganMs: number, tookMs: number): void {
  console.log(`requests of one volume, mounted after ${tookMs.toFixed(1)} ms (began, ended):`);
  for (const { by, what, beganMs: began, endedMs } of requests) {
    const cells = [began - beganMs, endedMs - beganMs].map((value) => value.toFixed(1).padStart(7));
    console.log(`  ${cells.join(" ")}  ${by}: ${what}`);
  }
}

function report(oursMs: number, bareMs: number): void {
  const ratio = oursMs / bareMs;
  console.log(`median of ${volumes}, ms: ours ${oursMs.toFixed(1)}, bare sequence ${bareMs.toFixed(1)}`);
  console.log(`ratio ${ratio.toFixed(2)}, goal ${goal}${ratio > goal ? ": missed" : ""}`);
  if (ratio > goal) process.exitCode = 1;
}

const server = await startServer(process.cwd());
try {
  const clock = notingClock();
  const env = { clock, random: systemRandom, logger: silentLogger, meter: noMeter };
  const { host, port, ca, token } = server.target;
  const kube = connect({ server: `https://${host}:${port}`, ca, token });
  const times = { ours: [] as number[], bare: [] as number[] };
  for (let turn = 0; turn < blocks; turn++) {
    const ours = await startOurs(env, kube, (is) => clock.note(is && isNoting));
    times.ours.push(...(await block(`ours-${turn}`, ours.mountOne)));
    const isLast = turn === blocks - 1;
    const made = isLast ? await showNotes(ours, clock) : [];
    await ours.stop();
    const requests: NotedRequest[] = [];
    const noting = notingClient(kube, "bare", (request) => requests.push(request));
    const bare = await createBare(env, noting);
    times.bare.push(...(await block(`bare-${turn}`, bare)));
    if (isLast) showDifference(made, during(requests, await bare("noted")));
  }
  report(median(times.ours), median(times.bare));
} finally {
  await server.stop();
}
process.exit();
