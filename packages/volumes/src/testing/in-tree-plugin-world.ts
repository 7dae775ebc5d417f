/** What tests of in-tree plugins work in: an API server, a simulated host, a provider's cloud, and a plugin on each side. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { type KubeClient, type PersistentVolume, type Pod, resources, type Stored } from "@longshore/kube";
import {
  type Host,
  noMeter,
  SeededRandom,
  SimulatedHost,
  silentLogger,
  VirtualClock,
} from "@longshore/runtime";
import type { CloudProvider } from "../framework/ports.ts";
import type { VolumeHost } from "../framework/volume-host.ts";
import { isProvisionable, type VolumePlugin } from "../framework/volume-plugin.ts";
import { specOfPersistentVolume, type VolumeSpec } from "../framework/volume-spec.ts";
import { inTreePlugins } from "../plugins/in-tree-plugins.ts";
import { FakeProviderCloud, fakeCredentials } from "./fake-provider-cloud.ts";

const { signal } = new AbortController();

/** What a class needs before its provisioner makes anything. */
const required: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "kubernetes.io/rbd": {
    monitors: "10.0.0.1:6789",
    adminSecretName: "ceph",
    userSecretName: "ceph",
    userId: fakeCredentials.user,
  },
};

/** What a volume is made with; each has a default. */
export interface ProvisionRequest {
  readonly pvName?: string;
  readonly size?: string;
  /** Of the claim's spec. */
  readonly claim?: object;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly selectedNode?: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
}

/** A host and the directory on it that is the world's; default a simulated host's root. */
export interface WorldPlace<H extends Host> {
  readonly host: H;
  readonly dir: string;
  /** The kubelet root directory; default `kubelet` in `dir`. */
  readonly rootDir?: string;
}

/** The world of one plugin. */
export class InTreePluginWorld<H extends Host = SimulatedHost> {
  readonly host: H;
  readonly dir: string;
  readonly clock = new VirtualClock();
  readonly kube: KubeClient;
  readonly cloud: FakeProviderCloud;
  readonly pluginName: string;
  /** On the controllers' side. */
  readonly controller: VolumePlugin;
  /** On node-1. */
  node: VolumePlugin;
  readonly #volumeHost: VolumeHost;
  readonly #rootDir: string;

  private constructor(pluginName: string, { host, dir, rootDir }: WorldPlace<H>) {
    this.pluginName = pluginName;
    this.host = host;
    this.dir = dir;
    this.#rootDir = rootDir ?? `${dir}/kubelet`;
    const env = { clock: this.clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
    this.kube = createApiServer(env, { store: memoryStore() }).client();
    this.#volumeHost = { ...env, kube: this.kube, csiDriver: async () => undefined };
    const provider = pluginName.slice("kubernetes.io/".length) as CloudProvider;
    this.cloud = new FakeProviderCloud(provider, host, ["node-1", "node-2"], dir);
    this.controller = this.newPlugin();
    this.node = this.newPlugin();
  }

  /** The plugin with its secrets in place. */
  static of(pluginName: string): Promise<InTreePluginWorld> {
    return InTreePluginWorld.at(pluginName, { host: new SimulatedHost(), dir: "" });
  }

  /** As {@link of}, on a host that is given. */
  static async at<H extends Host>(pluginName: string, place: WorldPlace<H>): Promise<InTreePluginWorld<H>> {
    const world = new InTreePluginWorld(pluginName, place);
    await world.controller.init(world.#volumeHost);
    await world.restartNode();
    await world.secret("ceph", "kubernetes.io/rbd", { key: fakeCredentials.key });
    return world;
  }

  /** The node's plugin of an agent that has just started. */
  async restartNode(): Promise<void> {
    this.node = this.newPlugin();
    const place = {
      nodeName: "node-1",
      rootDir: this.#rootDir,
      deviceDir: `${this.dir}/devices/i-node-1`,
    };
    const kubelet = { ...place, host: this.host, setKubeletError: () => {} };
    await this.node.init({ ...this.#volumeHost, kubelet });
  }

  /** Makes a Secret in the namespace `default`. */
  async secret(name: string, type: string, values: Readonly<Record<string, string>>): Promise<void> {
    const data = Object.fromEntries(
      Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
    );
    await this.kube.create(
      resources.secrets,
      { metadata: { namespace: "default", name }, type, data },
      { signal },
    );
  }

  /** Makes a volume by the plugin's provisioner, for the claim `default/claim`. */
  async provision(request: ProvisionRequest = {}): Promise<PersistentVolume> {
    if (!isProvisionable(this.controller)) throw new Error(`${this.pluginName} provisions nothing`);
    const { pvName = "pvc-1", size = "1500Mi", claim = {}, parameters = {}, selectedNode } = request;
    const options = {
      reclaimPolicy: "Retain",
      mountOptions: [],
      pvName,
      pvc: {
        metadata: { name: "claim", namespace: "default" },
        spec: { resources: { requests: { storage: size } }, ...claim },
      },
      clusterName: "kubernetes",
      cloudTags: {},
      parameters: { ...required[this.pluginName], ...parameters },
    } as const;
    return await this.controller.newProvisioner(options).provision(selectedNode, [], signal);
  }

  /** A volume's spec, once it is bound to the claim. */
  async provisioned(request: ProvisionRequest = {}): Promise<VolumeSpec> {
    const pv = await this.provision(request);
    const claimRef = { namespace: "default", name: "claim" };
    return specOfPersistentVolume({ ...pv, spec: { ...pv.spec, claimRef } }, false);
  }

  /** The plugin of another process, not initialised. */
  newPlugin(): VolumePlugin {
    const plugin = inTreePlugins({ cloudFor: () => this.cloud }).find(
      (candidate) => candidate.pluginName === this.pluginName,
    );
    if (plugin === undefined) throw new Error(`${this.pluginName} is not in the list`);
    return plugin;
  }
}

/** A pod of the namespace `default`. */
export function podOf(uid: string): Stored<Pod> {
  return { metadata: { name: uid, namespace: "default", uid, resourceVersion: "1" } };
}
