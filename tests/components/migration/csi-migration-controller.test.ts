/** Gardener's CSI migration controller between two embedded API servers, seed and shoot, under the virtual clock. */
import { fileURLToPath } from "node:url";
import { createApiServer, memoryStore, readDefinitions } from "@longshore/apiserver";
import {
  type HttpKubeClient,
  interceptWrites,
  KubeApiError,
  type KubeClient,
  KubeTransportError,
  resources,
  type Stored,
} from "@longshore/kube";
import {
  type AddArgs,
  addCSIMigrationController,
  type Cluster,
  clusters,
  controlPlanes,
  annotationKeyControllerFinished as finished,
  gardenerCrdsUrl,
  annotationKeyNeedsComplete as needsComplete,
  newClientForShoot,
} from "@longshore/migration/gardener";
import type { Component } from "@longshore/runtime";
import { virtualEnv } from "@longshore/testing/kube";
import { afterEach, describe, expect, it } from "vitest";

const { signal } = new AbortController();
const name = "shoot--p--a";

class World {
  readonly env: ReturnType<typeof virtualEnv>;
  readonly seed: KubeClient;
  readonly shoot: KubeClient;
  /** What was written, in order: verb, kind and name. */
  readonly writes: string[] = [];
  shootClients = 0;
  openClients = 0;
  /** The write of this number, from 0, fails: before it takes effect, or after. */
  fault: { readonly at: number; readonly when: "before" | "after" } | undefined;
  /** Writes of this kind are refused, as by a webhook that is down, and counted. */
  refuses: string | undefined;
  refused = 0;
  #controller: Component | undefined;

  private constructor(env: ReturnType<typeof virtualEnv>, seed: KubeClient, shoot: KubeClient) {
    this.env = env;
    this.seed = seed;
    this.shoot = shoot;
  }

  static async start(definition: "strict" | "loose" = "strict"): Promise<World> {
    const strict = await readDefinitions([fileURLToPath(gardenerCrdsUrl)]);
    const definitions = definition === "strict" ? strict : strict.map(withoutSchema);
    const env = virtualEnv();
    const options = { controllers: false as const };
    const seed = createApiServer(env, { ...options, store: memoryStore(), definitions }).client();
    const shoot = createApiServer(env, { ...options, store: memoryStore() }).client();
    const world = new World(env, seed, shoot);
    await seed.create(resources.namespaces, { metadata: { name } }, { signal });
    for (const one of ["kube-apiserver", "kube-controller-manager", "kube-scheduler"]) {
      await seed.create(resources.deployments, aDeployment(one), { signal });
    }
    return world;
  }

  run(args: Partial<AddArgs> = {}): void {
    this.#controller = addCSIMigrationController(
      { ...this.env, kube: this.#watched(this.seed) },
      {
        type: "aws",
        csiMigrationKubernetesVersion: "1.18",
        storageClassNameToLegacyProvisioner: {
          default: "kubernetes.io/aws-ebs",
          fast: "kubernetes.io/aws-ebs",
        },
        newClientForShoot: () => Promise.resolve(this.#shootClient()),
        ...args,
      },
    );
  }

  async stop(): Promise<void> {
    const controller = this.#controller;
    this.#controller = undefined;
    if (controller !== undefined) await this.env.clock.run(controller.stop());
  }

  async cluster(): Promise<Stored<Cluster>> {
    const found = await this.seed.get(clusters, { name }, { signal });
    if (found === undefined) throw new Error("the Cluster is gone");
    return found;
  }

  async annotations(): Promise<readonly string[]> {
    return Object.keys((await this.cluster()).metadata.annotations ?? {}).sort();
  }

  async classes(): Promise<readonly string[]> {
    const { items } = await this.shoot.list(resources.storageClasses, { signal });
    return items.map(({ metadata, provisioner }) => `${metadata.name} ${provisioner}`);
  }

  async events(): Promise<readonly string[]> {
    const { items } = await this.seed.list(resources.events, { signal });
    return items.map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
  }

  #shootClient(): HttpKubeClient {
    this.shootClients++;
    this.openClients++;
    const close = () => {
      this.openClients--;
      return Promise.resolve();
    };
    return { ...this.#watched(this.shoot), close } as HttpKubeClient;
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

const worlds: World[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.stop();
});

async function aWorld(definition?: "strict" | "loose"): Promise<World> {
  const world = await World.start(definition);
  worlds.push(world);
  return world;
}

interface Given {
  readonly version?: unknown;
  readonly annotations?: Record<string, string>;
  readonly shootAnnotations?: Record<string, string>;
  readonly type?: string;
  readonly hibernated?: boolean;
  readonly lastOperation?: string;
}

function aCluster(given: Given = {}): Cluster {
  const { version = "1.18.3", type = "aws", annotations = {}, shootAnnotations = {} } = given;
  const { hibernated = false, lastOperation = "Succeeded" } = given;
  return {
    metadata: { name, annotations: { theirs: "kept", ...annotations } },
    spec: {
      cloudProfile: {},
      seed: {},
      shoot: {
        kind: "Shoot",
        metadata: { name: "a", namespace: "garden-p", annotations: shootAnnotations },
        spec: {
          provider: { type },
          kubernetes: { version },
          hibernation: { enabled: hibernated },
          purpose: "kept",
        },
        status: { lastOperation: { state: lastOperation } },
      },
    },
  };
}

function aDeployment(of: string) {
  const labels = { app: of };
  return {
    metadata: { name: of, namespace: name },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "c", image: "i" }] } },
    },
  };
}

