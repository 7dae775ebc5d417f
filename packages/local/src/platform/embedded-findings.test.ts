import type { CsiConnector } from "@longshore/csi";
import type { DiskCloudClient } from "@longshore/reference-driver";
import { VirtualClock } from "@longshore/runtime";
import { expect, test } from "vitest";
import { clusterConfig } from "../layout/cluster-config.ts";
import { clusterLayout } from "../layout/cluster-layout.ts";
import { embeddedFindings, restartFinding } from "./embedded-findings.ts";

const layout = clusterLayout("/c");

test.each([
  ["a driver that was never started again", "csi-node-n1", 0, true, 1000, undefined],
  ["one that was, and has run since", "csi-node-n1", 3, true, 60_000, undefined],
  [
    "one that was just started again",
    "csi-node-n1",
    3,
    true,
    4000,
    /started again 3 times, the last time 4 s ago/,
  ],
  ["one that is down", "csi-controller", 1, false, undefined, /down just now, and was started again once/],
  ["an agent, which the crossing restarts itself", "node-agent-n1", 3, true, 1000, undefined],
] as const)("%s", (_what, name, restarts, alive, ageMs, reason) => {
  const finding = restartFinding({ name, restarts, alive, ageMs }, layout);
  if (reason === undefined) expect(finding).toBeUndefined();
  else {
    expect(finding?.reason).toMatch(reason);
    expect(finding).toMatchObject({ severity: "warning", object: `process ${name}` });
    expect(finding?.remedy).toContain(`/c/logs/${name}.log`);
  }
});

test.each([
  ["that does not answer blocks", ["node-1", "node-2"], ["the driver ebs.csi.aws.com on node-2"]],
  ["that was deleted, since it is lost, does not", ["node-1"], []],
])("the driver of a node %s", async (_what, nodeNames, objects) => {
  const clock = new VirtualClock();
  const connector = {
    connect: (endpoint: string) => ({
      identity: {
        probe: async () => {
          if (endpoint.includes("node-2")) throw new Error("no answer");
          return { ready: true };
        },
      },
      close() {},
    }),
  };
  const findings = embeddedFindings(
    {
      clock,
      connector: connector as unknown as CsiConnector,
      cloud: { listInstances: async () => [] } as unknown as DiskCloudClient,
      processes: async () => [],
      nodeNames: async () => nodeNames,
    },
    { layout, config: clusterConfig(2, "unprivileged") },
    new AbortController().signal,
  );
  await clock.advance(11_000);
  expect((await findings).map(({ object, severity }) => `${severity} ${object}`)).toEqual(
    objects.map((object) => `blocker ${object}`),
  );
});
