import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { KeptVolumes } from "./kept-volumes.ts";

const metadataOf = (name: string, owners: readonly object[] = []) => ({
  name,
  namespace: "default",
  uid: `uid of ${name}`,
  resourceVersion: "1",
  ownerReferences: owners,
});

function claimOf(name: string, volumeName: string | undefined, owners: readonly object[] = []) {
  const spec = volumeName === undefined ? {} : { volumeName };
  return {
    metadata: metadataOf(name, owners),
    spec,
    status: { phase: "Bound" },
  } as Stored<PersistentVolumeClaim>;
}

function volumeOf(name: string, disk: string, claim: string, policy = "Delete") {
  const spec = {
    awsElasticBlockStore: { volumeID: disk },
    persistentVolumeReclaimPolicy: policy,
    claimRef: { namespace: "default", name: claim },
  };
  return { metadata: metadataOf(name), spec, status: { phase: "Bound" } } as Stored<PersistentVolume>;
}

const pod = [{ kind: "Pod", name: "ephemeral-0" }];
const kept = volumeOf("pv-1", "vol-1", "data-0");
const ofPod = volumeOf("pv-2", "vol-2", "ephemeral-0-data");
const begin = {
  volumes: [kept, ofPod],
  claims: [claimOf("data-0", "pv-1"), claimOf("ephemeral-0-data", "pv-2", pod)],
  disks: new Set(["vol-1", "vol-2"]),
};

function broken(later: Partial<typeof begin>): readonly string[] {
  const found: string[] = [];
  const watch = new KeptVolumes(begin, (rule, what) => found.push(`${rule}: ${what}`));
  watch.check(begin);
  watch.check({ ...begin, ...later });
  return found;
}

describe("volumes that stay while others are converted", () => {
  it("may not lose their disk, their claim's volume, or their only record", () => {
    expect(broken({ disks: new Set(["vol-2"]) })).toEqual(["C3: disk vol-1 is gone"]);
    expect(broken({ claims: [claimOf("data-0", undefined)], volumes: [] })).toEqual([
      "C4: claim data-0 is there, and no volume waits for it",
    ]);
    const second = volumeOf("pv-3", "vol-1", "data-0", "Retain");
    expect(broken({ volumes: [kept, second] })).toEqual([
      "C3: pv-1 has policy Delete, and is one of two of ebs.csi.aws.com vol-1",
    ]);
  });

  it("are not those of pods, which come and go, nor those of claims made later", () => {
    expect(
      broken({ volumes: [kept], claims: [claimOf("data-0", "pv-1")], disks: new Set(["vol-1"]) }),
    ).toEqual([]);
    const claims = [...begin.claims, claimOf("restored-1", undefined)];
    expect(broken({ claims, disks: new Set(["vol-1", "vol-2", "vol-3"]) })).toEqual([]);
  });
});
