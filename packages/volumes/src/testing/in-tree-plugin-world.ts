/** What tests of in-tree plugins work in: an API server, a simulated host, a provider's cloud, and a plugin on each side. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { type KubeClient, type PersistentVolume, type Pod, resources } from "@longshore/kube";
import { noMeter, SeededRandom, SimulatedHost, silentLogger, VirtualClock } from "@longshore/runtime";
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

/** The world of one plugin. */
export class InTreePluginWorld {
  readonly host = new SimulatedHost();
  readonly clock = new VirtualClock();
  readonly kube: KubeClient;
  readonly cloud: FakeProviderCloud;
  readonly pluginName: string;
  /** On the controllers' side. */
  readonly controller: VolumePlugin;
  /** On node-1. */
  node: VolumePlugin;
  readonly #volumeHost: VolumeHost;

  private constructor(pluginName: string) {
    this.pluginName = pluginName;
    const env = { clock: this.clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
    this.kube = createApiServer(env, { store: memoryStore() }).client();
    this.#volumeHost = { ...env, kube: this.kube, csiDriver: async () => undefined };
    const provider = pluginName.slice("kubernetes.io/".length) as CloudProvider;
    this.cloud = new FakeProviderCloud(provider, this.host, ["node-1", "node-2"]);
    this.controller = this.#plugin();
    this.node = this.#plugin();
  }

  /** The plugin with its secrets in place. */
  static async of(pluginName: string): Promise<InTreePluginWorld> {
    const world = new InTreePluginWorld(pluginName);
    await world.controller.init(world.#volumeHost);
    await world.restartNode();
    await world.secret("ceph", "kubernetes.io/rbd", { key: fakeCredentials.key });
    return world;
  }

  /** The node's plugin of an agent that has just started. */
  async restartNode(): Promise<void> {
    this.node = this.#plugin();
    const place = { nodeName: "node-1", rootDir: "/kubelet", deviceDir: "/devices/i-node-1" };
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

  #plugin(): VolumePlugin {
    const plugin = inTreePlugins({ cloudFor: () => this.cloud }).find(
      (candidate) => candidate.pluginName === this.pluginName,
    );
    if (plugin === undefined) throw new Error(`${this.pluginName} is not in the list`);
    return plugin;
  }
}

/** A pod of the namespace `default`. */
export function podOf(uid: string): Pod {
  return { metadata: { name: uid, namespace: "default", uid } };
}
