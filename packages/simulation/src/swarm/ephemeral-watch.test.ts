/** What the watch over volumes of single pods reports, and what it leaves to others. */
import type { Mount } from "@longshore/runtime";
import { expect, it } from "vitest";
import { EphemeralWatch } from "./ephemeral-watch.ts";
import { simulateWorld } from "./simulate-world.ts";

const mount = (source: string, target: string): Mount => ({
  source,
  target,
  fsType: "ext4",
  readOnly: false,
});
const made = mount("/dev/loop1", "/n/node-1/ephemeral-volumes/d/v/mount");
const inPod = (uid: string) =>
  mount("/dev/loop1", `/n/node-1/pods/${uid}/volumes/kubernetes.io~csi/data/mount`);
const disk = mount("/dev/loop0", "/n/node-1/pods/a/volumes/kubernetes.io~csi/pv/mount");

it("reports a volume that two pods have, and passes on the mounts of disks alone", () => {
  const broken: string[] = [];
  const watch = new EphemeralWatch((what) => broken.push(what));
  const one = new Map([["node-1", [made, inPod("a"), disk]]]);
  expect(watch.check(one)).toEqual(new Map([["node-1", [disk]]]));
  expect(watch.check(one)).toBe(watch.check(one));
  expect(broken).toEqual([]);
  watch.check(new Map([["node-1", [made, inPod("a"), inPod("b"), disk]]]));
  expect(broken).toEqual(["pods a and b have one ephemeral volume, /dev/loop1"]);
});

it("volumes of pods keep their data as long as their pods, and none is left (csi-plugin.md 9.3; contract.md C3)", async () => {
  const result = await simulateWorld({
    seed: 3,
    plan: {
      nodes: 2,
      zones: 1,
      plugins: ["aws-ebs"],
      volumes: ["csiInline"],
      replicas: 1,
      nodeDecides: true,
      beginsMigrated: false,
      faults: { mountFailure: 30, lostReply: 30, driverDeath: 30 },
      operations: ["podDeleted", "powerLoss"],
      rounds: 8,
    },
  });
  expect(result.violations).toEqual([]);
  expect(result.counters).toMatchObject({ csiInline: 1, podDeleted: expect.any(Number) });
  expect(result.acknowledgedWrites).toBeGreaterThan(0);
}, 120_000);
