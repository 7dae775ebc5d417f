/**
 * One node under the virtual clock: the embedded API server, a simulated host, in-process CSI, a
 * minimal kubelet shell and a stand-in for the attach/detach controller moved by hand.
 */
import { type ApiServer, createApiServer, memoryStore } from "@longshore/apiserver";
import { inProcessCsi } from "@longshore/csi";
import {
  KubeApiError,
  type KubeClient,
  type Node,
  type PersistentVolume,
  type Pod,
  resources,
  type Stored,
} from "@longshore/kube";
import {
  featureGates,
  noMeter,
  type RuntimeEnv,
  SeededRandom,
  SimulatedHost,
  type SimulatedHostOptions,
  silentLogger,
  VirtualClock,
} from "@longshore/runtime";
import { attachmentName, migratedPluginsAnnotation } from "@longshore/storage";
import { volumeGates } from "../../csimigration/volume-gates.ts";
import type { VolumePlugin } from "../../framework/volume-plugin.ts";
import { awsEbsPlugin } from "../../plugins/aws-ebs/aws-ebs-plugin.ts";
import { csiPlugin } from "../../plugins/csi/csi-plugin.ts";
import { flexVolumeProber } from "../../plugins/flexvolume/flexvolume-prober.ts";
import { podVolumePlugins } from "../../plugins/pod-volume-plugins.ts";
import { type NodeVolumes, startNodeVolumes } from "../node-volumes.ts";
import { type TestDriver, testDriver } from "./test-driver.ts";

export const nodeName = "node-1";
export const rootDir = "/var/lib/kubelet";
export const driverName = "ebs.csi.aws.com";
export const driverSocket = `${rootDir}/plugins/${driverName}/csi.sock`;
export const registrationSocket = `${rootDir}/plugins_registry/${driverName}-reg.sock`;

/** A node agent that runs until it is stopped or dropped. */
export interface RunningAgent {
  readonly volumes: NodeVolumes;
  /** Drops it as a crash does: from now on nothing that it does has an effect. */
  crash(): void;
  stop(): Promise<void>;
}

const expired = new KubeApiError({
  kind: "Status",
  apiVersion: "v1",
  status: "Failure",
  code: 410,
  reason: "Expired",
  message: "too old resource version",
});

type WatchedEnv = Partial<Pick<RuntimeEnv, "logger" | "meter">>;

/** Everything around one node. */
export class NodeWorld {
  readonly clock = new VirtualClock();
  readonly env: RuntimeEnv;
  readonly api: ApiServer;
  readonly kube: KubeClient;
  /** Programs that the node can run, by path. */
  readonly programs: NonNullable<SimulatedHostOptions["programs"]> = {};
  readonly host = new SimulatedHost({ programs: this.programs });
  /** Set: the node looks for Flexvolume drivers there. */
  flexVolumeDir: string | undefined;
  readonly csi = inProcessCsi(this);
  readonly signal = new AbortController().signal;
  /** Pods with containers. */
  readonly running = new Set<string>();
  readonly registrations: { pluginRegistered: boolean; error: string }[] = [];
  /** Every `volumesInUse` as posted. */
  readonly postedInUse: string[][] = [];
  driver: TestDriver = testDriver(this.host);
  /** True: a registrar recreates its socket after a reported failure, as a restarted registrar does. */
  registrarRestarts = false;
  /** Plugins of an agent beside those of EBS and CSI; made for each agent. */
  furtherPlugins: () => readonly VolumePlugin[] = () => [];
  /** False: the shell does not post the node's status. */
  posting = true;
  /** Set: every call to the API server fails with it. */
  apiDown: Error | undefined;
  /** Set: events of watches wait for it. */
  watchesHeld: Promise<void> | undefined;
  /** True: the next event of each watch is 410 Expired, so that its client lists again. */
  watchesExpire = false;
  /** What agents asked of the API server, e.g. `get nodes`. */
  readonly requests: string[] = [];

  private constructor(watch: WatchedEnv) {
    const random = new SeededRandom(1);
    this.env = { clock: this.clock, random, logger: silentLogger, meter: noMeter, ...watch };
    this.api = createApiServer(this.env, { store: memoryStore() });
    this.kube = this.api.client();
  }

