import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { shellWord } from "./shell-word.ts";

test("a path that needs no quotes has none", () => {
  expect(shellWord("/var/lib/longshore/cluster")).toBe("/var/lib/longshore/cluster");
});

test.each(["/srv/My Documents/c", "it's", "$(id)", "a\nb", "", "~", "`x`"])(
  "a shell reads %j as one word",
  (text) => {
    expect(execFileSync("/bin/sh", ["-c", `printf %s ${shellWord(text)}`], { encoding: "utf8" })).toBe(text);
  },
);
