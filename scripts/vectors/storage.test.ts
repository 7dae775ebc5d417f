/** Every recorded answer about names, secrets, topology, attaching and provisioning is ours. */
import { describe, expect, test } from "vitest";
import { vectorFile } from "./location.ts";
import { runVectors } from "./run.ts";

describe("recorded answers", () => {
  test.each([
    ["naming", 398],
    ["secrets", 496],
    ["topology", 385],
    ["attacher", 452],
    ["provision", 280],
  ])("%s", async (name, cases) => {
    const printed: string[] = [];
    const totals = await runVectors([vectorFile(name)], (text) => printed.push(text));
    expect(printed).toEqual([]);
    expect(totals).toEqual({ passed: cases, failed: 0 });
  });
});
