import { beforeEach, describe, expect, it } from "vitest";
import { RecordHistory } from "./record-history.ts";

describe("what pods wrote and read", () => {
  let breaks: string[] = [];
  let history = new RecordHistory(() => {});
  beforeEach(() => {
    breaks = [];
    history = new RecordHistory((what) => breaks.push(what));
  });

  it("may or may not hold a write that was not acknowledged", () => {
    history.writing("v", 1, 0)(1);
    history.writing("v", 2, 2);
    history.read("v", 1, 3, 4);
    history.read("v", 2, 5, 6);
    expect(breaks).toEqual([]);
  });

  it("is broken by an acknowledged write that a later read does not find", () => {
    history.writing("v", 1, 0)(1);
    history.writing("v", 2, 2)(3);
    history.read("v", 1, 4, 5);
    expect(breaks).toEqual(["v was read up to 1, but 2 was acknowledged before"]);
  });

  it("is not broken by a read that a write overlaps", () => {
    history.writing("v", 1, 0)(5);
    history.read("v", 0, 4, 6);
    expect(breaks).toEqual([]);
  });

  it("is broken by what was never written, as the volume of another", () => {
    history.writing("other", 3, 0)(1);
    history.read("v", 3, 2, 3);
    expect(breaks).toEqual(["v was read up to 3, but only 0 was ever written"]);
  });

  it("is nothing where another volume has come in place of the one of this name", () => {
    history.writing(history.nameOf("v"), 1, 0)(1);
    history.emptied("v");
    history.read(history.nameOf("v"), 0, 2, 3);
    history.writing(history.nameOf("v"), 1, 4)(5);
    expect(breaks).toEqual([]);
    expect(history.acknowledged("v")).toBe(2);
  });

  it("is broken by two writers that both go on from the same record", () => {
    history.writing("v", 1, 0)(1);
    const [one, other] = [history.writing("v", 2, 2), history.writing("v", 2, 2)];
    one(3);
    other(4);
    expect(breaks).toEqual(["record 2 of v was acknowledged twice"]);
  });
});
