/** A component as the work of a process. */
import { systemClock } from "@longshore/runtime/basics";
import { InterruptedError, interruptible, makeOutputOptional, reportFailure, untilAborted } from "../exit.ts";

const stopWithinMs = 5000;

/** Runs a component until SIGTERM or Ctrl-C, which is its ordinary end, or until it ends by itself. */
export async function untilInterrupted(
  start: () => Promise<{ readonly ended: Promise<string>; stop(): Promise<void> }>,
): Promise<void> {
  makeOutputOptional();
  await interruptible(async (signal) => {
    // What is still starting, such as a wait for a driver, has nothing to put in order: it may be dropped at any await.
    const component = await Promise.race([start(), untilAborted(signal).then(() => undefined)]);
    if (component === undefined) return;
    const why = await Promise.race([component.ended, untilAborted(signal).then(() => undefined)]);
    // What cannot go on must end, so that it is started again: also when its parts do not stop.
    if (why !== undefined) systemClock.timer(stopWithinMs, () => process.exit(reportFailure(new Error(why))));
    await component.stop();
    if (why !== undefined) throw new Error(why);
  }).catch((error) => {
    // Connections that are still open would keep the process alive, as one that does nothing.
    if (!(error instanceof InterruptedError)) process.exit(reportFailure(error));
  });
  process.exit(process.exitCode ?? 0);
}