  /** Makes the Node and what else every test needs. @param watch log and meter of everything in it */
  static async create(watch: WatchedEnv = {}): Promise<NodeWorld> {
    const world = new NodeWorld(watch);
    await world.kube.create(
      resources.nodes,
      { apiVersion: "v1", kind: "Node", metadata: { name: nodeName } },
      world,
    );
    await world.host.makeDirectory("/disks");
    await world.host.makeDirectory(`${rootDir}/plugins_registry`);
    return world;
  }

  /** Lets time run until the condition holds; fails after `limitMs` of virtual time. */
  async until(what: string, condition: () => boolean | Promise<boolean>, limitMs = 300_000): Promise<void> {
    const endMs = this.clock.monotonicMs() + limitMs;
    for (;;) {
      await this.clock.settle();
      if (await condition()) return;
      if (this.clock.monotonicMs() >= endMs) throw new Error(`not within ${limitMs} ms: ${what}`);
      await this.clock.advance(50);
    }
  }

  /**
   * Starts the agent with a shell that posts its status and follows the pods.
   * @param onCall called for each call that the agent makes to API server, host and drivers, before it
   *   is made and after it took effect; may crash the agent
   */
  start(
    gates: Readonly<Record<string, boolean>> = {},
    onCall: (call: string, when: "before" | "after", number: number) => void = () => {},
  ): RunningAgent {
    let dead = false;
    const life: Life = { isDead: () => dead, onCall, calls: 0 };
    const alive = <T extends object>(target: T): T => killable(target, life);
    const kube = this.#faulty(alive(this.kube));
    const host = alive(this.host as SimulatedHost);
    let volumes: NodeVolumes | undefined;
    let posting = false;
    let again = false;
    const post = async () => {
      again = true;
      if (posting || volumes === undefined || dead) return;
      posting = true;
      while (again && !dead) {
        again = false;
        if (this.posting) await this.#post(volumes).catch(() => {});
      }
      posting = false;
    };
    volumes = startNodeVolumes(
      {
        ...this.env,
        kube,
        host,
        connector: alive(this.csi),
        runtime: { podsWithRunningContainers: async () => new Set(this.running) },
      },
      {
        nodeName,
        rootDir,
        gates: featureGates(volumeGates, gates),
        plugins: [
          awsEbsPlugin(),
          csiPlugin({ connector: alive(this.csi) }),
          ...podVolumePlugins(),
          ...this.furtherPlugins(),
        ],
        ...(this.flexVolumeDir === undefined
          ? {}
          : { prober: flexVolumeProber({ ...this.env, host }, { directory: this.flexVolumeDir }) }),
        onStatusChanged: () => void post(),
      },
    );
    const agent = volumes;
    const follow = async () => {
      while (!dead) {
        const page = await this.kube.list(resources.pods, this).catch(() => undefined);
        if (dead) return;
        const pods = page?.items.filter((pod) => pod.spec?.nodeName === nodeName);
        if (pods !== undefined) agent.setPods(pods);
        if (this.posting) void post();
        await this.clock.sleep(200, this.signal);
      }
    };
    void follow();
    return {
      volumes: agent,
      crash: () => {
        dead = true;
      },
      stop: async () => {
        await agent.stop();
        dead = true;
      },
    };
  }

