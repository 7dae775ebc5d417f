/** The FeatureGate operator on an embedded API server, under the virtual clock; the test plays OpenShift's own operators. */
import { fileURLToPath } from "node:url";
import { createApiServer, memoryStore, readDefinitions } from "@longshore/apiserver";
import {
  interceptWrites,
  KubeApiError,
  type KubeClient,
  type KubeObject,
  KubeTransportError,
  type Resource,
  resources,
} from "@longshore/kube";
import {
  clusterOperatorName,
  clusterOperators,
  type FeatureGate,
  type FeatureGateOptions,
  featureGateObjects,
  kubeletConfigName,
  kubeletConfigs,
  machineConfigPools,
  openshiftCrdsUrl,
  operandKinds,
  startFeatureGateOperator,
} from "@longshore/migration/openshift";
import type { Component } from "@longshore/runtime";
import { virtualEnv } from "@longshore/testing/kube";
import { volumeGatesFor } from "@longshore/volumes";
import { afterEach, describe, expect, it } from "vitest";

const { signal } = new AbortController();
const ebs = "kubernetes.io/aws-ebs";
const both = ["CSIMigrationAWS=true", "CSIMigrationOpenStack=true"];
const options: FeatureGateOptions = {
  order: "any",
  knownGates: volumeGatesFor("1.20"),
  plugins: [ebs, "kubernetes.io/cinder"],
};
const twoSets = { order: "two-sets", plugins: [] } as const;

class World {
  readonly env = virtualEnv();
  readonly kube: KubeClient;
  /** What was written, in order: verb, kind and name. */
  readonly writes: string[] = [];
  /** The write of this number, from 0, fails: before it takes effect, or after. */
  fault: { readonly at: number; readonly when: "before" | "after" } | undefined;
  /** Writes of this kind are refused, as by a webhook that is down, and counted. */
  refuses: string | undefined;
  refused = 0;
  #operator: Component | undefined;
  #revision = 0;

  private constructor(definitions: Awaited<ReturnType<typeof readDefinitions>>) {
    const server = { controllers: false, store: memoryStore(), definitions } as const;
    this.kube = createApiServer(this.env, server).client();
  }

  /** A platform of which all is rolled out, without a FeatureGate. */
  static async start(definition: "strict" | "loose" = "strict"): Promise<World> {
    const definitions = await readDefinitions([fileURLToPath(openshiftCrdsUrl)]);
    const world = new World(definition === "loose" ? definitions.map(withoutSchema) : definitions);
    worlds.push(world);
    for (const { resource } of operandKinds) {
      const observedConfig = { extendedArguments: { v: ["2"] }, theirs: "kept" };
      await world.kube.create(
        resource,
        { metadata: { name: "cluster" }, spec: { managementState: "Managed", observedConfig } },
        { signal },
      );
    }
    await world.kube.create(machineConfigPools, { metadata: { name: "worker" } }, { signal });
    await world.rollOutControlPlane();
    await world.rollOutPool();
    return world;
  }

  run(given: Partial<FeatureGateOptions> = {}): void {
    const env = { ...this.env, kube: this.#watched(this.kube) };
    this.#operator = startFeatureGateOperator(env, { ...options, ...given });
  }

  async stop(): Promise<void> {
    const operator = this.#operator;
    this.#operator = undefined;
    if (operator !== undefined) await this.env.clock.run(operator.stop());
  }

  settle(ms = 1_000): Promise<void> {
    return this.env.clock.advance(ms) as Promise<void>;
  }

  /** Selects a set and lets the operator see it. */
  async select(featureSet: string, customNoUpgrade?: Spec["customNoUpgrade"]): Promise<void> {
    const spec = { featureSet, ...(customNoUpgrade === undefined ? {} : { customNoUpgrade }) };
    const present = await this.kube.get(featureGateObjects, { name: "cluster" }, { signal });
    if (present === undefined) {
      await this.kube.create(featureGateObjects, { metadata: { name: "cluster" }, spec }, { signal });
    } else {
      await this.kube.update(featureGateObjects, { ...present, spec }, { signal });
    }
    await this.settle();
  }

  /** Each operator of the control plane observes its configuration, makes a revision of it, and has all nodes run with that. */
  async rollOutControlPlane(): Promise<void> {
    this.#revision++;
    for (const { resource } of operandKinds)
      await this.#report(resource, "cluster", rolledOut(this.#revision));
  }

  /** Each has observed its configuration, and made no revision of it yet. */
  async observeControlPlane(): Promise<void> {
    for (const { resource } of operandKinds)
      await this.#report(resource, "cluster", rolledOut(this.#revision));
  }

  /** Each makes a revision for a reason of its own before it has observed its configuration. */
  async reviseWithoutObserving(): Promise<void> {
    this.#revision++;
    for (const { resource } of operandKinds) {
      await this.#report(resource, "cluster", rolledOut(this.#revision), 1);
    }
  }

  async rollOutPool(counts: object = { machineCount: 3, updatedMachineCount: 3 }): Promise<void> {
    await this.#report(machineConfigPools, "worker", counts);
  }

  async #report(resource: Resource<KubeObject>, name: string, reported: object, behind = 0): Promise<void> {
    const object = await this.kube.get(resource, { name }, { signal });
    if (object === undefined) throw new Error(`${name} is gone`);
    const status = { ...reported, observedGeneration: (object.metadata.generation ?? 0) - behind };
    await this.kube.updateStatus(resource, { ...object, status } as KubeObject, { signal });
  }