async function aNode(world: World, nodeName: string, kubeletVersion: string): Promise<void> {
  const node = await world.shoot.create(resources.nodes, { metadata: { name: nodeName } }, { signal });
  const nodeInfo = { kubeletVersion } as never;
  await world.shoot.updateStatus(resources.nodes, { ...node, status: { nodeInfo } }, { signal });
}

async function aClass(world: World, className: string, provisioner: string): Promise<void> {
  await world.shoot.create(
    resources.storageClasses,
    { metadata: { name: className }, provisioner },
    { signal },
  );
}

/** A shoot that is being carried over, with one new node and three classes, one of them of the user. */
async function anExistingShoot(given: Given = {}, definition?: "strict" | "loose"): Promise<World> {
  const world = await aWorld(definition);
  await world.seed.create(clusters, aCluster(given), { signal });
  const controlPlane = { metadata: { name: "a", namespace: name }, spec: { type: "aws" } };
  await world.seed.create(controlPlanes, controlPlane, { signal });
  await aNode(world, "new-1", "v1.18.3-build.7+abc");
  await aClass(world, "default", "kubernetes.io/aws-ebs");
  await aClass(world, "fast", "ebs.csi.aws.com");
  await aClass(world, "mine", "kubernetes.io/aws-ebs");
  return world;
}

const whole = [
  "delete StorageClass default",
  `update Cluster ${name}`,
  `patch Deployment ${name}/kube-apiserver`,
  `patch Deployment ${name}/kube-controller-manager`,
  `patch Deployment ${name}/kube-scheduler`,
  `update Cluster ${name}`,
];
const kept = ["fast ebs.csi.aws.com", "mine kubernetes.io/aws-ebs"];

