/** Operators take a snapshot and restore it into a new claim: what it holds is what had been written at one instant. */
import { isAlreadyExists, isNotFound, resources } from "@longshore/kube";
import { claimVolume, volumePod } from "@longshore/local";
import { snapshotResources } from "@longshore/storage";
import { swarmReader } from "../swarm-writer.ts";
import { nativeClaim, nativeClass, nativeWriter } from "../workloads/native-writers.ts";
import { namespace, type Operation, type Operators } from "./operators.ts";

const { volumeSnapshots } = snapshotResources;

/** A snapshot of the native volume is taken, restored and read; then all that is removed. */
export const snapshotRestored: Operation = async (operators, { name: drawName, ms, happens }) => {
  const { cluster, plan, clock } = operators.env;
  const claim = cluster
    .objects(resources.persistentVolumeClaims)
    .find(({ metadata, status }) => metadata.name === nativeClaim && status?.phase === "Bound");
  if (!plan.volumes.includes("native") || claim === undefined) return;
  const name = `restored-${drawName.replace(/\D/g, "")}`;
  if (!happens(`take a snapshot of ${nativeClaim} and restore it as ${name}`)) return;
  // Whatever was acknowledged before this moment is in it.
  const fromMs = clock.monotonicMs();
  const metadata = { name, namespace };
  const spec = { volumeSnapshotClassName: nativeClass, source: { persistentVolumeClaimName: nativeClaim } };
  const take = () =>
    make(operators, () =>
      cluster.kube.create(volumeSnapshots, { metadata, spec }, { signal: operators.signal }),
    );
  await take();
  const size = claim.status?.capacity?.storage ?? "";
  operators.later(ms, async () => {
    await restore(operators, name, size, fromMs);
    operators.decided(() => removeAll(operators, name));
  });
  // An older state has it not, and it is taken then; or has what was removed since.
  operators.decided(take);
};

/** @throws until it is restored, read, and removed */
async function restore(operators: Operators, name: string, size: string, fromMs: number): Promise<void> {
  const { kube } = operators.env.cluster;
  const { signal } = operators;
  const ref = { namespace, name };
  const snapshot = await kube.get(volumeSnapshots, ref, { signal });
  if (snapshot?.status?.readyToUse !== true) throw new Error(`snapshot ${name} is not ready`);
  const claim = {
    metadata: ref,
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: nativeClass,
      resources: { requests: { storage: size } },
      dataSource: { apiGroup: volumeSnapshots.group, kind: "VolumeSnapshot", name },
    },
  };
  await make(operators, () => kube.create(resources.persistentVolumeClaims, claim, { signal }));
  const command = [swarmReader, "$(LONGSHORE_MOUNT_DATA)", nativeWriter, `${fromMs}`];
  const pod = volumePod({ name, command, volume: claimVolume(name) });
  const onFailure = { ...pod, spec: { containers: [], ...pod.spec, restartPolicy: "OnFailure" } };
  // Deleted by another operation, it is made again.
  await make(operators, () => kube.create(resources.pods, onFailure, { signal }));
  const phase = (await kube.get(resources.pods, ref, { signal }))?.status?.phase;
  if (phase !== "Succeeded") throw new Error(`pod ${name}, which reads the restored volume, is ${phase}`);
  await removeAll(operators, name);
}

/** The pod that reads, the restored claim and the snapshot. */
async function removeAll({ env, signal }: Operators, name: string): Promise<void> {
  const { kube } = env.cluster;
  const ref = { namespace, name };
  await remove(() => kube.delete(resources.pods, ref, { signal }));
  await remove(() => kube.delete(resources.persistentVolumeClaims, ref, { signal }));
  await remove(() => kube.delete(volumeSnapshots, ref, { signal }));
}

async function remove(work: () => Promise<unknown>): Promise<void> {
  await work().catch((error) => {
    if (!isNotFound(error)) throw error;
  });
}

async function make(operators: Operators, create: () => Promise<unknown>): Promise<void> {
  await operators.insist(() =>
    create().catch((error) => {
      if (!isAlreadyExists(error)) throw error;
    }),
  );
}
