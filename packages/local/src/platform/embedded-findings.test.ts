import { expect, test } from "vitest";
import { clusterLayout } from "../layout/cluster-layout.ts";
import { restartFinding } from "./embedded-findings.ts";

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
