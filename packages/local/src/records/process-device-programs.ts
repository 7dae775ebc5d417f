/** The writer and the reader of records on devices as programs of their own: the commands of containers. */
import { fileURLToPath } from "node:url";

const writeEveryMs = 20;

/** The command of a writer on the container's device. */
export function deviceWriterCommand(everyMs: number = writeEveryMs): string[] {
  return programCommand("./device-writer-program.js", "$(POD_NAME)", String(everyMs));
}

/** The command of a reader, which prints the records of the container's device. */
export function deviceReaderCommand(): string[] {
  return programCommand("./device-reader-program.js");
}

function programCommand(script: string, ...args: readonly string[]): string[] {
  const path = fileURLToPath(new URL(script, import.meta.url));
  return [process.execPath, path, "$(LONGSHORE_MOUNT_DATA)", ...args];
}
