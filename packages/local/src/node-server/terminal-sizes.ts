/** The sizes of a client's terminal, as it sends them. Source: Kubernetes remotecommand, `TerminalSize`: objects of JSON, one after another. */
import type { TerminalSize } from "../containers/pod-runtime.ts";

/** Longest beginning of an object whose end has not come. */
const pendingMax = 256;
/** Sizes are 16 bits wide. */
const lengthMax = 0xffff;

/** Each size, in its order. What is no size is passed over, since a program does not need to know. */
export async function* terminalSizes(input: AsyncIterable<Uint8Array>): AsyncGenerator<TerminalSize> {
  let pending = "";
  for await (const bytes of input) {
    const parts = (pending + Buffer.from(bytes).toString("latin1")).split("}");
    pending = (parts.pop() ?? "").slice(-pendingMax);
    for (const part of parts) {
      const size = sizeOf(`${part}}`);
      if (size !== undefined) yield size;
    }
  }
}

function sizeOf(text: string): TerminalSize | undefined {
  try {
    const { Width: columns, Height: rows } = JSON.parse(text) as Record<string, unknown>;
    return isLength(columns) && isLength(rows) ? { columns, rows } : undefined;
  } catch {
    return undefined;
  }
}

function isLength(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) > 0 && Number(value) <= lengthMax;
}