  /** The gates that each reader is given. */
  async gates(): Promise<{ readonly controlPlane: readonly unknown[]; readonly kubelet: unknown }> {
    const given = [];
    for (const { resource, argumentsKey } of operandKinds) {
      const object = await this.kube.get(resource, { name: "cluster" }, { signal });
      const flags = object?.spec?.observedConfig?.[argumentsKey] as Record<string, unknown> | undefined;
      given.push(flags?.["feature-gates"]);
    }
    const config = await this.kube.get(kubeletConfigs, { name: kubeletConfigName }, { signal });
    return { controlPlane: given, kubelet: config?.spec?.kubeletConfig?.featureGates };
  }

  /** Conditions that are not as they are in quiet times: `Type=Status Reason`. */
  async conditions(): Promise<readonly string[]> {
    const operator = await this.kube.get(clusterOperators, { name: clusterOperatorName }, { signal });
    return (operator?.status?.conditions ?? [])
      .filter(({ reason }) => reason !== "AsExpected")
      .map(({ type, status, reason }) => `${type}=${status} ${reason}`);
  }

  async aCsiNode(name: string, plugins: string): Promise<void> {
    const annotations = { "storage.alpha.kubernetes.io/migrated-plugins": plugins };
    const csiNode = { metadata: { name, annotations }, spec: { drivers: [] } };
    const present = await this.kube.get(resources.csiNodes, { name }, { signal });
    if (present === undefined) await this.kube.create(resources.csiNodes, csiNode, { signal });
    else
      await this.kube.update(
        resources.csiNodes,
        { ...present, metadata: { ...present.metadata, annotations } },
        { signal },
      );
  }

  #watched(kube: KubeClient): KubeClient {
    return interceptWrites(kube, async (request, given, send) => {
      const { verb, resource, key = "" } = request;
      if (resource.plural === "events") return send(given);
      if (resource.kind === this.refuses) {
        this.refused++;
        const message = "failed calling webhook: connection refused";
        throw new KubeApiError({ kind: "Status", apiVersion: "v1", status: "Failure", code: 500, message });
      }
      const { at, when } = this.fault ?? {};
      const isDue = this.writes.length === at;
      if (isDue) this.fault = undefined;
      if (isDue && when === "before") throw new KubeTransportError("the write was lost");
      this.writes.push(`${verb} ${resource.kind} ${key}`);
      const answer = await send(given);
      if (isDue) throw new KubeTransportError("the answer was lost");
      return answer;
    });
  }
}

/** A definition of the same kind that says nothing of `spec`. */
function withoutSchema(definition: Definition): Definition {
  const { spec } = definition as { readonly spec: { readonly versions: readonly object[] } };
  const openAPIV3Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  const versions = spec.versions.map((version) => ({ ...version, schema: { openAPIV3Schema } }));
  return { ...definition, spec: { ...spec, versions } } as Definition;
}

type Definition = Awaited<ReturnType<typeof readDefinitions>>[number];
type Spec = NonNullable<FeatureGate["spec"]>;
const rolledOut = (revision: number) => ({
  latestAvailableRevision: revision,
  nodeStatuses: [{ nodeName: "m", currentRevision: revision }],
});

const worlds: World[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.stop();
});

const none = { controlPlane: [undefined, undefined, undefined], kubelet: undefined };
const all = {
  controlPlane: [both, both, both],
  kubelet: { CSIMigrationAWS: true, CSIMigrationOpenStack: true },
};

