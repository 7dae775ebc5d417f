import { describe, expect, it } from "vitest";
import type { VolumeJournal, VolumeStep } from "./conversion-types.ts";
import { unfinishedChoice } from "./unfinished-choice.ts";

function journal(volume: string, workloads: readonly string[], step?: VolumeStep): VolumeJournal {
  return {
    planned: { volume, workloads: workloads.map((uid) => ({ uid })) },
    done: [],
    ...(step === undefined ? {} : { begun: { step, at: "2026-01-01T00:00:00Z" } }),
  } as unknown as VolumeJournal;
}

function carried(open: readonly VolumeJournal[], ...chosen: readonly string[]) {
  const choice = unfinishedChoice(open, ({ planned }) => chosen.includes(planned.volume));
  const names = (journals: readonly VolumeJournal[]) => journals.map(({ planned }) => planned.volume);
  return [names(choice.carried), names(choice.left)];
}

describe("unfinishedChoice", () => {
  it("goes on with what was chosen, and leaves the others as they are", () => {
    const open = [journal("a", [], "delete claim"), journal("b", ["w"], "delete claim"), journal("c", ["w"])];
    expect(carried(open, "a")).toEqual([["a"], ["b", "c"]]);
    expect(carried(open, "b")).toEqual([["b"], ["a", "c"]]);
    expect(carried(open)).toEqual([[], ["a", "b", "c"]]);
  });

  it("takes those along whose workload is scaled down, also through others", () => {
    const open = [
      journal("a", ["w"], "scale down"),
      journal("b", ["w", "x"], "scale down"),
      journal("c", ["x"]),
      journal("d", ["y"], "scale down"),
    ];
    expect(carried(open, "a")).toEqual([["a", "b", "c"], ["d"]]);
    expect(carried(open, "c")).toEqual([["a", "b", "c"], ["d"]]);
  });
});
