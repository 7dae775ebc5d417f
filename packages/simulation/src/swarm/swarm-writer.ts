/** The pods of a swarm's world: each reads what its volume holds and goes on writing, and a history records both. */
import { lastRecord, type Program, recordLine } from "@longshore/local";
import type { Clock, SimulatedHost } from "@longshore/runtime";
import type { OpenDevices } from "./open-devices.ts";
import type { RecordHistory } from "./record-history.ts";
import type { WriterLocks } from "./writer-locks.ts";

/** The container command of the program that writes to a directory: the directory, and the name of the volume. */
export const swarmWriter = "swarm-writer";
/** The same on a device. */
export const swarmDeviceWriter = "swarm-device-writer";
/** Reads what a copy of a volume holds, and ends: the directory, the name of the volume, and since when it may have been copied. */
export const swarmReader = "swarm-reader";

const everyMs = 1000;

/** What the programs of a node report to. */
export interface SwarmProgramsEnv {
  readonly clock: Clock;
  readonly history: RecordHistory;
  readonly devices: OpenDevices;
  readonly locks: WriterLocks;
}

/** The programs on a node. */
export function swarmPrograms(env: SwarmProgramsEnv, host: SimulatedHost): Readonly<Record<string, Program>> {
  const { clock, history, devices, locks } = env;
  /** The program has the lock of its volume until it ends. */
  const alone =
    (program: Program): Program =>
    (run) =>
      locks.alone(run.args[1] ?? "", run.signal, () => program(run));
  return {
    [swarmWriter]: alone(async ({ args, signal }) => {
      const [directory = "", volume = ""] = args;
      const path = `${directory}/records`;
      // A pod on a shared volume has a directory of its own there; the volume itself is never made here.
      const volumeDir = directory.slice(0, directory.lastIndexOf("/"));
      if ((await host.stat(volumeDir)) !== undefined) await host.makeDirectory(directory);
      const text = async () => (await host.readFile(path)) ?? "";
      const last = await readLast(env, volume, text);
      const whole = recordLines(volume, last);
      if (whole !== (await text())) await host.writeFileAtomic(path, whole); // What a crash tore off was never acknowledged.
      return goOnWriting(env, { volume, last, signal }, (number) =>
        host.appendFileDurable(path, `${recordLine(volume, number)}\n`),
      );
    }),
    [swarmReader]: async ({ args }) => {
      const [directory = "", volume = "", fromMs = "0"] = args;
      const text = (await host.readFile(`${directory}/records`)) ?? "";
      await readLast(env, volume, async () => text, Number(fromMs));
      return 0;
    },
    [swarmDeviceWriter]: alone(async ({ args, signal }) => {
      const [path = "", volume = ""] = args;
      const device = host.deviceAt(path);
      if (device === undefined) return 1;
      const close = devices.open(host.name, device, path);
      try {
        const last = await readLast({ clock, history }, volume, () => host.readDevice(path));
        return await goOnWriting(env, { volume, last, signal }, (number) =>
          host.writeDevice(path, recordLines(volume, number)),
        );
      } finally {
        close();
      }
    }),
  };
}

/** The number of the last record; what is no record of the volume is reported. */
async function readLast(
  { clock, history }: Pick<SwarmProgramsEnv, "clock" | "history">,
  volume: string,
  read: () => Promise<string>,
  fromMs = clock.monotonicMs(),
): Promise<number> {
  const text = await read();
  const last = lastRecord(volume, text);
  history.read(history.nameOf(volume), last, fromMs, clock.monotonicMs());
  if (last === 0 && text !== "") history.foreign(volume, text);
  return last;
}

async function goOnWriting(
  { clock, history }: SwarmProgramsEnv,
  from: { readonly volume: string; readonly last: number; readonly signal: AbortSignal },
  write: (number: number) => Promise<void>,
): Promise<never> {
  const { signal } = from;
  const name = history.nameOf(from.volume);
  for (let number = from.last + 1; ; number++) {
    await clock.sleep(everyMs, signal);
    const acknowledge = history.writing(name, number, clock.monotonicMs());
    await write(number);
    // A machine that has lost its power answers no program any more.
    if (signal.aborted) throw signal.reason;
    acknowledge(clock.monotonicMs());
  }
}

function recordLines(volume: string, last: number): string {
  return Array.from({ length: last }, (_, i) => `${recordLine(volume, i + 1)}\n`).join("");
}
