/** One node's agent: the kubelet shell with the in-tree and CSI volume plugins. */
import { type Component, featureGates } from "@longshore/runtime";
import { awsEbsPlugin, csiPlugin, flexVolumeProber, podVolumePlugins, volumeGates } from "@longshore/volumes";
import { type KubeletEnv, startKubelet } from "../kubelet/kubelet.ts";
import { formatFeatureGates } from "./publish-control-plane-gates.ts";

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
  /** Gate values over the defaults. */
  readonly gates: Readonly<Record<string, boolean>>;
  /** Most volumes of the in-tree EBS plugin on this node. */
  readonly ebsLimit?: number;
  /** Where Flexvolume drivers are installed; left out: none are looked for. */
  readonly flexVolumeDir?: string;
}

/**
 * Starts a node agent; returns at once. It registers the Node, mounts and runs the pods bound to it, and goes on where an
 * earlier agent of the node has stopped.
 *
 * @throws FeatureGateError for a gate that is unknown or locked
 */
export function startNodeAgent(env: KubeletEnv, options: NodeAgentOptions): Component {
  const gates = featureGates(volumeGates, options.gates);
  const { flexVolumeDir } = options;
  return startKubelet(env, {
    identity: {
      nodeName: options.nodeName,
      instanceId: options.instanceId,
      zone: options.zone,
      region: options.region,
      featureGates: formatFeatureGates(gates.values),
      volumeLimits: { "attachable-volumes-aws-ebs": options.ebsLimit ?? 39 },
    },
    rootDir: options.rootDir,
    logDir: options.logDir,
    gates,
    plugins: [awsEbsPlugin(), csiPlugin({ connector: env.connector }), ...podVolumePlugins()],
    ...(flexVolumeDir === undefined ? {} : { prober: flexVolumeProber(env, { directory: flexVolumeDir }) }),
  });
}
