/** The calls that a cluster's driver has answered, written down at each place and read back in one order. */
import type { ServedCall } from "@longshore/csi";
import { type Clock, type Host, KeyedLock } from "@longshore/runtime";

/** One call, where and when. */
export interface DriverCall extends ServedCall {
  /** `controller`, or the name of the node. */
  readonly place: string;
  /** Wall-clock milliseconds when it was answered. */
  readonly atMs: number;
}

/** Returns a function that appends calls of one place to the file, one line each, in the order of its calls. */
export function driverCallWriter(
  env: { readonly clock: Clock; readonly host: Host },
  file: string,
  place: string,
): (call: ServedCall) => Promise<void> {
  const lock = new KeyedLock();
  let isMade = false;
  return (call) =>
    lock.run(file, async () => {
      if (!isMade) await env.host.makeDirectory(file.slice(0, file.lastIndexOf("/")));
      isMade = true;
      const line: DriverCall = { place, atMs: env.clock.now().getTime(), ...call };
      await env.host.appendFileDurable(file, `${JSON.stringify(line)}\n`);
    });
}

/** All calls in these files, in the order of time. A line that a crash cut off is left out. */
export async function readDriverCalls(host: Host, files: readonly string[]): Promise<readonly DriverCall[]> {
  const texts = await Promise.all(files.map((file) => host.readFile(file)));
  const calls = texts.flatMap((text) => (text ?? "").split("\n").flatMap(parse));
  return calls.sort((a, b) => a.atMs - b.atMs);
}

function parse(line: string): DriverCall[] {
  try {
    return line === "" ? [] : [JSON.parse(line) as DriverCall];
  } catch {
    return [];
  }
}
