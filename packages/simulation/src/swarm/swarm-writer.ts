/** The pods of a swarm's world: each reads what its volume holds and goes on writing, and a history records both. */
import { lastRecord, type Program, recordLine } from "@longshore/local";
import type { Clock, SimulatedHost } from "@longshore/runtime";
import type { RecordHistory } from "./record-history.ts";

/** The container command of the program. */
export const swarmWriter = "swarm-writer";

const everyMs = 1000;

/** The programs on a node. */
export function swarmPrograms(
  clock: Clock,
  history: RecordHistory,
  host: SimulatedHost,
): Readonly<Record<string, Program>> {
  return {
    [swarmWriter]: async ({ args, signal }) => {
      const [directory = "", volume = ""] = args;
      const path = `${directory}/records`;
      // A pod on a shared volume has a directory of its own there; the volume itself is never made here.
      const volumeDir = directory.slice(0, directory.lastIndexOf("/"));
      if ((await host.stat(volumeDir)) !== undefined) await host.makeDirectory(directory);
      const fromMs = clock.monotonicMs();
      const text = (await host.readFile(path)) ?? "";
      let last = lastRecord(volume, text);
      history.read(volume, last, fromMs, clock.monotonicMs());
      const whole = Array.from({ length: last }, (_, i) => `${recordLine(volume, i + 1)}\n`).join("");
      if (whole !== text) await host.writeFileAtomic(path, whole); // What a crash tore off was never acknowledged.
      for (;;) {
        await clock.sleep(everyMs, signal);
        const acknowledge = history.writing(volume, last + 1, clock.monotonicMs());
        await host.appendFileDurable(path, `${recordLine(volume, last + 1)}\n`);
        // A machine that has lost its power answers no program any more.
        if (signal.aborted) throw signal.reason;
        last++;
        acknowledge(clock.monotonicMs());
      }
    },
  };
}
