import { describe, expect, it } from "vitest";
import { recordSector, recordsText, sectorBytes } from "./device-records.ts";
import { lastRecord, lostRecords } from "./records.ts";

/** A device with these sectors; one that is left out is empty. */
function device(...sectors: (Uint8Array | undefined)[]): Uint8Array {
  const bytes = new Uint8Array((sectors.length + 2) * sectorBytes);
  for (const [index, sector] of sectors.entries()) bytes.set(sector ?? [], index * sectorBytes);
  return bytes;
}
const sector = (number: number) => recordSector("v", number);

describe("records on a device", () => {
  it("are read back as the lines of a file of records", () => {
    const text = recordsText(device(sector(1), sector(2), sector(3)));
    expect(lastRecord("v", text)).toBe(3);
    expect(lostRecords("v", text, new Set([1, 2, 3]))).toEqual([]);
    expect(recordsText(device())).toBe("");
  });

  it("are proved to be lost where a sector is empty, torn or of another volume", () => {
    const torn = sector(2).slice();
    torn.fill(0, 6);
    for (const bad of [undefined, torn, recordSector("w", 2)]) {
      const text = recordsText(device(sector(1), bad, sector(3)));
      expect(lastRecord("v", text)).toBe(1);
      expect(lostRecords("v", text, new Set([1, 2, 3]))).toEqual([2]);
    }
  });

  it("of a full sector without an end are a line, too", () => {
    expect(recordsText(new Uint8Array(sectorBytes).fill(120))).toBe(`${"x".repeat(sectorBytes)}\n`);
  });
});
