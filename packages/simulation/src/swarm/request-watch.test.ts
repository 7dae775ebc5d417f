import { describe, expect, it } from "vitest";
import { RequestWatch } from "./request-watch.ts";

describe("requests for one object", () => {
  it("may come as often in a minute as the bound says, and not more often", () => {
    const breaks: string[] = [];
    const watch = new RequestWatch(2, (what) => breaks.push(what));
    for (const nowMs of [0, 59_999, 60_000, 60_001]) watch.asked("node-1", "get", "pods a", nowMs);
    watch.asked("node-2", "get", "pods a", 60_002);
    expect(breaks).toEqual([]);
    watch.asked("node-1", "get", "pods a", 60_003);
    watch.asked("node-1", "get", "pods a", 60_004);
    expect(breaks).toEqual(["node-1: get pods a: more than 2 requests in a minute"]);
  });
});
