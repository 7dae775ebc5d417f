/** Moves that an upgrade and a removal have in common: taking a part down, and everything that is left. */
import { isConflict, resources } from "@longshore/kube";
import { componentLabel, type DeployedPart, driverLabel } from "../objects/labels.ts";
import { type DeployedObject, listAll, nameOf, partOf } from "./deployed-objects.ts";
import { missingUntilGone } from "./readiness.ts";
import { persistently, type Rollout, waitUntil } from "./rollout.ts";

const workloadKinds: ReadonlySet<string> = new Set(["StatefulSet", "Deployment", "DaemonSet"]);

/** The workloads of the part. */
export function workloadsOf(
  deployed: readonly DeployedObject[],
  part: DeployedPart,
): readonly DeployedObject[] {
  return deployed.filter((one) => workloadKinds.has(one.resource.kind) && partOf(one) === part);
}

/** Deletes the workloads of the part, and waits until all its pods have ended: none of them may act any more. */
export async function takeDown(
  rollout: Rollout,
  driver: string,
  part: DeployedPart,
  workloads: readonly DeployedObject[],
): Promise<void> {
  for (const one of workloads) await remove(rollout, one);
  if (rollout.dryRun) return;
  await waitUntil(rollout, async (signal) => missingUntilGone(await podsOf(rollout, driver, part, signal)));
}

/** The pods of a part, wherever they are. */
export function podsOf(rollout: Rollout, driver: string, part: DeployedPart, signal: AbortSignal) {
  const labelSelector = `${driverLabel}=${driver},${componentLabel}=${part}`;
  return listAll(rollout.env.kube, resources.pods, { signal, labelSelector });
}

/** Deletes this very object, and what it owns after it. */
export async function remove(rollout: Rollout, one: DeployedObject): Promise<void> {
  const { resource, object } = one;
  rollout.say(`${rollout.dryRun ? "would delete" : "deleting"} ${nameOf(one)}`);
  if (rollout.dryRun) return;
  const { name, namespace, uid } = object.metadata;
  const ref = resource.namespaced && namespace !== undefined ? { name, namespace } : { name };
  await persistently(rollout, async (signal) => {
    try {
      await rollout.env.kube.delete(resource, ref, { signal, uid, propagationPolicy: "Background" });
    } catch (error) {
      // Another has taken its name meanwhile.
      if (!isConflict(error)) throw error;
    }
  });
}
