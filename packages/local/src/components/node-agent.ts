/** One node's agent: the kubelet shell with the in-tree and CSI volume plugins. */
import { featureGates } from "@longshore/runtime";
import {
  type CloudCaller,
  type CloudProvider,
  csiPlugin,
  type DiskCloud,
  flexVolumeProber,
  hasAttachLimits,
  podVolumePlugins,
  type VolumePlugin,
  volumeGates,
} from "@longshore/volumes";
import type { ShutdownPeriods } from "../kubelet/decide-node-shutdown-step.ts";
import { type KubeletEnv, startKubelet } from "../kubelet/kubelet.ts";
import type { EndingComponent } from "./csi-driver.ts";
import type { MakeInTreePlugins } from "./make-in-tree-plugins.ts";
import { formatFeatureGates } from "./publish-control-plane-gates.ts";

/** The seams of a node agent. */
export interface NodeAgentEnv extends KubeletEnv {
  /** The provider's disk API, bound to a caller: some providers are asked by the node. */
  cloudFor(caller: CloudCaller): DiskCloud;
}

/** Options of {@link startNodeAgent}. */
export interface NodeAgentOptions {
  readonly nodeName: string;
  /** The machine's id at the provider. */
  readonly instanceId: string;
  readonly zone: string;
  readonly region: string;
  /** The kubelet root directory. */
  readonly rootDir: string;
  readonly logDir: string;
  /** Where the machine's devices are, by their names at the providers; default `/dev`. */
  readonly deviceDir?: string;
  /** The in-tree plugins that it has; left out: none. */
  readonly inTreePlugins?: MakeInTreePlugins;
  /** Gate values over the defaults. */
  readonly gates: Readonly<Record<string, boolean>>;
  /** Most volumes of the in-tree EBS plugin on this node. */
  readonly ebsLimit?: number;
  /** Where Flexvolume drivers are installed; left out: none are looked for. */
  readonly flexVolumeDir?: string;
  /** Its stop shuts the node down gracefully within this time; left out: pods run on. */
  readonly shutdown?: ShutdownPeriods;
}

/**
 * Starts a node agent; returns at once. It registers the Node, mounts and runs the pods bound to it, and goes on where an
 * earlier agent of the node has stopped. `failed` resolves when the Node is deleted: a process exits then and is restarted.
 *
 * @throws FeatureGateError for a gate that is unknown or locked
 */
export function startNodeAgent(env: NodeAgentEnv, options: NodeAgentOptions): EndingComponent {
  const gates = featureGates(volumeGates, options.gates);
  const cloudFor = (provider: CloudProvider) =>
    env.cloudFor({ path: "in-tree", component: `kubelet/${options.nodeName}`, provider });
  const inTree = options.inTreePlugins?.(cloudFor) ?? [];
  const { flexVolumeDir } = options;
  return startKubelet(env, {
    identity: {
      nodeName: options.nodeName,
      instanceId: options.instanceId,
      zone: options.zone,
      region: options.region,
      featureGates: formatFeatureGates(gates.values),
      volumeLimitsOf: (instanceType) => volumeLimitsOf(inTree, options, instanceType),
    },
    rootDir: options.rootDir,
    ...(options.deviceDir === undefined ? {} : { deviceDir: options.deviceDir }),
    logDir: options.logDir,
    gates,
    plugins: [...inTree, csiPlugin({ connector: env.connector }), ...podVolumePlugins()],
    ...(options.shutdown === undefined ? {} : { shutdown: options.shutdown }),
    ...(flexVolumeDir === undefined ? {} : { prober: flexVolumeProber(env, { directory: flexVolumeDir }) }),
  });
}

const ebsLimitKey = "attachable-volumes-aws-ebs";

/** How many volumes of each plugin the node can have, by resource name; of EBS as many as the options say. */
function volumeLimitsOf(
  plugins: readonly VolumePlugin[],
  { ebsLimit }: NodeAgentOptions,
  instanceType: string,
): Readonly<Record<string, number>> {
  const limits = plugins.filter(hasAttachLimits).map((plugin) => plugin.getVolumeLimits({ instanceType }));
  const all: Readonly<Record<string, number>> = Object.assign({}, ...limits);
  return ebsLimit !== undefined && ebsLimitKey in all ? { ...all, [ebsLimitKey]: ebsLimit } : all;
}