describe("Gardener's CSI migration controller (migration-controllers.md A4)", () => {
  it("a new shoot gets both annotations in one update, without a client of the shoot (E1)", async () => {
    const world = await aWorld();
    await world.seed.create(clusters, aCluster(), { signal });
    world.run();
    await world.env.clock.advance(1_000);
    expect(await world.annotations()).toEqual([finished, needsComplete, "theirs"]);
    expect(world.writes).toEqual([`update Cluster ${name}`]);
    expect(world.shootClients).toBe(0);
  });

  it("an existing shoot: legacy classes, annotation, three patches in order, finished (E3)", async () => {
    const world = await anExistingShoot();
    world.run();
    await world.env.clock.advance(1_000);
    expect(world.writes).toEqual(whole);
    expect(await world.annotations()).toEqual([finished, needsComplete, "theirs"]);
    expect(await world.classes()).toEqual(kept);
    expect(world.openClients).toBe(0);
    expect((await world.cluster()).spec).toEqual(aCluster().spec);
    expect(await world.events()).toEqual(["Normal CSIMigrationFinished: the migration to CSI is complete"]);
  });

  it("an old kubelet: nothing is written, it is asked each minute, and the last one's end goes on (E2)", async () => {
    const world = await anExistingShoot();
    await aNode(world, "old-1", "v1.17.17");
    world.run();
    await world.env.clock.advance(1_000);
    const asked = world.shootClients;
    await world.env.clock.advance(58_000);
    expect(world.shootClients).toBe(asked);
    await world.env.clock.advance(182_000);
    expect(world.shootClients).toBe(asked + 4);
    expect(world.writes).toEqual([]);
    await world.shoot.delete(resources.nodes, { name: "old-1" }, { signal });
    await world.env.clock.advance(61_000);
    expect(world.writes).toEqual(whole);
  });

  it("a shoot without nodes is carried over", async () => {
    const world = await anExistingShoot();
    await world.shoot.delete(resources.nodes, { name: "new-1" }, { signal });
    world.run();
    await world.env.clock.advance(1_000);
    expect(world.writes).toEqual(whole);
  });

  it("a hibernated shoot is left alone, without a requeue, until it wakes (E5)", async () => {
    const world = await anExistingShoot({ hibernated: true });
    world.run();
    await world.env.clock.advance(600_000);
    expect(world.writes).toEqual([]);
    expect(world.shootClients).toBe(0);
    const cluster = await world.cluster();
    await world.seed.update(clusters, { ...cluster, spec: aCluster().spec ?? {} }, { signal });
    await world.env.clock.advance(1_000);
    expect(world.writes).toEqual(whole);
  });

  it.each<[string, Given]>([
    ["its last operation failed", { lastOperation: "Failed" }],
    ["it is another provider's", { type: "gcp" }],
    ["it is below the version", { version: "1.17.9" }],
    ["it is above the version's minor", { version: "1.19.0" }],
    ["its annotation names a later version", { shootAnnotations: { [versionKey()]: "1.18.4" } }],
    ["it is finished", { annotations: { [finished]: "" } }],
  ])("%s: nothing is written", async (_, given) => {
    const world = await anExistingShoot(given);
    world.run();
    await world.env.clock.advance(600_000);
    expect(world.writes).toEqual([]);
    expect(await world.events()).toEqual([]);
  });

  it("a Cluster that is being deleted is left alone", async () => {
    const world = await aWorld();
    const cluster = aCluster();
    const finalizers = ["example.com/theirs"];
    await world.seed.create(
      clusters,
      { ...cluster, metadata: { ...cluster.metadata, finalizers } },
      { signal },
    );
    await world.seed.delete(clusters, { name }, { signal });
    world.run();
    await world.env.clock.advance(600_000);
    expect(world.writes).toEqual([]);
  });

  it("with the annotation there already only the patches are sent (A4, step 6)", async () => {
    const world = await anExistingShoot({ annotations: { [needsComplete]: "true" } });
    world.run();
    await world.env.clock.advance(1_000);
    expect(world.writes).toEqual(whole.slice(2));
    expect(world.shootClients).toBe(0);
  });

  it("a Deployment that is missing: finished is not set, and it is tried with growing pauses (E4)", async () => {
    const world = await anExistingShoot();
    await world.seed.delete(resources.deployments, { namespace: name, name: "kube-scheduler" }, { signal });
    world.run();
    await world.env.clock.advance(600_000);
    expect(await world.annotations()).toEqual([needsComplete, "theirs"]);
    expect(world.writes.length).toBeLessThan(60);
    const [first, ...more] = await world.events();
    expect(first).toMatch(
      /^Warning ControlPlaneNotPatched: .*"kube-scheduler" not found.*: it is tried again$/,
    );
    expect(more).toEqual([]);
    await world.seed.create(resources.deployments, aDeployment("kube-scheduler"), { signal });
    await world.env.clock.advance(600_000);
    expect(await world.annotations()).toEqual([finished, needsComplete, "theirs"]);
  });

  it("a finished Cluster is left alone when it is made, changed and deleted (E6)", async () => {
    const world = await aWorld();
    world.run();
    await world.seed.create(clusters, aCluster({ annotations: { [finished]: "" } }), { signal });
    await world.env.clock.advance(1_000);
    const cluster = await world.cluster();
    await world.seed.update(
      clusters,
      { ...cluster, spec: aCluster({ version: "newest" }).spec ?? {} },
      { signal },
    );
    await world.env.clock.advance(1_000);
    await world.seed.delete(clusters, { name }, { signal });
    await world.env.clock.advance(600_000);
    expect(world.writes).toEqual([]);
    expect(await world.events()).toEqual([]);
  });

  it("further predicates must hold, too", async () => {
    const world = await anExistingShoot();
    world.run({ predicates: [(cluster) => cluster.metadata?.labels?.pilot === "yes"] });
    await world.env.clock.advance(1_000);
    expect(world.writes).toEqual([]);
  });
});

