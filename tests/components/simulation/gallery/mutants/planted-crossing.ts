/** Conditions taken out of decisions, one at a time. */
import { type Mutant, never } from "../mutant.ts";

export const crossing: readonly Mutant[] = [
  never({
    name: "node-crossing-never-lack",
    file: "packages/migration/src/crossing/node-crossing.ts",
    find: "if (lack === undefined) return undefined;",
    condition: "lack === undefined",
    caughtBy: {
      file: "packages/migration/src/crossing/crossing.test.ts",
      test: "also carries a node across that joins while it runs",
    },
  }),
];
