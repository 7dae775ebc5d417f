/**
 * The writer of records, a program of its own: appends numbered records to a file, syncs each to the
 * disk, and only then acknowledges it on standard output (a file). Started again it goes on after the
 * last whole record. Arguments: directory of the volume, name of the volume, milliseconds between two.
 */
import {
  closeSync,
  fdatasyncSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  truncateSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { lastRecord, recordLine } from "./records.ts";

const [directory = "", volume = "", everyMs = "20"] = process.argv.slice(2);
const path = join(directory, "records");

function existing(): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    // Of a volume that cannot be read nothing may be cut off.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return "";
  }
}

/** A writer on a volume that it shares has a directory of its own there. Above it nothing is made: a volume must be there. */
function makeOwnDirectory(): void {
  try {
    mkdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return;
  }
  syncDirectory(dirname(directory));
}

function syncDirectory(path: string): void {
  const file = openSync(path, "r");
  fsyncSync(file);
  closeSync(file);
}

makeOwnDirectory();
let last = lastRecord(volume, existing());
const whole = Array.from({ length: last }, (_, i) => `${recordLine(volume, i + 1)}\n`).join("").length;
const file = openSync(path, "a", 0o640);
truncateSync(path, whole); // What a crash tore off was never acknowledged.
syncDirectory(directory);
writeSync(1, `start after ${last}\n`);

/** A disk without room for all of it takes a part, and says so at the next attempt only. */
function writeWhole(text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
}

const timer = setInterval(() => {
  last++;
  writeWhole(`${recordLine(volume, last)}\n`);
  fdatasyncSync(file);
  writeSync(1, `ack ${last}\n`);
}, Number(everyMs));

process.on("SIGTERM", () => {
  clearInterval(timer);
  closeSync(file);
  process.exit(0);
});
