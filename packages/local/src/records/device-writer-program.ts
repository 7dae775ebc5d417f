/**
 * The writer of records on a device, a program of its own: writes numbered records, one a sector, syncs each to the disk,
 * and only then acknowledges it on standard output (a file). Started again it goes on after the last whole record; when
 * the records' room is full, it waits for its end. Arguments: the device, name of the volume, milliseconds between two.
 */
import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { recordSector, recordsText, sectorBytes } from "./device-records.ts";
import { readRecordsRoom } from "./process-device-contents.ts";
import { lastRecord } from "./records.ts";

const [path = "", volume = "", everyMs = "20"] = process.argv.slice(2);
const device = openSync(path, "r+");
const before = readRecordsRoom(device);
const sectors = Math.floor(before.length / sectorBytes);
let last = lastRecord(volume, recordsText(before));
writeSync(1, `start after ${last}\n`);

const timer = setInterval(() => {
  if (last === sectors) return clearInterval(timer);
  const offset = last * sectorBytes;
  last++;
  writeSync(device, recordSector(volume, last), 0, sectorBytes, offset);
  fdatasyncSync(device);
  writeSync(1, `ack ${last}\n`);
}, Number(everyMs));
// Keeps the program alive with a full room.
setInterval(() => {}, 60_000);

process.on("SIGTERM", () => {
  closeSync(device);
  process.exit(0);
});
