/**
 * Plays OpenShift's own operators on a local cluster, for what the feature gate operator writes: those of the control plane restart
 * their component with the rendered gates, and the machine-config-operator drains a node, restarts its kubelet with them, and lets
 * pods come back, one node after the other. The two know nothing of each other, so that either may be first.
 */
import { fileURLToPath } from "node:url";
import { type KubeObject, type Resource, resources, type Stored } from "@longshore/kube";
import { initialGates } from "@longshore/local";
import { crossingSubject, csiNodeLacks, volumesLeft } from "@longshore/migration";
import {
  kubeletConfigName,
  kubeletConfigs,
  machineConfigPools,
  openshiftCrdsUrl,
  operandKinds,
} from "@longshore/migration/openshift";
import { parseFeatureGates, systemClock } from "@longshore/runtime";
import { readDefinitions } from "../../../packages/apiserver/src/http/read-definitions.ts";
import type { TestCluster } from "./test-cluster.ts";

const never = new AbortController().signal;
const definitions: Resource<KubeObject> = {
  group: "apiextensions.k8s.io",
  versions: ["v1"],
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
};
type Gates = Readonly<Record<string, boolean>>;
type Side = "control plane" | "nodes";

/** The players; each works in the background until they are stopped. */
export class OpenshiftOperators {
  readonly #cluster: TestCluster;
  readonly #subjects: readonly ReturnType<typeof crossingSubject>[];
  readonly #end = new AbortController();
  readonly #held = new Set<Side>();
  readonly #applied = new Map<Side, string>();
  readonly #loops: readonly Promise<void>[];

  private constructor(cluster: TestCluster, plugins: readonly string[]) {
    this.#cluster = cluster;
    this.#subjects = plugins.map((plugin) => crossingSubject(plugin));
    this.#loops = [this.#repeat(() => this.#controlPlane()), this.#repeat(() => this.#nodes())];
  }

  /** Makes the kinds and objects of a platform, and begins. */
  static async start(cluster: TestCluster, plugins: readonly string[]): Promise<OpenshiftOperators> {
    const { kube } = cluster;
    for (const definition of await readDefinitions([fileURLToPath(openshiftCrdsUrl)])) {
      await kube.create(definitions, definition, { signal: never });
    }
    await cluster.until("the kinds are served", async () => {
      await kube.list(machineConfigPools, { signal: never });
      return true;
    });
    for (const { resource } of operandKinds) {
      await kube.create(resource, { metadata: { name: "cluster" }, spec: {} }, { signal: never });
    }
    await kube.create(machineConfigPools, { metadata: { name: "worker" } }, { signal: never });
    return new OpenshiftOperators(cluster, plugins);
  }

  /** Lets one side wait, so that the other is first. */
  hold(side: Side): void {
    this.#held.add(side);
  }

  /** Lets it go on. */
  release(side: Side): void {
    this.#held.delete(side);
  }

  /** Waits until a side runs with these gates, among others. */
  async runsWith(side: Side, gates: Gates): Promise<void> {
    await this.#cluster.until(
      `the ${side} runs with ${JSON.stringify(gates)}`,
      async () => {
        const applied = JSON.parse(this.#applied.get(side) ?? "{}") as Gates;
        return Object.entries(gates).every(([name, value]) => applied[name] === value);
      },
      120_000,
    );
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await Promise.all(this.#loops);
  }

  /** A conflict with the operator, or a lost answer, is tried again. */
  async #repeat(work: () => Promise<void>): Promise<void> {
    const { signal } = this.#end;
    while (!signal.aborted) {
      await work().catch(() => {});
      await systemClock.sleep(100, signal).catch(() => {});
    }
  }

