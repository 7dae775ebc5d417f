/** The bugs that upstream had, brought back one by one; `npm run gallery` has the planted ones too. */
import { expect, it } from "vitest";
import { upstreamMutants } from "./mutants/index.ts";
import { playGallery } from "./play-gallery.ts";

it("every bug that upstream had is caught, by a scenario that passes without it", async () => {
  const { survivors, brokenScenarios, summary } = await playGallery("upstream bugs", upstreamMutants);
  console.log(summary);
  expect(brokenScenarios).toEqual([]);
  expect(survivors.map(({ name }) => name)).toEqual([]);
});
