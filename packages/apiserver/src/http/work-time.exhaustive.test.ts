/**
 * The heaviest requests that are permitted, each of them out of time at one check after the other, further and further
 * apart: the answer is 504 and nothing has changed, or it is the answer that the request has when there is time.
 */
import { expect, it } from "vitest";
import { heavyCustom } from "../testing/heavy-requests/custom.ts";
import { corePath } from "../testing/heavy-requests/heavy-request.ts";
import { heavyObjects } from "../testing/heavy-requests/objects.ts";
import { heavyPatches } from "../testing/heavy-requests/patches.ts";
import { slowServer } from "../testing/slow-server.ts";

/** How many times as far into the work the next attempt goes. */
const growth = 4;

it.each(
  [...heavyPatches, ...heavyObjects, ...heavyCustom].map((request) => [request.name, request] as const),
)("%s", async (_name, request) => {
  const { clock, logger, store, send } = slowServer();
  await request.prepare(send);
  const attempt = async (readings: number) => {
    const { revision } = store;
    const before = clock.readings;
    clock.jumpAfter(readings);
    let message: unknown;
    const status = await request.run(async (...asked) => {
      const answer = await send(...asked);
      ({ message } = answer.body as { readonly message?: unknown });
      return answer;
    });
    clock.jumpAfter(Number.POSITIVE_INFINITY);
    if (status === 504) expect(store.revision).toBe(revision);
    expect((await send("GET", corePath("configmaps", "none"))).status).toBe(404);
    return { status, message, checks: clock.readings - before };
  };
  const endings: number[] = [];
  let last = await attempt(1);
  for (let readings = 1; last.status === 504; last = await attempt(readings)) {
    endings.push(readings);
    readings *= growth;
  }
  // The only other failure is that of an object that etcd does not take.
  if (last.status >= 500) expect(last.message).toMatch(/^etcdserver: request is too large/);
  // What is refused at its first look has no checks.
  if (last.checks > 3) expect(endings).not.toEqual([]);
  expect(logger.lines.filter((line) => line.level === "error")).toEqual([]);
});
