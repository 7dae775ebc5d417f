import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { sidecarVerbs } from "../packages/cli/src/commands/sidecars/sidecar-verbs.ts";
import { flagTables, guide, narrow, withTables } from "./sidecar-flags.ts";

test("the guide lists every flag as the command reads it", () => {
  const text = readFileSync(guide, "utf8");
  expect(narrow(withTables(text))).toBe(narrow(text)); // Else: tsx scripts/sidecar-flags.ts
});

test("every sidecar has a table", () => {
  for (const verb of sidecarVerbs) expect(flagTables()).toContain(`### \`${verb}\``);
});