describe("the FeatureGate operator", () => {
  it("gives the control plane and the kubelets the gates of a set, and takes them back (migration-controllers.md B3)", async () => {
    const world = await World.start();
    world.run();
    await world.select("CSIMigration");
    expect(await world.gates()).toEqual(all);
    expect(await world.conditions()).toEqual(["Progressing=True RollingOut"]);
    await world.rollOutControlPlane();
    await world.settle();
    expect(await world.conditions()).toEqual([]);
    await world.select("");
    expect(await world.gates()).toEqual(none);
  });

  it("leaves the rest of an observed configuration as it is (migration-controllers.md B6)", async () => {
    const world = await World.start();
    world.run();
    const kind = operandKinds[1];
    if (kind === undefined) throw new Error("no controller manager");
    const present = await world.kube.get(kind.resource, { name: "cluster" }, { signal });
    const theirs = { "feature-gates": ["Theirs=true"], v: ["2"] };
    const spec = { ...present?.spec, observedConfig: { extendedArguments: theirs, theirs: "kept" } };
    await world.kube.update(kind.resource, { metadata: { ...present?.metadata }, spec }, { signal });
    await world.select("CSIMigration");
    const rendered = await world.kube.get(kind.resource, { name: "cluster" }, { signal });
    expect(rendered?.spec).toEqual({
      managementState: "Managed",
      observedConfig: {
        extendedArguments: { "feature-gates": ["Theirs=true", ...both], v: ["2"] },
        theirs: "kept",
      },
    });
    await world.select("");
    const after = await world.kube.get(kind.resource, { name: "cluster" }, { signal });
    expect(after?.spec).toEqual(spec);
  });

  it("takes a custom list, changes it, and keeps the cluster from upgrades (migration-controllers.md B6)", async () => {
    const world = await World.start();
    world.run();
    await world.select("CustomNoUpgrade", { enabled: ["CSIMigrationCinder"] });
    expect((await world.gates()).kubelet).toEqual({ CSIMigrationOpenStack: true });
    await world.select("CustomNoUpgrade", { enabled: [], disabled: ["CSIMigrationOpenStack"] });
    expect(await world.gates()).toEqual(none);
    await world.rollOutControlPlane();
    await world.settle();
    expect(await world.conditions()).toEqual(["Upgradeable=False FeatureSetNotUpgradeable"]);
  });

  it.each<[string, string, Spec["customNoUpgrade"]]>([
    ["UnknownFeatureSet", "LatencySensitive", undefined],
    ["UnknownFeatureGate", "CustomNoUpgrade", { enabled: ["Sometimes"] }],
    ["NodeMustDecide", "CustomNoUpgrade", { enabled: ["CSIMigrationAWSComplete"] }],
  ])(
    "changes no gate for what it refuses, and says so once: %s (migration-controllers.md B6)",
    async (reason, set, custom) => {
      const world = await World.start();
      world.run();
      await world.select("CSIMigration");
      await world.select(set, custom);
      expect(await world.gates()).toEqual(all);
      expect(await world.conditions()).toContain(`Degraded=True ${reason}`);
      await world.settle(600_000);
      const { items } = await world.kube.list(resources.events, { signal });
      expect(items.map((event) => `${event.reason} ${event.count ?? 1}`)).toEqual([`${reason} 1`]);
      await world.select("");
      expect(await world.gates()).toEqual(none);
    },
  );

  it.each<[string, unknown]>([
    ["spec must be an object", "CSIMigration"],
    ["spec.featureSet must be a string", { featureSet: 4 }],
    [
      "spec.customNoUpgrade must be an object",
      { featureSet: "CustomNoUpgrade", customNoUpgrade: ["CSIMigrationAWS"] },
    ],
    [
      "spec.customNoUpgrade.enabled must be a list of names of gates",
      { featureSet: "CustomNoUpgrade", customNoUpgrade: { enabled: "CSIMigrationAWS" } },
    ],
    [
      "spec.customNoUpgrade.disabled must be a list of names of gates",
      { featureSet: "CustomNoUpgrade", customNoUpgrade: { disabled: [null] } },
    ],
  ])(
    "refuses a malformed FeatureGate that another definition lets through: %s (migration-controllers.md B6)",
    async (message, spec) => {
      const world = await World.start("loose");
      world.run();
      await world.select("CSIMigration");
      const present = await world.kube.get(featureGateObjects, { name: "cluster" }, { signal });
      await world.kube.update(featureGateObjects, { ...present, spec } as FeatureGate, { signal });
      await world.settle(600_000);
      expect(await world.gates()).toEqual(all);
      expect(await world.conditions()).toContain("Degraded=True InvalidFeatureGate");
      const { items } = await world.kube.list(resources.events, { signal });
      expect(items.map((event) => event.message)).toEqual([message]);
      // Without its record the operator does not know what is in force: it flips nothing either.
      await world.kube.delete(clusterOperators, { name: clusterOperatorName }, { signal });
      await world.settle();
      expect(await world.gates()).toEqual(all);
      await world.select("");
      expect(await world.gates()).toEqual(none);
    },
  );

  it("ignores a FeatureGate of another name (migration-controllers.md B3)", async () => {
    const world = await World.start();
    world.run();
    const other = { metadata: { name: "other" }, spec: { featureSet: "CSIMigration" } };
    await world.kube.create(featureGateObjects, other, { signal });
    await world.settle(600_000);
    expect(await world.gates()).toEqual(none);
  });

  it("tries again with growing pauses what the platform does not take, and says so (migration-controllers.md B6)", async () => {
    const world = await World.start();
    world.refuses = "KubeControllerManager";
    world.run();
    await world.select("CSIMigration");
    await world.settle(600_000);
    expect((await world.gates()).kubelet).toBeUndefined();
    expect(world.refused).toBeGreaterThan(3);
    expect(world.refused).toBeLessThan(40);
    const { items } = await world.kube.list(resources.events, { signal });
    expect(items.map(({ reason, message }) => [reason, message])).toEqual([
      ["GatesNotRendered", "failed calling webhook: connection refused: it is tried again"],
    ]);
    world.refuses = undefined;
    await world.settle(600_000);
    expect(await world.gates()).toEqual(all);
  });

  it("keeps a final set though it is left, or its FeatureGate deleted (migration-controllers.md B6)", async () => {
    const world = await World.start();
    world.run();
    await world.select("TechPreviewNoUpgrade");
    await world.select("");
    expect(await world.gates()).toEqual(all);
    expect(await world.conditions()).toContain("Degraded=True FeatureSetIsFinal");
    await world.kube.delete(featureGateObjects, { name: "cluster" }, { signal });
    await world.settle();
    expect(await world.gates()).toEqual(all);
    await world.stop();
    world.run();
    await world.settle();
    expect(await world.gates()).toEqual(all);
  });

  it("removes what was rendered with the release in which the plugins are GA (migration-controllers.md B4)", async () => {
    const world = await World.start();
    world.run();
    await world.select("CSIMigration");
    expect(await world.gates()).toEqual(all);
    await world.stop();
    world.run({ knownGates: volumeGatesFor("1.25") });
    await world.settle();
    expect(await world.gates()).toEqual(none);
    expect(await world.conditions()).toEqual(["Progressing=True RollingOut"]);
  });

  it("gives gates again after a downgrade to a release that has them off, control plane first (migration-controllers.md B2)", async () => {
    const world = await World.start();
    world.run({ knownGates: volumeGatesFor("1.25") });
    await world.select("CSIMigration");
    expect(await world.gates()).toEqual(none);
    await world.stop();
    world.run();
    await world.settle();
    expect(await world.gates()).toEqual(all);
    await world.select("");
    expect(await world.gates()).toEqual(none);
  });

  it("says which operand is missing, and goes on once it is there (migration-controllers.md B6)", async () => {
    const world = await World.start();
    const [kind] = operandKinds;
    if (kind === undefined) throw new Error("no API server");
    await world.kube.delete(kind.resource, { name: "cluster" }, { signal });
    world.run();
    await world.select("CSIMigration");
    expect(await world.conditions()).toContain("Degraded=True OperandMissing");
    await world.kube.create(kind.resource, { metadata: { name: "cluster" } }, { signal });
    await world.settle();
    expect(await world.gates()).toEqual(all);
    expect(await world.conditions()).toEqual(["Progressing=True RollingOut"]);
  });

  it("leaves a KubeletConfig of that name that is another's (migration-controllers.md B6)", async () => {
    const world = await World.start();
    const theirs = { kubeletConfig: { featureGates: { Theirs: true } } };
    await world.kube.create(
      kubeletConfigs,
      { metadata: { name: kubeletConfigName }, spec: theirs },
      { signal },
    );
    world.run();
    await world.select("CSIMigration");
    expect((await world.gates()).kubelet).toEqual({ Theirs: true });
    expect(await world.conditions()).toContain("Degraded=True ForeignKubeletConfig");
  });

  it("reports a pool that is degraded (migration-controllers.md B6)", async () => {
    const world = await World.start();
    world.run();
    await world.rollOutPool({ conditions: [{ type: "Degraded", status: "True" }] });
    await world.settle();
    expect(await world.conditions()).toEqual(["Degraded=True MachineConfigPoolDegraded"]);
  });

  it("names its objects, and the time of a condition is that of its last change (migration-controllers.md B6)", async () => {
    const world = await World.start();
    world.run();
    await world.settle(10_000);
    const before = await world.kube.get(clusterOperators, { name: clusterOperatorName }, { signal });
    await world.select("CSIMigration");
    const after = await world.kube.get(clusterOperators, { name: clusterOperatorName }, { signal });
    const timeOf = (operator: typeof before, type: string) =>
      operator?.status?.conditions?.find((one) => one.type === type)?.lastTransitionTime;
    expect(timeOf(after, "Available")).toBe(timeOf(before, "Available"));
    expect(timeOf(after, "Progressing")).not.toBe(timeOf(before, "Progressing"));
    expect(after?.status?.relatedObjects?.map(({ resource, name }) => `${resource} ${name}`)).toEqual([
      "featuregates cluster",
      "kubeapiservers cluster",
      "kubecontrollermanagers cluster",
      "kubeschedulers cluster",
      `kubeletconfigs ${kubeletConfigName}`,
      "machineconfigpools ",
    ]);
  });
});

