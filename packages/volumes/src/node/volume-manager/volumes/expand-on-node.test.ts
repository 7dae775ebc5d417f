import { createApiServer, memoryStore } from "@longshore/apiserver";
import {
  type KubeClient,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  resources,
} from "@longshore/kube";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { expect, test } from "vitest";
import { FailedPreconditionError } from "../../../framework/node-error-kind.ts";
import type { NodeExpandableVolumePlugin, NodeExpandOptions } from "../../../framework/volume-plugin.ts";
import { ClaimMissingError, expandOnNode } from "./expand-on-node.ts";

const { signal } = new AbortController();
const pod: Pod = { metadata: { name: "p", namespace: "default", uid: "1" } };

async function world(claimHas: string | undefined) {
  const env = {
    clock: new VirtualClock(),
    random: new SeededRandom(1),
    logger: silentLogger,
    meter: noMeter,
  };
  const kube: KubeClient = createApiServer(env, { store: memoryStore() }).client();
  const events: string[] = [];
  if (claimHas !== undefined) {
    const claim: PersistentVolumeClaim = {
      metadata: { name: "c", namespace: "default" },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "1Gi" } },
        storageClassName: "",
      },
    };
    const made = await kube.create(resources.persistentVolumeClaims, claim, { signal });
    const conditions = [{ type: "FileSystemResizePending", status: "True" as const }];
    const status = { ...made.status, capacity: { storage: claimHas }, conditions };
    await kube.updateStatus(resources.persistentVolumeClaims, { ...made, status }, { signal });
  }
  return {
    env: {
      kube,
      events: {
        event: (subject: { kind?: string }, _type: string, reason: string) =>
          void events.push(`${subject.kind} ${reason}`),
      },
    },
    events,
    claim: () => kube.get(resources.persistentVolumeClaims, { name: "c", namespace: "default" }, { signal }),
  };
}

const volume: PersistentVolume = {
  metadata: { name: "pv" },
  spec: { capacity: { storage: "2Gi" }, claimRef: { name: "c", namespace: "default" } },
};

function where(over: Partial<NodeExpandOptions["spec"]> = {}): Omit<NodeExpandOptions, "newSizeBytes"> {
  return {
    spec: { persistentVolume: volume, readOnly: false, inlineVolumeSpecForCsiMigration: false, ...over },
    devicePath: "/dev/x",
    deviceMountPath: "/global",
    path: "/global",
    phase: "staged",
  };
}

function plugin(answer: () => Promise<boolean>) {
  const asked: bigint[] = [];
  const made = {
    nodeExpand: ({ newSizeBytes }: NodeExpandOptions) => {
      asked.push(newSizeBytes);
      return answer();
    },
  };
  return { plugin: made as unknown as NodeExpandableVolumePlugin, asked };
}

test("what has grown is reported in the claim's status and in events", async () => {
  const { env, events, claim } = await world("1Gi");
  const { plugin: own, asked } = plugin(async () => true);
  expect(await expandOnNode(env, own, pod, where(), signal)).toBe("grown");
  expect(asked).toEqual([2n * 1024n ** 3n]);
  const { status } = (await claim()) ?? {};
  expect(status?.capacity).toEqual({ storage: "2Gi" });
  expect(status?.conditions).toBeUndefined();
  expect(events).toEqual([
    "Pod FileSystemResizeSuccessful",
    "PersistentVolumeClaim FileSystemResizeSuccessful",
  ]);
  // Once more, and there is nothing left to do.
  expect(await expandOnNode(env, own, pod, where(), signal)).toBe("grown");
  expect(asked).toHaveLength(1);
});

test("a driver that cannot grow it yet is asked again in the next phase", async () => {
  const { env, claim } = await world("1Gi");
  expect(await expandOnNode(env, plugin(async () => false).plugin, pod, where(), signal)).toBe("later");
  expect((await claim())?.status?.capacity).toEqual({ storage: "1Gi" });
});

test("a volume that cannot grow as it is used is mounted nevertheless", async () => {
  const { env, events, claim } = await world("1Gi");
  const refusing = plugin(async () => {
    throw new FailedPreconditionError("in use");
  });
  expect(await expandOnNode(env, refusing.plugin, pod, where(), signal)).toBe("refused");
  expect((await claim())?.status?.capacity).toEqual({ storage: "1Gi" });
  expect(events).toContain("PersistentVolumeClaim VolumeResizeFailed");
});

test("any other failure is one of the mount", async () => {
  const { env } = await world("1Gi");
  const failing = plugin(async () => {
    throw new Error("no such device");
  });
  await expect(expandOnNode(env, failing.plugin, pod, where(), signal)).rejects.toThrow("no such device");
});

test("a read-only volume is not grown, and the pod gets an event", async () => {
  const { env, events } = await world("1Gi");
  const { plugin: own, asked } = plugin(async () => true);
  expect(await expandOnNode(env, own, pod, where({ readOnly: true }), signal)).toBe("grown");
  expect(asked).toEqual([]);
  expect(events).toContain("Pod FileSystemResizeFailed");
});

test.each<[string, string | undefined, Partial<NodeExpandOptions["spec"]>]>([
  ["a claim that has its size", "2Gi", {}],
  ["a migrated inline volume", undefined, { inlineVolumeSpecForCsiMigration: true }],
  [
    "a volume that is bound to no claim",
    undefined,
    { persistentVolume: { spec: { capacity: { storage: "2Gi" } } } },
  ],
])("%s needs no growth", async (_, has, spec) => {
  const { env } = await world(has);
  const { plugin: own, asked } = plugin(async () => true);
  expect(await expandOnNode(env, own, pod, where(spec), signal)).toBe("grown");
  expect(asked).toEqual([]);
});

test("a claim that is gone is an error that names it", async () => {
  const { env } = await world(undefined);
  const growth = expandOnNode(env, plugin(async () => true).plugin, pod, where(), signal);
  await expect(growth).rejects.toThrow(ClaimMissingError);
});