describe("a malformed Cluster is reported once, and nothing is done", () => {
  it.each<[string, unknown, string]>([
    ["a version that is none", aCluster({ version: "newest" }).spec, `"newest" is not a version`],
    ["a version that is a number", aCluster({ version: 1 }).spec, "spec.kubernetes.version must be a string"],
    [
      "a Shoot that is empty",
      { cloudProfile: {}, seed: {}, shoot: {} },
      "spec.shoot.metadata.name is missing",
    ],
    [
      "an annotation that is no version",
      aCluster({ shootAnnotations: { [versionKey()]: "soon" } }).spec,
      `"soon" is not a version`,
    ],
  ])("%s", async (_, spec, message) => {
    const world = await anExistingShoot();
    const cluster = await world.cluster();
    await world.seed.update(clusters, { ...cluster, spec: spec as NonNullable<Cluster["spec"]> }, { signal });
    world.run();
    await world.env.clock.advance(600_000);
    expect(world.writes).toEqual([]);
    const events = await world.events();
    expect(events).toHaveLength(1);
    expect(events[0]).toContain(`Warning InvalidShoot: Cluster ${name}: spec.shoot`);
    expect(events[0]).toContain(message);
  });

  const base = { cloudProfile: {}, seed: {} };
  const shootOf = (spec: unknown) => ({ ...base, shoot: { metadata: { name: "a" }, spec } });
  const kubernetes = { version: "1.18.3" };
  const provider = { type: "aws" };

  // The definition that is shipped lets none of these through; that of a seed may.
  it.each<[string, unknown, string]>([
    ["no spec", undefined, "spec.shoot is missing"],
    ["a spec that is null", null, "spec.shoot is missing"],
    ["no Shoot", base, "spec.shoot is missing"],
    ["a Shoot that is null", { ...base, shoot: null }, "spec.shoot is missing"],
    ["a Shoot that is text", { ...base, shoot: "{}" }, "spec.shoot must be an object"],
    ["a Shoot that is a list", { ...base, shoot: [] }, "spec.shoot must be an object"],
    ["a Shoot without spec", shootOf(undefined), "spec.shoot.spec.provider.type is missing"],
    ["a spec that is text", shootOf("aws"), "spec.shoot.spec must be an object"],
    ["a provider that is text", shootOf({ provider: "aws", kubernetes }), "spec.provider must be an object"],
    ["no version", shootOf({ provider, kubernetes: {} }), "spec.kubernetes.version is missing"],
    [
      "hibernation that is text",
      shootOf({ provider, kubernetes, hibernation: { enabled: "yes" } }),
      "spec.hibernation.enabled must be true or false",
    ],
    [
      "worker pools that are no list",
      shootOf({ provider: { ...provider, workers: {} }, kubernetes }),
      "spec.provider.workers must be a list",
    ],
    [
      "a worker pool that is text",
      shootOf({ provider: { ...provider, workers: ["p"] }, kubernetes }),
      "spec.provider.workers[0] must be an object",
    ],
    [
      "a status that is text",
      { ...base, shoot: { metadata: { name: "a" }, spec: { provider, kubernetes }, status: "Failed" } },
      "spec.shoot.status must be an object",
    ],
    [
      "an annotation that is a number",
      {
        ...base,
        shoot: {
          metadata: { name: "a", annotations: { [versionKey()]: 1.18 } },
          spec: { provider, kubernetes },
        },
      },
      "must be a string",
    ],
  ])("%s", async (_, spec, message) => {
    for (const annotations of [{}, { [needsComplete]: "true" }]) {
      const world = await anExistingShoot({ annotations }, "loose");
      const { spec: __, ...cluster } = await world.cluster();
      const changed = spec === undefined ? cluster : { ...cluster, spec };
      await world.seed.update(clusters, changed as Cluster, { signal });
      world.run();
      await world.env.clock.advance(600_000);
      expect(world.writes).toEqual([]);
      expect(world.shootClients).toBe(0);
      const events = await world.events();
      expect(events).toHaveLength(1);
      expect(events[0]).toContain(`Warning InvalidShoot: Cluster ${name}: spec.shoot`);
      expect(events[0]).toContain(message);
      // Once it is right, it goes on.
      const present = await world.cluster();
      await world.seed.update(clusters, { ...present, spec: aCluster().spec ?? {} }, { signal });
      await world.env.clock.advance(1_000);
      expect(await world.annotations()).toEqual([finished, needsComplete, "theirs"]);
      await world.stop();
    }
  });

  it.each(["", "unknown"])(
    "a node that states the version %j is read again until it states one",
    async (odd) => {
      const world = await anExistingShoot();
      await aNode(world, "odd", odd);
      world.run();
      await world.env.clock.advance(60_000);
      expect(world.writes).toEqual([]);
      // Its pauses grow: it is no loop that never rests.
      expect(world.shootClients).toBeLessThan(20);
      expect((await world.events())[0]).toContain("node odd: status.nodeInfo.kubeletVersion");
      const node = await world.shoot.get(resources.nodes, { name: "odd" }, { signal });
      if (node === undefined) throw new Error("the node is gone");
      const nodeInfo = { kubeletVersion: "v1.18.4" } as never;
      await world.shoot.updateStatus(resources.nodes, { ...node, status: { nodeInfo } }, { signal });
      await world.env.clock.advance(600_000);
      expect(world.writes).toEqual(whole);
    },
  );
});

