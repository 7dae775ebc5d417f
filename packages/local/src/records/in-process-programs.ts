/**
 * The writer and the reader of records as programs of the in-process cluster: the same records, the same
 * promise (synced before acknowledged), through the node's Host.
 */
import type { Clock, SimulatedHost } from "@longshore/runtime";
import { stampedLine } from "../containers/log-line.ts";
import type { Program } from "../containers/program-pod-runtime.ts";
import { lastRecord, recordLine } from "./records.ts";

/** The container command of the program that appends records. */
export const writerProgram = "writer";
/** The container command of the program that logs the records it finds, and ends. */
export const readerProgram = "reader";
/** The same on the device of a block volume. */
export const deviceWriterProgram = "device-writer";
/** The same on the device of a block volume. */
export const deviceReaderProgram = "device-reader";

/** The programs on a node. */
export function recordPrograms(clock: Clock, host: SimulatedHost): Readonly<Record<string, Program>> {
  const say = async (logFile: string, text: string) => {
    await host.makeDirectory(logFile.slice(0, logFile.lastIndexOf("/")));
    const lines = text.split("\n").map((line) => stampedLine(clock.now(), "stdout", line));
    await host.appendFileDurable(logFile, lines.join(""));
  };
  return {
    [writerProgram]: async ({ sandbox, args, signal }) => {
      const [directory = "", volume = "", everyMs = "1000"] = args;
      const path = `${directory}/records`;
      // One on a shared volume has a directory of its own there; the volume itself is never made here.
      const volumeDir = directory.slice(0, directory.lastIndexOf("/"));
      if ((await host.stat(volumeDir)) !== undefined) await host.makeDirectory(directory);
      const text = (await host.readFile(path)) ?? "";
      let last = lastRecord(volume, text);
      const whole = Array.from({ length: last }, (_, i) => `${recordLine(volume, i + 1)}\n`).join("");
      if (whole !== text) await host.writeFileAtomic(path, whole); // What a crash tore off was never acknowledged.
      await say(sandbox.logFile, `start after ${last}`);
      for (;;) {
        await clock.sleep(Number(everyMs), signal);
        await host.appendFileDurable(path, `${recordLine(volume, last + 1)}\n`);
        last++;
        await say(sandbox.logFile, `ack ${last}`);
      }
    },
    [deviceWriterProgram]: async ({ sandbox, args, signal }) => {
      const [device = "", volume = "", everyMs = "1000"] = args;
      let text = await host.readDevice(device);
      let last = lastRecord(volume, text);
      await say(sandbox.logFile, `start after ${last}`);
      for (;;) {
        await clock.sleep(Number(everyMs), signal);
        last++;
        text += `${recordLine(volume, last)}\n`;
        await host.writeDevice(device, text);
        await say(sandbox.logFile, `ack ${last}`);
      }
    },
    [deviceReaderProgram]: async ({ sandbox, args }) => {
      await say(sandbox.logFile, (await host.readDevice(args[0] ?? "")).trimEnd());
      return 0;
    },
    [readerProgram]: async ({ sandbox, args }) => {
      const text = (await host.readFile(`${args[0]}/records`)) ?? "";
      await say(sandbox.logFile, text.trimEnd());
      return 0;
    },
  };
}
