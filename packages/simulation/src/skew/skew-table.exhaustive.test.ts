import { clusterPlugins } from "@longshore/local";
import { describe, expect, it } from "vitest";
import { combinationBreaks } from "./describe-skew.ts";
import { combinationsOf, playCombination } from "./skew-table.ts";

describe.each(["upstream", "node-only"] as const)("%s", (mode) => {
  it.each(clusterPlugins.map(({ name }) => name))(
    "a volume of %s is served by the path that the design says, in all four combinations (migration-controllers.md C3)",
    async (plugin) => {
      for (const combination of combinationsOf(plugin, mode)) {
        expect(combinationBreaks(combination, await playCombination(combination))).toEqual([]);
      }
    },
  );
});
