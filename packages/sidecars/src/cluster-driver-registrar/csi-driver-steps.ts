/** The steps over the CSIDriver object of a driver: what is observed, and one action each. */
import {
  type Actions,
  type CSIDriver,
  isAlreadyExists,
  isConflict,
  type KubeEnv,
  observeAgain,
  resources,
  type Steps,
  type Stored,
  settled,
} from "@longshore/kube";
import { type CsiDriverStep, decideCsiDriverStep, type ObservedCsiDriver } from "./decide-csi-driver-step.ts";

/** The parts of the controller. What it has reported is kept in memory only: a restart reports it once more. */
export function csiDriverSteps(env: KubeEnv, wanted: CSIDriver): Steps<ObservedCsiDriver, CsiDriverStep> {
  let reported: readonly string[] = [];
  return {
    async observe(name, { signal }) {
      const stored = await env.kube.get(resources.csiDrivers, { name }, { signal });
      return { stored, wanted, reported };
    },
    decide: decideCsiDriverStep,
    actions: csiDriverActions(env, (fields) => {
      reported = fields;
    }),
  };
}

/** @param remember keeps which fields were reported */
function csiDriverActions(
  env: KubeEnv,
  remember: (reported: readonly string[]) => void,
): Actions<ObservedCsiDriver, CsiDriverStep> {
  return {
    settle() {
      remember([]);
      return settled;
    },
    async create(_, { wanted }, { signal }) {
      remember([]);
      try {
        await env.kube.create(resources.csiDrivers, wanted, { signal });
        env.logger.info("CSIDriver object made");
      } catch (error) {
        // Another client created it first: the next pass compares.
        if (!isAlreadyExists(error)) throw error;
      }
      return settled;
    },
    async delete({ object }, _, { signal }) {
      await deleteCsiDriver(env, object, signal);
      return observeAgain;
    },
    report({ fields }, _, { key: name }) {
      remember(fields);
      env.logger.error(
        `CSIDriver "${name}" is not as the driver needs it (spec.${fields.join(", spec.")}): delete it, or correct the manifest that creates it`,
      );
      return settled;
    },
    leave: () => settled,
  };
}

/** Deletes this very object; one that was made in its place meanwhile stays. */
export async function deleteCsiDriver(
  { kube }: Pick<KubeEnv, "kube">,
  { metadata: { name, uid, resourceVersion } }: Stored<CSIDriver>,
  signal: AbortSignal,
): Promise<void> {
  try {
    await kube.delete(resources.csiDrivers, { name }, { signal, uid, resourceVersion });
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
}