describe("the FeatureGate operator with two sets", () => {
  const isOn = async (world: World) => {
    const { controlPlane, kubelet } = await world.gates();
    return { controlPlane: controlPlane[1] !== undefined, nodes: kubelet !== undefined };
  };

  it("goes to the nodes once the whole control plane has restarted (migration-controllers.md B5)", async () => {
    const world = await World.start();
    world.run(twoSets);
    await world.select("CSIMigrationNode");
    expect(await world.gates()).toEqual(none);
    expect(await world.conditions()).toContain("Degraded=True ControlPlaneFirst");
    await world.select("CSIMigrationControlPlane");
    expect(await isOn(world)).toEqual({ controlPlane: true, nodes: false });
    await world.select("CSIMigrationNode");
    expect(await isOn(world)).toEqual({ controlPlane: true, nodes: false });
    expect(await world.conditions()).toEqual(["Progressing=True WaitingForControlPlane"]);
    await world.rollOutControlPlane();
    await world.settle();
    expect(await isOn(world)).toEqual({ controlPlane: true, nodes: true });
  });

  it("waits for the revision of the gates, not only until they are observed (migration-controllers.md B6)", async () => {
    const world = await World.start();
    world.run(twoSets);
    await world.select("CSIMigrationControlPlane");
    await world.select("CSIMigrationNode");
    await world.observeControlPlane();
    await world.settle(60_000);
    expect(await isOn(world)).toEqual({ controlPlane: true, nodes: false });
    expect(await world.conditions()).toEqual(["Progressing=True WaitingForControlPlane"]);
    await world.rollOutControlPlane();
    await world.settle();
    expect(await isOn(world)).toEqual({ controlPlane: true, nodes: true });
  });

  it("a revision that is made before the gates are observed is not theirs (migration-controllers.md B6)", async () => {
    const world = await World.start();
    world.run(twoSets);
    await world.select("CSIMigrationControlPlane");
    await world.select("CSIMigrationNode");
    await world.reviseWithoutObserving();
    await world.settle();
    await world.observeControlPlane();
    await world.settle(60_000);
    expect(await isOn(world)).toEqual({ controlPlane: true, nodes: false });
    await world.rollOutControlPlane();
    await world.settle();
    expect(await isOn(world)).toEqual({ controlPlane: true, nodes: true });
  });

  it("gates that are taken back before there is a revision of them need none (migration-controllers.md B6)", async () => {
    const world = await World.start();
    world.run(twoSets);
    await world.select("CSIMigrationControlPlane");
    await world.select("");
    expect(await world.gates()).toEqual(none);
    await world.observeControlPlane();
    await world.settle();
    expect(await world.conditions()).toEqual([]);
  });

  it("leaves the control plane only after the annotation is cleared on every CSINode (migration-controllers.md B5)", async () => {
    const world = await migratedWorld();
    await world.select("");
    expect(await isOn(world)).toEqual({ controlPlane: true, nodes: true });
    expect(await world.conditions()).toContain("Degraded=True NodesFirst");
    await world.select("CSIMigrationControlPlane");
    expect(await isOn(world)).toEqual({ controlPlane: true, nodes: false });
    await world.select("");
    for (const cleared of ["node-1", "node-2"]) {
      await world.settle(120_000);
      expect(await isOn(world)).toEqual({ controlPlane: true, nodes: false });
      expect(await world.conditions()).toEqual(["Progressing=True WaitingForNodes"]);
      await world.aCsiNode(cleared, "");
    }
    await world.settle(31_000);
    expect(await world.gates()).toEqual(none);
  });

  it("waits for machines that roll out, though no CSINode lists a plugin yet (migration-controllers.md B6)", async () => {
    const world = await migratedWorld();
    await world.aCsiNode("node-1", "");
    await world.aCsiNode("node-2", "");
    await world.rollOutPool({ machineCount: 3, updatedMachineCount: 1 });
    await world.select("CSIMigrationControlPlane");
    await world.select("");
    await world.settle(120_000);
    expect((await isOn(world)).controlPlane).toBe(true);
    await world.rollOutPool();
    await world.settle();
    expect(await world.gates()).toEqual(none);
  });

  it("finds the set in force again when its record is lost (migration-controllers.md B6)", async () => {
    const world = await migratedWorld();
    await world.stop();
    await world.kube.delete(clusterOperators, { name: clusterOperatorName }, { signal });
    await world.select("");
    world.run(twoSets);
    await world.settle();
    expect(await isOn(world)).toEqual({ controlPlane: true, nodes: true });
    expect(await world.conditions()).toContain("Degraded=True NodesFirst");
  });
});

