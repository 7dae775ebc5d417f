import { expect, test } from "vitest";
import { EndlessListError, entriesOfPages } from "./pages.ts";

async function all(page: Parameters<typeof entriesOfPages<number>>[1]): Promise<readonly number[]> {
  const entries: number[] = [];
  for await (const entry of entriesOfPages("ListVolumes", page)) entries.push(entry);
  return entries;
}

test("all pages are read, in order, an empty one among them", async () => {
  const pages: Readonly<Record<string, { entries: number[]; nextToken: string }>> = {
    "": { entries: [1, 2], nextToken: "b" },
    b: { entries: [], nextToken: "c" },
    c: { entries: [3], nextToken: "" },
  };
  expect(await all(async (token) => pages[token] ?? { entries: [], nextToken: "" })).toEqual([1, 2, 3]);
});

test.each([
  ["the same token for ever", () => "a", "the same next_token again"],
  ["tokens in a circle", (asked: number) => String(asked % 3), "the same next_token again"],
  ["a new token for ever", (asked: number) => String(asked), "more than 100000 pages"],
])("%s is an error", async (_, tokenOf, words) => {
  let asked = 0;
  const list = all(async () => {
    if (asked++ > 200_000) throw new Error("asked for ever");
    return { entries: [], nextToken: tokenOf(asked) };
  });
  await expect(list).rejects.toThrow(EndlessListError);
  await expect(list).rejects.toThrow(words);
});

test("more entries than any driver has are an error", async () => {
  const entries = Array.from({ length: 400_000 }, (_, at) => at);
  let page = 0;
  const list = async () => {
    for await (const _ of entriesOfPages("ListVolumes", async () => ({ entries, nextToken: `${page++}` })));
  };
  await expect(list()).rejects.toThrow("more than 1000000 entries");
});