  async #controlPlane(): Promise<void> {
    if (this.#held.has("control plane")) return;
    const { kube, cluster } = this.#cluster;
    for (const { component, resource, argumentsKey } of operandKinds) {
      const operand = await kube.get(resource, { name: "cluster" }, { signal: never });
      if (operand === undefined || isObserved(operand)) continue;
      const flags = operand.spec?.observedConfig?.[argumentsKey] as
        | { readonly "feature-gates"?: readonly string[] }
        | undefined;
      const gates = { ...initialGates, ...parseFeatureGates((flags?.["feature-gates"] ?? []).join(",")) };
      // Of the control plane only the controller manager's gates have an effect on a local cluster.
      if (component === "kube-controller-manager") {
        await cluster.platform.setControlPlaneGates(gates, never);
        this.#applied.set("control plane", JSON.stringify(gates));
      }
      const revision = (operand.status?.latestAvailableRevision ?? 0) + 1;
      await this.#report(resource, operand, {
        latestAvailableRevision: revision,
        nodeStatuses: [{ nodeName: "control-plane", currentRevision: revision }],
      });
    }
  }

  async #nodes(): Promise<void> {
    if (this.#held.has("nodes")) return;
    const { kube, cluster } = this.#cluster;
    const config = await kube.get(kubeletConfigs, { name: kubeletConfigName }, { signal: never });
    const gates = { ...initialGates, ...config?.spec?.kubeletConfig?.featureGates };
    const pool = await kube.get(machineConfigPools, { name: "worker" }, { signal: never });
    if (pool === undefined) return;
    const { items } = await kube.list(resources.nodes, { signal: never });
    if (this.#applied.get("nodes") !== JSON.stringify(gates)) {
      for (const [updatedMachineCount, { metadata }] of items.entries()) {
        const latest = await kube.get(machineConfigPools, { name: "worker" }, { signal: never });
        await this.#report(machineConfigPools, latest ?? pool, {
          machineCount: items.length,
          updatedMachineCount,
        });
        await this.#drain(metadata.name);
        await cluster.platform.setNodeGates(metadata.name, gates, never);
        await this.#isReady(metadata.name, gates);
        await this.#cordon(metadata.name, false);
      }
      this.#applied.set("nodes", JSON.stringify(gates));
    }
    if (isObserved(pool) && pool.status?.updatedMachineCount === items.length) return;
    const counts = { machineCount: items.length, updatedMachineCount: items.length };
    await this.#report(machineConfigPools, pool, counts);
  }

  /** Nothing of the plugins is attached to the node when it resolves. */
  async #drain(nodeName: string): Promise<void> {
    const { kube } = this.#cluster;
    await this.#cordon(nodeName, true);
    await this.#cluster.until(
      `${nodeName} is drained`,
      async () => {
        const fieldSelector = `spec.nodeName=${nodeName}`;
        const { items } = await kube.list(resources.pods, { fieldSelector, signal: never });
        for (const { metadata } of items) {
          const { name, namespace = "" } = metadata;
          const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } };
          const ref = { name, namespace };
          await kube.createSubresource(resources.pods, ref, "eviction", eviction, { signal: never });
        }
        const node = await kube.get(resources.nodes, { name: nodeName }, { signal: never });
        const attachments = (await kube.list(resources.volumeAttachments, { signal: never })).items;
        const left = this.#subjects.flatMap((subject) => volumesLeft(subject, node ?? {}, attachments));
        return items.length === 0 && left.length === 0;
      },
      120_000,
    );
  }

  /**
   * The kubelet is Ready only after its CSINode states what it serves (docs/behaviour/migration-controllers.md C1). The condition was
   * True before the restart, too, so the statement itself is waited for.
   */
  async #isReady(name: string, gates: Gates): Promise<void> {
    await this.#cluster.until(`${name} is ready`, async () => {
      const csiNode = await this.#cluster.kube.get(resources.csiNodes, { name }, { signal: never });
      return this.#subjects.every((subject) => {
        const direction = gates[subject.gate] === true ? "migrate" : "rollback";
        return csiNodeLacks(subject, direction, csiNode) === undefined;
      });
    });
  }

  async #cordon(name: string, unschedulable: boolean): Promise<void> {
    const body = { spec: { unschedulable } };
    await this.#cluster.kube.patch(resources.nodes, { name }, { type: "merge", body }, { signal: never });
  }

  async #report(resource: Resource<KubeObject>, object: Stored<KubeObject>, reported: object): Promise<void> {
    const status = { ...reported, observedGeneration: object.metadata.generation };
    await this.#cluster.kube.updateStatus(resource, { ...object, status } as KubeObject, { signal: never });
  }
}

function isObserved({
  metadata,
  status,
}: {
  readonly metadata: { readonly generation?: number };
  readonly status?: { readonly observedGeneration?: number };
}): boolean {
  return (status?.observedGeneration ?? -1) >= (metadata.generation ?? 0);
}
