/** An index that follows a table is whole, whichever request has brought it up to date. */
import { expect, it } from "vitest";
import { withinWorkTime } from "../api/work-time.ts";
import { SlowClock } from "../testing/slow-clock.ts";
import { FollowedTable } from "./followed-table.ts";
import { memoryStore } from "./object-store.ts";

it("leaves nothing out when the time of the request is over", () => {
  const store = memoryStore();
  for (let i = 0; i < 5000; i++) {
    const metadata = { name: `m${i}` };
    const object = { apiVersion: "v1", kind: "Node", metadata };
    store.commit([{ resource: "nodes", namespace: "", name: metadata.name, object }]);
  }
  const reported = new Set<string>();
  const followed = new FollowedTable(store, "nodes", (key) => reported.add(key));
  const clock = new SlowClock();
  clock.jumpAfter(1);
  withinWorkTime(clock, 10, () => followed.catchUp());
  expect(reported.size).toBe(5000);
});
