import { describe, expect, it } from "vitest";
import { acknowledgedRecords, lastRecord, lostRecords, recordLine, rewrittenRecords } from "./records.ts";

const text = (volume: string, ...numbers: number[]) =>
  numbers.map((n) => `${recordLine(volume, n)}\n`).join("");

describe("records", () => {
  it("a writer goes on after the last whole record", () => {
    expect(lastRecord("v", "")).toBe(0);
    expect(lastRecord("v", text("v", 1, 2, 3))).toBe(3);
    expect(lastRecord("v", `${text("v", 1, 2)}3 abc`)).toBe(2);
    expect(lastRecord("v", text("other", 1))).toBe(0);
  });

  it("a record is lost when it was acknowledged and is torn, foreign or missing", () => {
    const acknowledged = acknowledgedRecords([
      "start after 0\nack 1\nack 2\n",
      "start after 2\nack 3\nack 4\n",
    ]);
    expect([...acknowledged]).toEqual([1, 2, 3, 4]);
    expect(lostRecords("v", text("v", 1, 2, 3, 4, 5), acknowledged)).toEqual([]);
    expect(lostRecords("v", text("v", 1, 2, 4), acknowledged)).toEqual([3]);
    expect(lostRecords("v", text("other", 1, 2, 3, 4), acknowledged)).toEqual([1, 2, 3, 4]);
    expect(lostRecords("v", `${text("v", 1, 2, 3)}4 0000`, acknowledged)).toEqual([4]);
  });

  it("an acknowledgement that a full disk has torn acknowledges nothing", () => {
    expect([...acknowledgedRecords(["ack 123\nack 12"])]).toEqual([123]);
    expect(rewrittenRecords(["ack 12\nack 123\nack 12", "start after 124\nack 125\n"])).toEqual([]);
  });

  it("a record that was lost and written again by a later writer is known by its second acknowledgement", () => {
    expect(rewrittenRecords(["start after 0\nack 1\nack 2\n", "start after 2\nack 3\n"])).toEqual([]);
    const emptied = ["start after 0\nack 1\nack 2\n", "start after 0\nack 1\nack 2\nack 3\n"];
    expect(lostRecords("v", text("v", 1, 2, 3), acknowledgedRecords(emptied))).toEqual([]);
    expect(rewrittenRecords(emptied)).toEqual([1, 2]);
  });
});