  async #post(volumes: NodeVolumes): Promise<void> {
    if (this.apiDown !== undefined) throw this.apiDown;
    const { volumesInUse, conditions, error } = volumes.status();
    const ready = { type: "Ready", status: error === undefined ? ("True" as const) : ("False" as const) };
    const status = { conditions: [...conditions, ready], ...(volumesInUse && { volumesInUse }) };
    const patch = { type: "merge" as const, body: { status } };
    const before = await this.node();
    const unchanged =
      JSON.stringify(before.status?.volumesInUse ?? []) === JSON.stringify(volumesInUse ?? []);
    const ref = { name: nodeName };
    const node = await this.kube.patch(resources.nodes, ref, patch, {
      subresource: "status",
      signal: this.signal,
    });
    if (!unchanged && volumesInUse !== undefined) this.postedInUse.push([...volumesInUse]);
    volumes.markReportedInUse(node.status?.volumesInUse ?? []);
  }

  #faulty(kube: KubeClient): KubeClient {
    return new Proxy(kube, {
      get: (target, key) => {
        const member = Reflect.get(target, key) as unknown;
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => {
          const resource = args[0] as { readonly plural?: string };
          this.requests.push(`${String(key)} ${resource.plural ?? ""}`);
          if (this.apiDown !== undefined && key !== "watch") return Promise.reject(this.apiDown);
          const answer = member.apply(target, args) as unknown;
          return key === "watch" ? this.#held(answer as AsyncIterable<unknown>) : answer;
        };
      },
    });
  }

  async *#held(events: AsyncIterable<unknown>): AsyncGenerator {
    for await (const event of events) {
      await this.watchesHeld;
      if (this.watchesExpire) throw expired;
      yield event;
    }
  }

  async node(): Promise<Stored<Node>> {
    const node = await this.kube.get(resources.nodes, { name: nodeName }, this);
    if (node === undefined) throw new Error("no Node");
    return node;
  }

  async condition(type: string) {
    return (await this.node()).status?.conditions?.find((condition) => condition.type === type);
  }

  async migratedPlugins(): Promise<string | undefined> {
    const csiNode = await this.kube.get(resources.csiNodes, { name: nodeName }, this);
    return csiNode?.metadata.annotations?.[migratedPluginsAnnotation];
  }

  /** Serves the driver and its registration socket, as driver and registrar do. */
  async serveDriver(driver = this.driver): Promise<void> {
    this.driver = driver;
    await this.csi.serve(driverSocket, driver.services);
    await this.placeRegistration();
  }

  /** Makes the registration socket, or recreates it. */
  async placeRegistration(versions: readonly string[] = ["1.0.0"]): Promise<void> {
    await this.removeRegistration();
    await this.csi.serveRegistration(registrationSocket, {
      getInfo: async () => ({
        type: "CSIPlugin",
        name: driverName,
        endpoint: driverSocket,
        supportedVersions: versions,
      }),
      notifyRegistrationStatus: async (status) => {
        const { pluginRegistered, error } = status;
        this.registrations.push({ pluginRegistered, error });
        if (!pluginRegistered && this.registrarRestarts) {
          void this.clock.sleep(1000, this.signal).then(() => this.placeRegistration(versions));
        }
      },
    });
    this.host.placeSocket(registrationSocket);
  }

  async removeRegistration(): Promise<void> {
    this.csi.crash(registrationSocket);
    await this.host.removeFile(registrationSocket);
  }

  /** Makes a disk with a device; returns the device's path. */
  async disk(id: string): Promise<string> {
    await this.host.truncateFile(`/disks/${id}`, 1 << 20);
    // A provider's disks outlive a loss of power.
    await this.host.writeFileAtomic("/disks/durable", "");
    return this.host.attachLoop(`/disks/${id}`);
  }

  /** A bound in-tree PV and claim of the disk. */
  async volume(id: string, source?: Partial<NonNullable<PersistentVolume["spec"]>>): Promise<void> {
    const claim = await this.kube.create(
      resources.persistentVolumeClaims,
      {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        metadata: { name: `claim-${id}`, namespace: "default" },
        spec: {
          accessModes: ["ReadWriteOnce"],
          resources: { requests: { storage: "1Mi" } },
          volumeName: `pv-${id}`,
          storageClassName: "",
        },
      },
      this,
    );
    await this.kube.create(
      resources.persistentVolumes,
      {
        apiVersion: "v1",
        kind: "PersistentVolume",
        metadata: { name: `pv-${id}` },
        spec: {
          accessModes: ["ReadWriteOnce"],
          capacity: { storage: "1Mi" },
          claimRef: {
            apiVersion: "v1",
            kind: "PersistentVolumeClaim",
            namespace: "default",
            name: `claim-${id}`,
            uid: claim.metadata.uid,
          },
          ...(source ?? { awsElasticBlockStore: { volumeID: `aws://us-east-1a/${id}`, fsType: "ext4" } }),
        },
      },
      this,
    );
    await this.kube.patch(
      resources.persistentVolumeClaims,
      { namespace: "default", name: `claim-${id}` },
      { type: "merge", body: { status: { phase: "Bound", capacity: { storage: "1Mi" } } } },
      { subresource: "status", signal: this.signal },
    );
  }

  /** The same for a volume of the driver that pods get as a device. */
  async blockVolume(id: string, more: Partial<NonNullable<PersistentVolume["spec"]>> = {}): Promise<void> {
    await this.volume(id, { csi: { driver: driverName, volumeHandle: id }, volumeMode: "Block", ...more });
  }

  /** Makes PersistentVolume and claim again under their names, for another disk. */
  async replaceVolume(id: string, otherId: string): Promise<void> {
    await this.removeVolume(id);
    await this.volume(id, {
      awsElasticBlockStore: { volumeID: `aws://us-east-1a/${otherId}`, fsType: "ext4" },
    });
  }

  /** Removes PersistentVolume and claim, whatever protects them. */
  async removeVolume(id: string): Promise<void> {
    const pv = { name: `pv-${id}` };
    const claim = { namespace: "default", name: `claim-${id}` };
    const unprotected = { type: "merge", body: { metadata: { finalizers: null } } } as const;
    await this.kube.patch(resources.persistentVolumes, pv, unprotected, this);
    await this.kube.patch(resources.persistentVolumeClaims, claim, unprotected, this);
    await this.kube.delete(resources.persistentVolumes, pv, this);
    await this.kube.delete(resources.persistentVolumeClaims, claim, this);
  }

  /** The disk, its device and its PersistentVolume have grown; the rest is the node's, as the claim says. */
  async growVolume(id: string, mebibytes = 2): Promise<void> {
    await this.host.truncateFile(`/disks/${id}`, mebibytes << 20);
    await this.host.attachLoop(`/disks/${id}`);
    const storage = `${mebibytes}Mi`;
    const body = { spec: { capacity: { storage } } };
    const name = `pv-${id}`;
    await this.kube.patch(resources.persistentVolumes, { name }, { type: "merge", body }, this);
    const conditions = [{ type: "FileSystemResizePending", status: "True" }];
    await this.patchClaimStatus(id, { conditions });
  }

  /** Changes the status of the disk's claim, as a controller does. */
  async patchClaimStatus(id: string, status: object): Promise<void> {
    const claim = { namespace: "default", name: `claim-${id}` };
    const patch = { type: "merge" as const, body: { status } };
    const options = { subresource: "status" as const, signal: this.signal };
    await this.kube.patch(resources.persistentVolumeClaims, claim, patch, options);
  }

  /** The status of the disk's claim. */
  async claimStatus(id: string) {
    const claim = { namespace: "default", name: `claim-${id}` };
    return (await this.kube.get(resources.persistentVolumeClaims, claim, this))?.status;
  }

  /** Reasons of the events so far, with the kinds of their objects, e.g. `Pod FailedMount`, sorted. */
  async eventReasons(): Promise<readonly string[]> {
    const { items } = await this.kube.list(resources.events, this);
    return [
      ...new Set(items.map(({ involvedObject, reason }) => `${involvedObject?.kind} ${reason}`)),
    ].sort();
  }

  /** A pod on the node that uses the claims of these disks. */
  async pod(
    name: string,
    ids: readonly string[],
    spec: Partial<NonNullable<Pod["spec"]>> = {},
  ): Promise<Stored<Pod>> {
    return this.kube.create(
      resources.pods,
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace: "default" },
        spec: {
          nodeName,
          containers: [
            {
              name: "c",
              image: "i",
              volumeMounts: ids.map((id) => ({ name: `data-${id}`, mountPath: `/data/${id}` })),
            },
          ],
          volumes: ids.map((id) => ({
            name: `data-${id}`,
            persistentVolumeClaim: { claimName: `claim-${id}` },
          })),
          ...spec,
        },
      },
      this,
    );
  }

  /** The same with the volumes as devices. */
  async blockPod(
    name: string,
    ids: readonly string[],
    spec: Partial<NonNullable<Pod["spec"]>> = {},
  ): Promise<Stored<Pod>> {
    const volumeDevices = ids.map((id) => ({ name: `data-${id}`, devicePath: `/dev/${id}` }));
    return this.pod(name, ids, { containers: [{ name: "c", image: "i", volumeDevices }], ...spec });
  }

  /** Removes the pod's object at once. */
  async deletePod(name: string): Promise<void> {
    const ref = { namespace: "default", name };
    await this.kube.delete(resources.pods, ref, { signal: this.signal, gracePeriodSeconds: 0 });
  }

  /** The controller has attached the volume: the node's status says so. */
  /** Changes annotations of the node, as the attach/detach controller does. */
  async patchNode(annotations: Readonly<Record<string, string | null>>): Promise<void> {
    const body = { metadata: { annotations } };
    await this.kube.patch(resources.nodes, { name: nodeName }, { type: "merge", body }, this);
  }

  async reportAttached(uniqueName: string, devicePath = ""): Promise<void> {
    const attached = (await this.node()).status?.volumesAttached ?? [];
    await this.#setAttached([...attached, { name: uniqueName, devicePath }]);
  }

  async reportDetached(uniqueName: string): Promise<void> {
    const attached = (await this.node()).status?.volumesAttached ?? [];
    await this.#setAttached(attached.filter(({ name }) => name !== uniqueName));
  }

  async #setAttached(volumesAttached: readonly { name: string; devicePath: string }[]): Promise<void> {
    const patch = { type: "merge" as const, body: { status: { volumesAttached } } };
    const ref = { name: nodeName };
    await this.kube.patch(resources.nodes, ref, patch, { subresource: "status", signal: this.signal });
  }

  /** The VolumeAttachment of a CSI volume, attached. */
  async attachment(id: string, devicePath: string): Promise<string> {
    const name = attachmentName(id, driverName, nodeName);
    const spec = { attacher: driverName, nodeName, source: { persistentVolumeName: `pv-${id}` } };
    await this.kube.create(
      resources.volumeAttachments,
      { apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name }, spec },
      this,
    );
    const status = { attached: true, attachmentMetadata: { devicePath } };
    const patch = { type: "merge" as const, body: { status } };
    await this.kube.patch(resources.volumeAttachments, { name }, patch, {
      subresource: "status",
      signal: this.signal,
    });
    return name;
  }

  /** Attaches as the CSI path does: VolumeAttachment and status. */
  async attachCsi(id: string): Promise<string> {
    await this.attachment(id, await this.disk(id));
    await this.reportAttached(csiName(id));
    return csiName(id);
  }

  async detachCsi(id: string): Promise<void> {
    await this.reportDetached(csiName(id));
    const name = attachmentName(id, driverName, nodeName);
    await this.kube.delete(resources.volumeAttachments, { name }, this);
  }

  /** Attaches as the in-tree path does. */
  async attachInTree(id: string): Promise<string> {
    await this.reportAttached(inTreeName(id), await this.disk(id));
    return inTreeName(id);
  }

  /** Targets of all mounts below the kubelet root, without the root. */
  async mounts(): Promise<readonly string[]> {
    const mounts = await this.host.listMounts(rootDir);
    return mounts.map(({ target }) => target.slice(rootDir.length + 1)).sort();
  }
}

