/**
 * Each controller sidecar does its work while something around it fails: it ends as if nothing had happened, with no
 * volume leaked, lost or attached twice, and without hammering what fails.
 */
import type { Component } from "@longshore/runtime";
import {
  type SidecarEnv,
  startAttacher,
  startProvisioner,
  startResizer,
  startSnapshotter,
} from "@longshore/sidecars";
import { startSnapshotController } from "@longshore/sidecars/snapshot-controller";
import { describe, expect, it } from "vitest";
import { crashWorld } from "./crash-world.ts";
import { faultScenarios } from "./fault-scenarios.ts";
import { faultyClient } from "./faulty-client.ts";
import { type CycleName, workCycles } from "./work-cycles.ts";

const sidecars: Readonly<Record<CycleName, (env: SidecarEnv) => Component>> = {
  attacher: (env) => startAttacher(env),
  provisioner: (env) => startProvisioner(env),
  resizer: (env) => startResizer(env),
  snapshotter: (env) => startSnapshotter(env),
};
const names = Object.keys(sidecars) as CycleName[];

const scenarios = faultScenarios.map((scenario) => [scenario.name, scenario] as const);

describe.each(scenarios)("where %s,", (_, scenario) => {
  it.each(names)("the work of the %s ends well", async (name) => {
    const world = await crashWorld();
    const { api = {}, bites } = scenario.begin(world);
    let requests = 0;
    const counted = faultyClient(world.kube, {
      ...api,
      request(request, send) {
        requests++;
        return api.request?.(request, send) ?? send();
      },
    });
    const companion = startSnapshotController(world.env());
    const sidecar = sidecars[name]({ ...world.env(), kube: counted });
    const startedMs = world.clock.monotonicMs();
    await workCycles[name](world, "1");
    expect(bites()).toBeGreaterThan(0);
    // Not more than a few requests a second, however long it took.
    const tookS = (world.clock.monotonicMs() - startedMs) / 1000;
    expect(requests).toBeLessThan(100 + 4 * tookS);
    await sidecar.stop();
    await companion.stop();
  });
});
