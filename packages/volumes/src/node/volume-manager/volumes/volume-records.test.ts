/** What the passes over a volume leave for the next one. Source: docs/behaviour/node-agent.md 7.1, "Starting rule". */
import { expect, it } from "vitest";
import { VolumeRecords, wholeVolume } from "./volume-records.ts";

const volume = "kubernetes.io/csi/driver^vol-1";

it("failures of pods that have gone are forgotten, those of the volume and of other pods stay", () => {
  const records = new VolumeRecords();
  const failure = { operation: "volume_mount", reason: "no" } as const;
  for (const subject of ["gone", "here", wholeVolume]) records.failed(volume, subject, failure, 0);
  records.keepOnly(volume, (podUID) => podUID === "here");
  expect([...records.of(volume).failures.keys()]).toEqual(["here", wholeVolume]);
  expect(records.failed(volume, "here", failure, 0).failures).toBe(2);
});
