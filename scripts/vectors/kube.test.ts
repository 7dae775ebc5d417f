/** Every recorded answer about quantities, selectors and names is ours. */
import { expect, test } from "vitest";
import { vectorFile } from "./location.ts";
import { runVectors } from "./run.ts";

test("every recorded answer about quantities", async () => {
  const reports: string[] = [];
  const { passed } = await runVectors([vectorFile("quantity")], (line) => reports.push(line));
  expect(reports).toEqual([]);
  expect(passed).toBeGreaterThan(800);
});

test("every recorded answer about selectors and names", async () => {
  const reports: string[] = [];
  const { passed } = await runVectors([vectorFile("selectors")], (line) => reports.push(line));
  expect(reports).toEqual([]);
  expect(passed).toBeGreaterThan(700);
});
