import { describe, expect, it } from "vitest";
import { DiskTimeline } from "./disk-timeline.ts";
import { simulateCrossing } from "./simulate-crossing.ts";
import { traceLine } from "./trace.ts";

describe("a simulated crossing", () => {
  it("keeps the contract when nothing fails, and takes its time on the virtual clock only (contract.md C1, C8)", async () => {
    const result = await simulateCrossing({
      seed: 1,
      crashes: false,
      cloud: "faultFree",
      rates: { lostRequest: 0, lostReply: 0, delay: 0, delayMsMax: 1 },
    });
    expect(result.violations).toEqual([]);
    expect(result.acknowledgedWrites).toBeGreaterThan(0);
  });

  it("gives the same trace for the same seed", async () => {
    const [first, second] = [await simulateCrossing({ seed: 7 }), await simulateCrossing({ seed: 7 })];
    expect(second).toEqual(first);
    expect((await simulateCrossing({ seed: 8 })).traceHash).not.toBe(first.traceHash);
  });

  it("is the same run when all of its faults are named, and another when some are left out", async () => {
    const whole = await simulateCrossing({ seed: 7 });
    const named = await simulateCrossing({ seed: 7, only: new Set(whole.struck) });
    expect(named).toEqual(whole);
    const one = whole.struck.find((name) => name.startsWith("crash"));
    const limited = await simulateCrossing({ seed: 7, only: new Set(one === undefined ? [] : [one]) });
    expect(limited.struck).toEqual([one]);
    expect(limited).toMatchObject({ crashes: 1, faults: 0, violations: [] });
  });

  it("ends after the step that it is to end after, with what came before", async () => {
    const lines: string[] = [];
    const whole: string[] = [];
    const part = await simulateCrossing({ seed: 7, until: 600, onTrace: (e) => lines.push(traceLine(e)) });
    await simulateCrossing({ seed: 7, onTrace: (e) => whole.push(traceLine(e)) });
    expect(part).toMatchObject({ steps: 600, violations: [] });
    const story = lines.filter((line) => !line.includes("at the end: "));
    expect(whole.slice(0, story.length)).toEqual(story);
    expect(lines.some((line) => /at the end: node-1 ready=/.test(line))).toBe(true);
  });

  it("rests for hours before its way back, with few faults, and loses nothing (contract.md C1, C3)", async () => {
    const timeline = new DiskTimeline();
    const result = await simulateCrossing({ seed: 7, restMs: 3 * 3_600_000, timeline });
    expect(result.violations).toEqual([]);
    expect(result.elapsedMs).toBeGreaterThan(3 * 3_600_000);
    const rests = timeline.events.filter(({ kind }) => kind === "rest").map(({ atMs }) => atMs);
    expect((rests[1] ?? 0) - (rests[0] ?? 0)).toBe(3 * 3_600_000);
    const during = timeline.events.filter(
      ({ kind, atMs }) => kind === "life" && atMs > (rests[0] ?? 0) && atMs < (rests[1] ?? 0),
    );
    expect(during.length).toBeGreaterThan(4);
    expect(during.length).toBeLessThan(120);
    expect(timeline.spans().some(({ how }) => how === "mounted csi")).toBe(true);
  });

  // A sample; crossing-seeds-*.exhaustive.test.ts have many more.
  it("keeps the contract over some seeds of crashes and lost replies (contract.md C1, C2, C3)", {
    timeout: 120_000,
  }, async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const result = await simulateCrossing({ seed });
      expect(result.violations, `replay with: longshore sim --seed ${seed}`).toEqual([]);
    }
  });
});
