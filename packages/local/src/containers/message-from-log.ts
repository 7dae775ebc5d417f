/** The end of a container's log as the message of its end. Source: core/v1 TerminationMessagePolicy. Real form. */
import type { Clock } from "@longshore/runtime";
import { messagesOf } from "./log-line.ts";
import { readLogFile } from "./read-log-file.ts";

const linesMax = 80;
const messageBytesMax = 2048;

/** Undefined where the container has said nothing. The log is complete. */
export async function messageFromLog(
  clock: Pick<Clock, "sleep">,
  logFile: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const query = { tailLines: linesMax, follow: false };
  const chunks: Uint8Array[] = [];
  for await (const chunk of readLogFile(clock, logFile, query, async () => true, signal)) chunks.push(chunk);
  const message = Buffer.from(messagesOf(Buffer.concat(chunks).toString("utf8"))).subarray(-messageBytesMax);
  // A character may have been cut in two.
  return message.length === 0 ? undefined : message.toString("utf8").replace(/^\uFFFD+/, "");
}
