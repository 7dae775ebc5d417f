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
  never({
    name: "node-crossing-never-has-crossed",
    file: "packages/migration/src/crossing/node-crossing.ts",
    find: 'if (seen !== "to cross") return seen === "crossed";',
    condition: 'seen !== "to cross"',
    caughtBy: {
      file: "packages/migration/src/crossing/crossing.test.ts",
      test: "flips no node again that an earlier run has carried across",
    },
  }),
  never({
    name: "node-crossing-never-is-gone",
    file: "packages/migration/src/crossing/node-crossing.ts",
    find: "if (await this.#isGone()) return false;",
    condition: "await this.#isGone()",
    caughtBy: {
      file: "packages/migration/src/crossing/crossing.test.ts",
      test: "that is deleted at its turn, and comes back",
    },
  }),
  never({
    name: "node-crossing-never-returning",
    file: "packages/migration/src/crossing/node-crossing.ts",
    find: 'if (direction === "rollback") {',
    condition: 'direction === "rollback"',
    caughtBy: {
      file: "packages/migration/src/crossing/crossing.test.ts",
      test: "marks a node once it is migrated, and before it returns",
    },
  }),
  never({
    name: "node-crossing-never-migrated",
    file: "packages/migration/src/crossing/node-crossing.ts",
    find: 'if (direction === "migrate" && !(await this.#isGone())) {',
    condition: 'direction === "migrate" && !(await this.#isGone())',
    caughtBy: {
      file: "packages/migration/src/crossing/crossing.test.ts",
      test: "marks a node once it is migrated, and before it returns",
    },
  }),
];
