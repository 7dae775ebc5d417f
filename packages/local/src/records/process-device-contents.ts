/** Reads the part of a device that records are in. */
import { readSync } from "node:fs";
import { recordsRoomBytes } from "./device-records.ts";

const chunkBytes = 1 << 20;

/** What is in the records' room of the open device: less of a smaller device, which says its size only by its end. */
export function readRecordsRoom(file: number): Uint8Array {
  const chunks: Uint8Array[] = [];
  let at = 0;
  while (at < recordsRoomBytes) {
    const chunk = new Uint8Array(Math.min(chunkBytes, recordsRoomBytes - at));
    const length = readSync(file, chunk, 0, chunk.length, at);
    if (length === 0) break;
    chunks.push(chunk.subarray(0, length));
    at += length;
  }
  return Buffer.concat(chunks);
}