/** Two nodes that are migrated with the set of the nodes, the operator running. */
async function migratedWorld(): Promise<World> {
  const world = await World.start();
  world.run(twoSets);
  await world.select("CSIMigrationControlPlane");
  await world.rollOutControlPlane();
  await world.select("CSIMigrationNode");
  await world.aCsiNode("node-1", ebs);
  await world.aCsiNode("node-2", `${ebs},kubernetes.io/cinder`);
  return world;
}

describe("after any fault the same end is reached", () => {
  const turnedOn = [
    `create ClusterOperator ${clusterOperatorName}`,
    `update ClusterOperator ${clusterOperatorName}`,
    "update KubeAPIServer cluster",
    "update KubeControllerManager cluster",
    "update KubeScheduler cluster",
    `create KubeletConfig ${kubeletConfigName}`,
    `update ClusterOperator ${clusterOperatorName}`,
  ];
  const turnedOff = [
    `update ClusterOperator ${clusterOperatorName}`,
    "update KubeAPIServer cluster",
    "update KubeControllerManager cluster",
    "update KubeScheduler cluster",
    `delete KubeletConfig ${kubeletConfigName}`,
    `update ClusterOperator ${clusterOperatorName}`,
  ];

  it("the writes of turning on and off, in order", async () => {
    const world = await World.start();
    await world.select("CSIMigration");
    world.run();
    await world.settle();
    expect(world.writes).toEqual(turnedOn);
    world.writes.length = 0;
    await world.select("");
    expect(world.writes).toEqual(turnedOff);
    await world.settle(600_000);
    expect(world.writes).toEqual(turnedOff);
  });

  const faults = (writes: readonly string[]) =>
    writes.flatMap((_, at) => [
      { at, when: "before" as const },
      { at, when: "after" as const },
    ]);

  it.each(faults(turnedOn))(
    "turning on: write $at fails $when it takes effect, and another goes on",
    async (fault) => {
      const world = await World.start();
      await world.select("CSIMigration");
      world.fault = fault;
      world.run();
      await world.settle(100);
      expect(world.fault).toBeUndefined();
      await world.stop();
      world.run();
      await world.settle(60_000);
      expect(await world.gates()).toEqual(all);
      expect(await world.conditions()).toEqual(["Progressing=True RollingOut"]);
    },
  );

  it.each(faults(turnedOff))(
    "turning off: write $at fails $when it takes effect, and another goes on",
    async (fault) => {
      const world = await World.start();
      await world.select("CSIMigration");
      world.run();
      await world.settle();
      await world.stop();
      world.writes.length = 0;
      world.fault = fault;
      await world.select("");
      world.run();
      await world.settle(100);
      expect(world.fault).toBeUndefined();
      await world.stop();
      world.run();
      await world.settle(60_000);
      expect(await world.gates()).toEqual(none);
      expect(await world.conditions()).toEqual(["Progressing=True RollingOut"]);
    },
  );
});
