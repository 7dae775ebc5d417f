import { expect, test } from "vitest";
import type { DashboardState } from "../state.ts";
import { clockTime, freshnessOf, linkFreshness } from "./freshness.ts";

const since = "2026-01-01T12:03:04.000Z";
const at = new Date(since).toLocaleString();
const state = (stale: DashboardState["stale"], complete = true) => ({ stale, complete }) as DashboardState;

test("what the page says of itself", () => {
  expect(freshnessOf(state([]))).toMatchObject({ link: "live", parts: [], notes: [] });
  expect(freshnessOf(state([], false))).toMatchObject({ link: "waiting" });
  expect(freshnessOf(state([{ source: "API server", since, error: "refused" }]))).toEqual({
    link: "stale",
    text: `stale since ${at}, retrying`,
    parts: ["cluster"],
    notes: [`Shown as it was at ${at}: the API server does not answer (refused).`],
  });
  expect(freshnessOf(state([{ source: "pods", since, error: "forbidden" }]))).toEqual({
    link: "stale",
    text: `partly stale since ${at}, retrying`,
    parts: ["nodes"],
    notes: [`pods: shown as they were at ${at} (forbidden).`],
  });
  expect(linkFreshness(new Date(since), true)).toMatchObject({
    link: "lost",
    text: `disconnected since ${at}, retrying`,
    parts: ["all"],
  });
});

test("a time of today has no date", () => {
  const now = new Date();
  expect(clockTime(now.toISOString())).toBe(now.toLocaleTimeString());
  expect(clockTime("")).toBe("–");
});
