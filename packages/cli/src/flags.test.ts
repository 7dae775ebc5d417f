import { Command } from "commander";
import { expect, test } from "vitest";
import { jsonFileOption } from "./flags.ts";

test.each<[readonly string[], string | true | undefined]>([
  [[], undefined],
  [["--json"], true],
  [["--json", "-"], true],
  [["--json", "report.json"], "report.json"],
])("a file for the JSON: %j", (args, expected) => {
  const command = new Command().addOption(jsonFileOption("the report"));
  command.parse(args, { from: "user" });
  expect(command.opts().json).toBe(expected);
});
