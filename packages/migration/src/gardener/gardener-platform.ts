/**
 * Gardener as the platform of a crossing. A Shoot begins its migration with the version that an annotation of it names; the provider's
 * extension then sets the gates of the control plane, and new workers come with those of nodes, as Gardener rolls them. There is no way
 * back: an extension sets the gates for every Kubernetes version from that of the migration on (A6), and a Shoot is never taken to an
 * earlier one; once the migration is complete the control plane has no cloud flags any more, and the legacy classes are deleted (A7).
 * Source: docs/behaviour/migration-controllers.md A1, A2, A6, A7.
 */
import {
  type KubeClient,
  type KubeObject,
  type Resource,
  type Stored,
  updateWithRetry,
} from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import { globalMigrationGate, migrationGates } from "@longshore/translation";
import type { Finding } from "../crossing/finding.ts";
import type { GateValues, Platform } from "../crossing/platform.ts";
import { waitFor } from "../crossing/waits.ts";
import { includesGates, readNodeGates } from "../platforms/observed-gates.ts";
import { annotationKeyKubernetesVersion } from "./cluster.ts";

/** What of a `core.gardener.cloud/v1beta1` Shoot the platform reads and writes. */
interface GardenShoot extends KubeObject {
  readonly spec?: {
    readonly provider?: { readonly type?: string };
    readonly kubernetes?: { readonly version?: string };
    readonly hibernation?: { readonly enabled?: boolean };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly lastOperation?: { readonly state?: string; readonly description?: string };
  };
}

const shoots: Resource<GardenShoot> = {
  group: "core.gardener.cloud",
  versions: ["v1beta1"],
  kind: "Shoot",
  plural: "shoots",
  namespaced: true,
};

/** What the platform needs. */
export interface GardenerPlatformEnv {
  readonly clock: Clock;
  /** The shoot's own API server. */
  readonly kube: KubeClient;
  /** That of the garden cluster, where the Shoot is. */
  readonly garden: KubeClient;
  readonly shoot: { readonly namespace: string; readonly name: string };
}

/** The Shoot cannot be carried as was requested. */
export class GardenerPlatformError extends Error {
  override readonly name = "GardenerPlatformError";
}

const noWayBack = {
  field: "spec.kubernetes.version",
  reason:
    "Gardener has no way back: the extension sets the gates for this version and every later one, and no Shoot is taken to an earlier one",
  remedy: "leave the volumes with the driver, which serves them as they are",
};
const operationKey = "gardener.cloud/operation";
const pollMs = 10_000;

/** In-tree plugins of each provider type. */
const pluginsOf: Readonly<Record<string, readonly string[]>> = {
  aws: ["kubernetes.io/aws-ebs"],
  azure: ["kubernetes.io/azure-disk", "kubernetes.io/azure-file"],
  gcp: ["kubernetes.io/gce-pd"],
  openstack: ["kubernetes.io/cinder"],
  vsphere: ["kubernetes.io/vsphere-volume"],
};

/** Makes the platform. */
export function createGardenerPlatform(env: GardenerPlatformEnv): Platform {
  const { clock, kube, garden, shoot: ref } = env;
  const object = `Shoot ${ref.namespace}/${ref.name}`;
  const read = async (signal: AbortSignal): Promise<Stored<GardenShoot>> => {
    const shoot = await garden.get(shoots, ref, { signal });
    if (shoot === undefined)
      throw new GardenerPlatformError(`${object}: there is none in the garden: see its name`);
    return shoot;
  };
  const requireForward = (values: GateValues) => {
    if (!Object.values(values).includes(false)) return;
    throw new GardenerPlatformError(`${object}: ${noWayBack.reason}: ${noWayBack.remedy}`);
  };
  return {
    name: "gardener",
    rollsNodes: true,
    async controlPlaneGates(signal) {
      const shoot = await read(signal);
      return isMarked(shoot) && isReconciled(shoot) ? gatesOf(shoot) : undefined;
    },
    nodeGates: (nodeName, signal) => readNodeGates(kube, nodeName, signal),
    async setControlPlaneGates(values, signal, onWaiting) {
      requireForward(values);
      requireProvider(await read(signal), values, object);
      await updateWithRetry(garden, shoots, ref, marked, { signal });
      for (;;) {
        const shoot = await read(signal);
        if (isReconciled(shoot)) return;
        const { state = "unknown", description = "" } = shoot.status?.lastOperation ?? {};
        onWaiting?.(
          waitFor(
            "Shoot",
            `${ref.namespace}/${ref.name}`,
            `status.lastOperation is ${state} ${description}`.trim(),
          ),
        );
        await clock.sleep(pollMs, signal);
      }
    },
    async setNodeGates(nodeName, values, signal, onWaiting) {
      requireForward(values);
      while (!includesGates(await readNodeGates(kube, nodeName, signal), values)) {
        const why =
          "to be replaced: Gardener rolls workers with the next minor version of spec.kubernetes.version";
        onWaiting?.(waitFor("Node", nodeName, why));
        await clock.sleep(pollMs, signal);
      }
    },
    findings: async (signal, _onWaiting, direction) => [
      ...(direction === "rollback" ? [{ severity: "blocker", object, ...noWayBack } as const] : []),
      ...findingsOf(await read(signal), object),
    ],
  };
}

function isMarked({ metadata }: GardenShoot): boolean {
  return metadata?.annotations?.[annotationKeyKubernetesVersion] !== undefined;
}

/** Marks the Shoot, and has it reconciled; undefined when it is marked. */
function marked(shoot: Stored<GardenShoot>): Stored<GardenShoot> | undefined {
  if (isMarked(shoot)) return undefined;
  const annotations = {
    ...shoot.metadata.annotations,
    [annotationKeyKubernetesVersion]: shoot.spec?.kubernetes?.version ?? "",
    [operationKey]: "reconcile",
  };
  return { ...shoot, metadata: { ...shoot.metadata, annotations } };
}

/** Gardener takes the annotation of the operation away as it begins with it. */
function isReconciled({ metadata, status }: Stored<GardenShoot>): boolean {
  return (
    metadata.annotations?.[operationKey] === undefined &&
    (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0) &&
    status?.lastOperation?.state === "Succeeded"
  );
}

function gatesOf(shoot: GardenShoot): GateValues {
  const plugins = pluginsOf[shoot.spec?.provider?.type ?? ""] ?? [];
  const gates = migrationGates.filter(({ inTreeName }) => plugins.includes(inTreeName));
  return Object.fromEntries([[globalMigrationGate, true], ...gates.map(({ gate }) => [gate, true])]);
}

function requireProvider(shoot: GardenShoot, values: GateValues, object: string): void {
  if (includesGates(gatesOf(shoot), values)) return;
  const gates = Object.keys(values).join(", ");
  throw new GardenerPlatformError(
    `${object}: spec.provider.type is ${shoot.spec?.provider?.type ?? "missing"}, whose extension does not set ${gates}: name the plugin of that provider`,
  );
}

function findingsOf(shoot: Stored<GardenShoot>, object: string): readonly Finding[] {
  const blocked = (field: string, reason: string, remedy: string): Finding => ({
    severity: "blocker",
    object,
    field,
    reason,
    remedy,
  });
  const state = shoot.status?.lastOperation?.state;
  return [
    ...(shoot.spec?.hibernation?.enabled === true
      ? [blocked("spec.hibernation.enabled", "it is hibernated", "wake it up")]
      : []),
    ...(state === "Failed"
      ? [
          blocked(
            "status.lastOperation.state",
            "its last operation has failed",
            "see why, and have it reconciled",
          ),
        ]
      : []),
  ];
}
