/**
 * A driver with an endless list does not block a sidecar: each round ends with a log line, and the next starts on time.
 */
import { create, ListVolumesResponseSchema } from "@longshore/csi";
import { recordingLogger } from "@longshore/runtime";
import { withConditions } from "@longshore/testing/sidecars";
import { expect, test } from "vitest";
import { startAttacher, startHealthMonitor } from "./index.ts";
import { sidecarWorld } from "./testing/world.ts";

const callsMax = 50;

test.each([
  ["attacher", startAttacher],
  ["health monitor", startHealthMonitor],
] as const)("the %s ends a list that gives the same token again", async (name, start) => {
  const world = await sidecarWorld(
    { listsVolumes: true },
    {
      extend: (services) => (name === "attacher" ? services : withConditions(services, new Map(), "list")),
    },
  );
  let calls = 0;
  world.csi.intercept(async (call, proceed) => {
    if (call.rpc !== "ListVolumes") return proceed();
    if (++calls > callsMax) throw new Error("the list is asked for without end");
    return create(ListVolumesResponseSchema, { nextToken: "again" });
  });
  const logger = recordingLogger();
  const sidecar = start({ ...world.env(), logger });
  await world.clock.advance(6 * 60_000);
  await sidecar.stop();
  const reports = logger.lines.filter(({ fields }) => String(fields.error).includes("does not end"));
  expect(reports.length).toBeGreaterThan(0);
  expect(calls).toBeGreaterThan(1);
  expect(calls).toBeLessThanOrEqual(callsMax);
});
