/** Reads what a container has written, from its end backwards and as it grows. Real form. */
import { type FileHandle, open } from "node:fs/promises";
import type { Clock } from "@longshore/runtime";

/** Which part of a log is asked for. */
export interface LogQuery {
  /** Only so many lines from the end; the parts of a long one count as lines. */
  readonly tailLines?: number;
  /** Only from this byte on; not beside `tailLines`. */
  readonly startByte?: number;
  /** Goes on with what is written until `hasEnded`. */
  readonly follow: boolean;
}

const chunkBytes = 64 * 1024;
const pollMs = 100;

/**
 * The bytes of the log. A file that is not there is empty, or, with `follow`, waited for.
 *
 * @param hasEnded whether nothing more will be written; asked before the last look
 */
export async function* readLogFile(
  clock: Pick<Clock, "sleep">,
  path: string,
  { tailLines, startByte = 0, follow }: LogQuery,
  hasEnded: () => Promise<boolean>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let file: FileHandle | undefined;
  try {
    let at = startByte;
    for (;;) {
      const isLast = !follow || (await hasEnded());
      if (file === undefined) {
        file = await openIfThere(path);
        if (file !== undefined && tailLines !== undefined) at = await startOfTail(file, tailLines);
      }
      while (file !== undefined) {
        const buffer = Buffer.alloc(chunkBytes);
        const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
        if (bytesRead === 0) break;
        at += bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
      if (isLast) return;
      await clock.sleep(pollMs, signal);
    }
  } finally {
    await file?.close();
  }
}

/** How long the log is now, in bytes; 0 where there is none. */
export async function logLength(path: string): Promise<number> {
  const file = await openIfThere(path);
  try {
    return file === undefined ? 0 : (await file.stat()).size;
  } finally {
    await file?.close();
  }
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

const newline = 0x0a;

/** Where the last `lines` lines begin. A newline at the very end ends the last one. */
async function startOfTail(file: FileHandle, lines: number): Promise<number> {
  const { size } = await file.stat();
  if (lines <= 0) return size;
  let found = 0;
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - chunkBytes);
    const buffer = Buffer.alloc(end - start);
    await file.read(buffer, 0, buffer.length, start);
    for (let i = buffer.length - 1; i >= 0; i--) {
      if (buffer[i] !== newline || start + i === size - 1) continue;
      found++;
      if (found === lines) return start + i + 1;
    }
    end = start;
  }
  return 0;
}
