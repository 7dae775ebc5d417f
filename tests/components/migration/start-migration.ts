/** Starts the controller of a cycle with a life: each of its API requests, to seed and shoot, is one of its calls. */
import type { HttpKubeClient, KubeClient } from "@longshore/kube";
import { addCSIMigrationController, type NewClientForShoot } from "@longshore/migration/gardener";
import { startFeatureGateOperator } from "@longshore/migration/openshift";
import type { Component, RuntimeEnv } from "@longshore/runtime";
import { type Life, mortalClient } from "@longshore/testing/kube";
import { volumeGatesFor } from "@longshore/volumes";
import type { MigrationCycleName } from "./crash-cycles.ts";

/** The seams, with the client of the seed, and how clients of shoots are made, with the client of the seed that is given. */
export interface MigrationSeams {
  readonly env: RuntimeEnv;
  readonly kube: KubeClient;
  readonly shootClients: (seed: KubeClient) => NewClientForShoot;
}

/** Starts it. Without a life it lives on. */
export function startMigration(
  name: MigrationCycleName,
  { env, kube: given, shootClients }: MigrationSeams,
  life?: Life,
): Component {
  const kube = life === undefined ? given : mortalClient(given, life);
  const knownGates = volumeGatesFor("1.20");
  if (name === "feature-gate-operator") {
    const plugins = ["kubernetes.io/aws-ebs"];
    return startFeatureGateOperator({ ...env, kube }, { order: "any", knownGates, plugins });
  }
  if (name === "feature-gate-operator with two sets") {
    return startFeatureGateOperator({ ...env, kube }, { order: "two-sets", knownGates, plugins: [] });
  }
  const newClient = shootClients(kube);
  return addCSIMigrationController(
    { ...env, kube },
    {
      type: "aws",
      csiMigrationKubernetesVersion: "1.18",
      storageClassNameToLegacyProvisioner: { default: "kubernetes.io/aws-ebs" },
      newClientForShoot: async (cluster, signal) => {
        const shoot = await newClient(cluster, signal);
        return life === undefined ? shoot : (mortalClient(shoot, life) as HttpKubeClient);
      },
    },
  );
}