describe("while a webhook is down", () => {
  it.each<[string, string, string, readonly string[]]>([
    ["Clusters", "Cluster", "ClusterNotAnnotated", ["theirs"]],
    ["Deployments", "Deployment", "ControlPlaneNotPatched", [needsComplete, "theirs"]],
  ])(
    "that of %s: nothing is flipped, it is tried with growing pauses, and then goes on",
    async (_, kind, reason, annotations) => {
      const world = await anExistingShoot();
      world.refuses = kind;
      world.run();
      await world.env.clock.advance(600_000);
      expect(await world.annotations()).toEqual(annotations);
      expect(world.writes.filter((write) => write.includes("Deployment"))).toEqual([]);
      expect(world.refused).toBeGreaterThan(3);
      expect(world.refused).toBeLessThan(40);
      expect(await world.events()).toEqual([
        `Warning ${reason}: failed calling webhook: connection refused: it is tried again`,
      ]);
      world.refuses = undefined;
      await world.env.clock.advance(600_000);
      expect(await world.annotations()).toEqual([finished, needsComplete, "theirs"]);
      expect(world.writes).toEqual(whole);
    },
  );

  it("a shoot whose kubeconfig is missing is not carried over, and says so", async () => {
    const world = await anExistingShoot();
    world.run({
      newClientForShoot: (namespace, passSignal) =>
        newClientForShoot({ ...world.env, kube: world.seed })(namespace, passSignal),
    });
    await world.env.clock.advance(600_000);
    expect(world.writes).toEqual([]);
    const [event, ...more] = await world.events();
    expect(event).toMatch(
      /^Warning ShootNotReached: namespace shoot--p--a: neither Secret .* has a "kubeconfig"/,
    );
    expect(more).toEqual([]);
  });
});

describe("after any fault the same end is reached", () => {
  const faults = whole.flatMap((_, at) => [
    { at, when: "before" as const },
    { at, when: "after" as const },
  ]);

  it.each(faults)("write $at fails $when it takes effect, and another controller goes on", async (fault) => {
    const world = await anExistingShoot();
    world.fault = fault;
    world.run();
    await world.env.clock.advance(100);
    expect(world.fault).toBeUndefined();
    await world.stop();
    world.run();
    await world.env.clock.advance(600_000);
    expect(await world.annotations()).toEqual([finished, needsComplete, "theirs"]);
    expect(await world.classes()).toEqual(kept);
    expect(world.openClients).toBe(0);
    for (const deployment of whole.slice(2, 5)) expect(world.writes).toContain(deployment);
    // The webhook must see the annotation: it is stored before the first patch.
    expect(world.writes.indexOf(`update Cluster ${name}`)).toBeLessThan(world.writes.indexOf(whole[2] ?? ""));
  });
});

function versionKey(): string {
  return "alpha.csimigration.shoot.extensions.gardener.cloud/kubernetes-version";
}
