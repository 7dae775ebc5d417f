/**
 * Records on a device without a file system: record N is sector N, its line at the beginning and zeros behind it, so that
 * a record is written by one write of the size that disks write whole.
 */
import { recordLine } from "./records.ts";

/** The smallest part that disks write whole. */
export const sectorBytes = 512;

/**
 * The part of a device, from its beginning, that records may take, so that a reader need not read the whole device. Room for
 * 32768 records, five minutes of a writer that writes one every 10 ms.
 */
export const recordsRoomBytes = 32_768 * sectorBytes;

/** The sector of a record. */
export function recordSector(volume: string, number: number): Uint8Array {
  const sector = new Uint8Array(sectorBytes);
  sector.set(new TextEncoder().encode(`${recordLine(volume, number)}\n`));
  return sector;
}

/** The lines of all sectors up to the last that holds anything; a sector without one is an empty line. */
export function recordsText(device: Uint8Array): string {
  const decoder = new TextDecoder();
  const lines: string[] = [];
  let end = 0;
  for (let at = 0; at < device.length; at += sectorBytes) {
    const sector = device.subarray(at, at + sectorBytes);
    const length = sector.findIndex((byte) => byte === 0 || byte === 10);
    lines.push(decoder.decode(sector.subarray(0, length < 0 ? sectorBytes : length)));
    if (length !== 0) end = lines.length;
  }
  return lines
    .slice(0, end)
    .map((line) => `${line}\n`)
    .join("");
}
