import { VirtualClock } from "@longshore/runtime";
import type { DiskCloud } from "@longshore/volumes";
import { expect, it } from "vitest";
import { fencedCloud } from "./fenced-cloud.ts";

it("sends nothing to the cloud once the lease may have lapsed, although no timer has fired yet", async () => {
  const clock = new VirtualClock();
  const calls: string[] = [];
  const cloud = {
    detachDisk: async (diskId: string) => void calls.push(diskId),
  } as unknown as DiskCloud;
  let endsMs = 1_000;
  const term = { lease: "manager", endsMs: () => endsMs, signal: new AbortController().signal };
  const fenced = fencedCloud(cloud, clock, term);
  const { signal } = term;
  await fenced.detachDisk("before", "i", signal);
  await clock.advance(1_000);
  await expect(fenced.detachDisk("after", "i", signal)).rejects.toMatchObject({ code: "Unavailable" });
  endsMs = 2_000;
  await fenced.detachDisk("renewed", "i", signal);
  const ended = AbortSignal.abort();
  await expect(
    fencedCloud(cloud, clock, { ...term, signal: ended }).detachDisk("ended", "i", signal),
  ).rejects.toMatchObject({ code: "Unavailable" });
  expect(calls).toEqual(["before", "renewed"]);
});
