/** The writer and the reader of records as programs of their own: the commands of containers on a cluster of processes. */
import { fileURLToPath } from "node:url";

const writeEveryMs = 20;

/** The command of a writer: `writer-program.ts`, on the container's volume. */
export function writerCommand(everyMs: number = writeEveryMs): string[] {
  const script = fileURLToPath(new URL("./writer-program.js", import.meta.url));
  return [process.execPath, script, "$(LONGSHORE_MOUNT_DATA)", "$(POD_NAME)", String(everyMs)];
}

/** The command of a reader, which prints the records of the container's volume. */
export const readerCommand: readonly string[] = ["/bin/cat", "$(LONGSHORE_MOUNT_DATA)/records"];
