import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { main } from "../main.ts";

let said: { out: string; err: string };
let exitCode: typeof process.exitCode;
beforeEach(() => {
  exitCode = process.exitCode;
  said = { out: "", err: "" };
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    said.out += String(text);
    return true;
  });
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    said.err += String(text);
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  process.exitCode = exitCode;
});

async function gates(...words: readonly string[]): Promise<number> {
  process.exitCode = undefined;
  await main(["node", "longshore", "gates", ...words]);
  return Number(process.exitCode ?? 0);
}

it("prints the gates of a plugin at a version as a table", async () => {
  expect(await gates("--kubernetes", "1.22", "--plugin", "cinder")).toBe(0);
  const lines = said.out.split("\n");
  expect(lines).toHaveLength(6);
  expect(lines[2]).toMatch(
    /^CSIMigrationOpenStack +beta +on +no +alpha 1\.14, beta 1\.18, on 1\.21, GA 1\.24, locked 1\.24, removed 1\.26$/,
  );
});

it("prints them as JSON", async () => {
  expect(await gates("--kubernetes", "1.25", "--plugin", "ebs.csi.aws.com", "-o", "json")).toBe(0);
  const { gates: rows } = JSON.parse(said.out);
  expect(rows).toHaveLength(4);
  expect(rows[1]).toMatchObject({ gate: "CSIMigrationAWS", stage: "GA", default: true, locked: true });
});

it.each<readonly [string, readonly string[], string]>([
  ["no version", [], "--kubernetes"],
  ["a version that is none", ["--kubernetes", "next"], "write 1.<minor>"],
  ["an unknown plugin", ["--kubernetes", "1.22", "--plugin", "nfs"], '"nfs" is not a plugin'],
  ["an unknown form", ["--kubernetes", "1.22", "-o", "yaml"], "yaml"],
])("refuses %s as wrong usage", async (_what, flags, words) => {
  expect(await gates(...flags)).toBe(2);
  expect(said.err).toContain(words);
});
