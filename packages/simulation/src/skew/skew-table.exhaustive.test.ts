import { readFileSync } from "node:fs";
import { clusterPlugins } from "@longshore/local";
import { expect, it } from "vitest";
import { combinationBreaks, combinationTable, type PlayedCombination } from "./describe-skew.ts";
import { combinationsOf, playCombination } from "./skew-table.ts";

const guide = readFileSync(new URL("../../../../docs/guides/version-skew.md", import.meta.url), "utf8");
/** The guide's tables, without the blanks that align their columns. */
const guideRows = guide.split("\n").map((line) => line.replace(/ +/g, " "));

it.each(["upstream", "node-only"] as const)(
  "%s: a volume of each plugin is served by the path that the design says, in all four combinations, as documented (migration-controllers.md C3)",
  async (mode) => {
    const played: PlayedCombination[] = [];
    for (const { name } of clusterPlugins) {
      for (const combination of combinationsOf(name, mode)) {
        played.push([combination, await playCombination(combination)]);
      }
    }
    expect(played.flatMap(([combination, outcome]) => combinationBreaks(combination, outcome))).toEqual([]);
    const rows = combinationTable(played).map((cells) => `| ${cells.join(" | ")} |`);
    expect(guideRows).toEqual(expect.arrayContaining(rows));
  },
);
