import type { KubeClient, KubeObject } from "@longshore/kube";
import { VirtualClock } from "@longshore/runtime";
import { expect, it } from "vitest";
import { createGardenerPlatform } from "./gardener-platform.ts";

const signal = new AbortController().signal;
const gates = { CSIMigration: true, CSIMigrationAWS: true };
const annotation = "alpha.csimigration.shoot.extensions.gardener.cloud/kubernetes-version";
const operation = "gardener.cloud/operation";

function world(
  over: { readonly type?: string; readonly hibernated?: boolean; readonly state?: string } = {},
) {
  const clock = new VirtualClock();
  const state = {
    plugins: "",
    shoot: {
      metadata: {
        namespace: "garden-dev",
        name: "one",
        generation: 3,
        annotations: { kept: "yes" } as Record<string, string>,
      },
      spec: {
        provider: { type: over.type ?? "aws" },
        kubernetes: { version: "1.20.2" },
        hibernation: { enabled: over.hibernated === true },
      },
      status: { observedGeneration: 3, lastOperation: { state: over.state ?? "Succeeded" } },
    },
  };
  const garden = {
    get: async () => state.shoot,
    update: async (_resource: unknown, shoot: KubeObject) => {
      state.shoot = shoot as never;
      return shoot;
    },
  } as unknown as KubeClient;
  const kube = {
    get: async () => ({
      metadata: { annotations: { "storage.alpha.kubernetes.io/migrated-plugins": state.plugins } },
    }),
  } as unknown as KubeClient;
  const shoot = { namespace: "garden-dev", name: "one" };
  return { clock, state, platform: createGardenerPlatform({ clock, kube, garden, shoot }) };
}

/** Whether it has resolved by now. */
async function isDone(clock: VirtualClock, work: Promise<void>): Promise<boolean> {
  let done = false;
  void work.then(() => {
    done = true;
  });
  await clock.advance(30_000);
  return done;
}

it("marks the Shoot with its version, and waits until Gardener has reconciled it", async () => {
  const { clock, state, platform } = world();
  const work = platform.setControlPlaneGates(gates, signal);
  expect(await isDone(clock, work)).toBe(false);
  expect(state.shoot.metadata.annotations).toEqual({
    kept: "yes",
    [annotation]: "1.20.2",
    [operation]: "reconcile",
  });
  expect(await platform.controlPlaneGates(signal)).toBeUndefined();
  const { [operation]: _begun, ...annotations } = state.shoot.metadata.annotations;
  state.shoot = { ...state.shoot, metadata: { ...state.shoot.metadata, annotations } };
  expect(await isDone(clock, work)).toBe(true);
  expect(await platform.controlPlaneGates(signal)).toEqual(gates);
});

it("waits for workers with the gates, says what rolls them, and has no way back", async () => {
  const { clock, state, platform } = world();
  const waits: string[] = [];
  const onWaiting = ({ subjects }: { readonly subjects: readonly { readonly why: string }[] }) =>
    waits.push(...subjects.map(({ why }) => why));
  const work = platform.setNodeGates("n1", gates, signal, onWaiting);
  expect(await isDone(clock, work)).toBe(false);
  expect(waits[0]).toContain("Gardener rolls workers with the next minor version");
  state.plugins = "kubernetes.io/aws-ebs";
  expect(await isDone(clock, work)).toBe(true);
  for (const set of [
    platform.setControlPlaneGates,
    (values: typeof off) => platform.setNodeGates("n1", values, signal),
  ]) {
    await expect(set(off, signal)).rejects.toThrow("Shoot garden-dev/one: Gardener has no way back");
  }
});
const off = { CSIMigrationAWS: false };

it("is not for a plugin of another provider, nor for a Shoot that sleeps or has failed", async () => {
  await expect(world({ type: "gcp" }).platform.setControlPlaneGates(gates, signal)).rejects.toThrow(
    "spec.provider.type is gcp, whose extension does not set CSIMigration, CSIMigrationAWS",
  );
  const fields = async (given: Parameters<typeof world>[0]) =>
    (await world(given).platform.findings?.(signal))?.map(({ field }) => field);
  expect(await fields({})).toEqual([]);
  const back = await world().platform.findings?.(signal, undefined, "rollback");
  expect(back).toMatchObject([
    { severity: "blocker", object: "Shoot garden-dev/one", field: "spec.kubernetes.version" },
  ]);
  expect(await fields({ hibernated: true })).toEqual(["spec.hibernation.enabled"]);
  expect(await fields({ state: "Failed" })).toEqual(["status.lastOperation.state"]);
});