export const csiName = (id: string) => `kubernetes.io/csi/${driverName}^${id}`;
export const inTreeName = (id: string) => `kubernetes.io/aws-ebs/aws://us-east-1a/${id}`;

interface Life {
  isDead(): boolean;
  /** @param number of the call in this life, from 1: calls overlap */
  onCall(call: string, when: "before" | "after", number: number): void;
  /** How many have been made. */
  calls: number;
}

/** Once dead, methods are never answered and have no effect. */
function killable<T extends object>(target: T, life: Life): T {
  const never = () => new Promise<never>(() => {});
  return new Proxy(target, {
    get(object, key) {
      const member = Reflect.get(object, key, object) as unknown;
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => {
        if (life.isDead()) return never();
        if (key === "connect" || key === "connectRegistration") {
          return killableConnection(member.apply(object, args) as object, life);
        }
        const number = ++life.calls;
        life.onCall(String(key), "before", number);
        if (life.isDead()) return never();
        const result = member.apply(object, args) as unknown;
        if (!(result instanceof Promise)) {
          life.onCall(String(key), "after", number);
          return result;
        }
        const settled = () => {
          if (!life.isDead()) life.onCall(String(key), "after", number);
          return life.isDead() ? never() : undefined;
        };
        return result.finally(settled);
      };
    },
  });
}

/** A connection's services are made killable; a registration client is one itself. */
function killableConnection(connection: object, life: Life): object {
  return new Proxy(killable(connection, life), {
    get(object, key) {
      const member = Reflect.get(object, key, object) as unknown;
      return typeof member === "object" && member !== null ? killable(member, life) : member;
    },
  });
}
