/** The gallery fits the sources and its document; `gallery.exhaustive.test.ts` plays it. */
import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { changedSource, type Mutant, repository } from "./mutant.ts";
import { mutants, plantedMutants, upstreamMutants } from "./mutants/index.ts";

function named<M extends Mutant>(all: readonly M[]): readonly (readonly [string, M])[] {
  return all.map((mutant) => [mutant.name, mutant]);
}

it("has as many mutants as it promises, each with a name of its own", () => {
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
  expect(new Set(upstreamMutants.map(({ upstream }) => upstream)).size).toBeGreaterThanOrEqual(25);
  expect(plantedMutants.length).toBeGreaterThanOrEqual(100);
});

it.each(named(mutants))("%s: it fits its source, and its scenario is there", (_, mutant) => {
  expect(changedSource(mutant)).not.toBe(readFileSync(`${repository}${mutant.file}`, "utf8"));
  expect(existsSync(`${repository}${mutant.caughtBy.file}`)).toBe(true);
});

it("a text that is not there exactly once is refused", () => {
  const [mutant] = mutants as [Mutant];
  expect(() => changedSource({ ...mutant, find: "no such text" })).toThrow("occurs 0 times");
  expect(() => changedSource({ ...mutant, find: "import " })).toThrow(/occurs \d+ times/);
});

it.each(named(upstreamMutants))("%s: the document has its story", (_, { upstream, name, rule, caughtBy }) => {
  const stories = readFileSync(`${repository}docs/gallery.md`, "utf8").split("\n## ");
  const story = stories.find((text) => text.startsWith(`${upstream}:`)) ?? "";
  for (const part of [`\`${name}\``, `(contract.md#${rule.toLowerCase()}-`, `(../${caughtBy.file})`]) {
    expect(story).toContain(part);
  }
});
