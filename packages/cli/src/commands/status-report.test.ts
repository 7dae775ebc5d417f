import type { VolumeStory } from "@longshore/migration";
import { expect, it } from "vitest";
import { clusterTables, storyText } from "./status-report.ts";

const story: VolumeStory = {
  name: "a",
  phase: "Bound",
  claim: "default/data",
  form: "in-tree",
  plugin: "kubernetes.io/aws-ebs",
  driver: "ebs.csi.aws.com",
  handle: "vol-a",
  uses: [{ nodeName: "n1", pod: "default/p1", path: "csi" }],
  holders: [
    {
      nodeName: "n1",
      by: "VolumeAttachment csi-1",
      since: "2026-01-01T10:00:00Z",
      attached: true,
      because: ["Pod default/p1 uses it", "the disk\nis \u001b[31mbusy"],
    },
  ],
  objects: [{ object: "PersistentVolume a", finalizers: ["kubernetes.io/pv-protection"] }],
  events: [
    {
      at: "2026-01-01T11:00:00Z",
      type: "Warning",
      object: "Pod default/p1",
      reason: "FailedMount",
      message: "no device",
      count: 3,
    },
  ],
  gaps: [],
};
const wordsOf = (text: string) => text.split("\n").map((line) => line.split(/ {2,}/));

it("shows the path of volumes and why a disk is held, with what drivers say made harmless", () => {
  const text = clusterTables(
    {
      at: "2026-01-01T12:00:00Z",
      nodes: [
        { name: "n1", ready: true, migratedPlugins: ["kubernetes.io/aws-ebs"], drivers: ["ebs.csi.aws.com"] },
        { name: "n2", ready: false, cordoned: "crossing", migratedPlugins: [], drivers: [] },
        {
          name: "n3",
          ready: true,
          migratedPlugins: [],
          migrationPending: "kubernetes.io/aws-ebs stays on in-tree, until vol-8 is detached",
          drivers: [],
        },
      ],
      volumes: [story],
      strays: [
        {
          disk: "kubernetes.io/aws-ebs/vol-9",
          holder: { nodeName: "n2", by: "Node n2, status.volumesAttached", attached: true, because: [] },
        },
      ],
      gaps: ["kind Pod: list pods: forbidden"],
    },
    {
      crossings: [
        {
          state: "interrupted",
          plugin: "kubernetes.io/aws-ebs",
          direction: "migrate",
          startedAt: "2026-01-01T11:00:00Z",
          nodesDone: ["n1"],
          interruption: { how: "paused", at: "2026-01-01T11:30:00Z" },
        },
      ],
    },
  );
  const lines = wordsOf(text);
  expect(lines).toContainEqual(["n1", "yes", "-", "kubernetes.io/aws-ebs", "ebs.csi.aws.com"]);
  expect(lines).toContainEqual(["CROSSING", "migrate kubernetes.io/aws-ebs: interrupted, 1 of 3 nodes done"]);
  expect(lines).toContainEqual(["INTERRUPTED", "it has paused, 2026-01-01T11:30:00Z; run it again to go on"]);
  expect(lines).toContainEqual(["n2", "no", "by a crossing", "-", "-"]);
  expect(lines).toContainEqual(["NODE", "NOT AS ITS GATES WANT"]);
  expect(lines).toContainEqual(["n3", "kubernetes.io/aws-ebs stays on in-tree, until vol-8 is detached"]);
  expect(lines).toContainEqual([
    "a",
    "Bound",
    "default/data",
    "kubernetes.io/aws-ebs",
    "default/p1 on n1 (csi)",
  ]);
  expect(text).toContain("no volume: kubernetes.io/aws-ebs/vol-9");
  expect(text).toContain("Pod default/p1 uses it; the disk\\nis \\x1b[31mbusy");
  expect(text).toContain("not read: kind Pod: list pods: forbidden\n");
});

it("gives the story of a volume with finalizers and events", () => {
  const lines = wordsOf(storyText(story));
  expect(lines).toContainEqual(["Handle", "vol-a"]);
  expect(lines).toContainEqual(["PersistentVolume a", "-", "kubernetes.io/pv-protection"]);
  expect(lines).toContainEqual([
    "2026-01-01T11:00:00Z",
    "Warning",
    "Pod default/p1",
    "FailedMount",
    "no device (3 times)",
  ]);
});
