/** The Node object as its agent writes it. Pure. Source: core/v1 Node; docs/behaviour/node-agent.md 8. */
import {
  apiTime,
  type Node,
  type NodeAddress,
  type NodeCondition,
  type NodeSystemInfo,
  type Stored,
} from "@longshore/kube";
import { uncertainVolumesAnnotation, uncertainVolumesText } from "@longshore/storage";

/** What a node says of itself. */
export interface NodeIdentity {
  readonly nodeName: string;
  readonly instanceId: string;
  readonly zone: string;
  readonly region: string;
  /** `--feature-gates` form of the gates in effect, so that anyone can see what this agent runs with. */
  readonly featureGates: string;
  /** Attach limits of in-tree plugins on a machine of this type, by resource key; the type is empty where it is not known. */
  volumeLimitsOf(instanceType: string): Readonly<Record<string, number>>;
}

/** The annotation with the gates that an agent or the controller manager runs with. */
export const featureGatesAnnotation = "longshore.dev/feature-gates";

/** The node's metadata and spec at registration, over what is there already. */
export function registeredNode(identity: NodeIdentity, current: Stored<Node> | undefined): Node {
  return {
    ...(current ?? { apiVersion: "v1", kind: "Node" }),
    metadata: {
      ...current?.metadata,
      name: identity.nodeName,
      labels: {
        ...current?.metadata.labels,
        "kubernetes.io/hostname": identity.nodeName,
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": identity.zone,
        "topology.kubernetes.io/region": identity.region,
        // The names of these labels before 1.17: older volumes select their nodes by them.
        "failure-domain.beta.kubernetes.io/zone": identity.zone,
        "failure-domain.beta.kubernetes.io/region": identity.region,
      },
      annotations: {
        ...current?.metadata.annotations,
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        [featureGatesAnnotation]: identity.featureGates,
      },
    },
    spec: { ...current?.spec, providerID: `aws:///${identity.zone}/${identity.instanceId}` },
  };
}

/**
 * A Node that is made, perhaps again.
 *
 * @param volumesFound what the node uses
 * @param attachmentsFound what may be attached to it and only its record says
 */
export function createdNode(
  identity: NodeIdentity,
  volumesFound: readonly string[],
  attachmentsFound: readonly string[],
): Node {
  const made = registeredNode(identity, undefined);
  const status = { volumesInUse: [...volumesFound] };
  const record = uncertainVolumesText(attachmentsFound);
  if (record === undefined) return { ...made, status };
  const annotations = { ...made.metadata?.annotations, [uncertainVolumesAnnotation]: record };
  return { ...made, metadata: { ...made.metadata, annotations }, status };
}

/** The parts of the status that the agent owns. */
export interface NodeStatusParts {
  readonly capacity: Record<string, string>;
  readonly allocatable: Record<string, string>;
  readonly conditions: NodeCondition[];
  readonly addresses: NodeAddress[];
  readonly nodeInfo: NodeSystemInfo;
  readonly volumesInUse?: string[];
}

/** The version that a node of this project reports; the API it keeps to is that of Kubernetes 1.20. */
const kubeletVersion = "v1.20.2+longshore";

/** What the agent knows of its node. */
export interface NodeFacts {
  /** Not undefined: the node is not Ready, for this reason. */
  readonly error: string | undefined;
  readonly conditions: readonly NodeCondition[];
  readonly volumesInUse: readonly string[] | undefined;
  readonly now: Date;
}

/** The status to report; a condition keeps its transition time while its status stays. */
export function nodeStatusOf(
  identity: NodeIdentity,
  current: Stored<Node>,
  facts: NodeFacts,
): NodeStatusParts {
  const limits = identity.volumeLimitsOf(current.metadata.labels?.["node.kubernetes.io/instance-type"] ?? "");
  const resources = {
    cpu: "2",
    memory: "4Gi",
    pods: "110",
    ...Object.fromEntries(Object.entries(limits).map(([key, count]) => [key, String(count)])),
  };
  return {
    capacity: resources,
    allocatable: resources,
    conditions: conditionsOf(current, facts),
    addresses: [
      { type: "InternalIP", address: "127.0.0.1" },
      { type: "Hostname", address: identity.nodeName },
    ],
    nodeInfo: nodeInfoOf(identity),
    ...(facts.volumesInUse === undefined ? {} : { volumesInUse: [...facts.volumesInUse] }),
  };
}

/** Those of others, then those of the agent. */
function conditionsOf(current: Stored<Node>, facts: NodeFacts): NodeCondition[] {
  const now = apiTime(facts.now);
  const before = current.status?.conditions ?? [];
  const own = [...facts.conditions, readyCondition(facts.error)];
  const others = before.filter((c) => !own.some((o) => o.type === c.type));
  return [...others, ...own].map((condition) => {
    const was = before.find((c) => c.type === condition.type);
    const kept = was?.status === condition.status ? was.lastTransitionTime : undefined;
    const lastTransitionTime = kept ?? condition.lastTransitionTime ?? now;
    return { ...condition, lastHeartbeatTime: now, lastTransitionTime };
  });
}

function readyCondition(error: string | undefined): NodeCondition {
  return error === undefined
    ? {
        type: "Ready",
        status: "True",
        reason: "KubeletReady",
        message: "node agent is posting ready status",
      }
    : { type: "Ready", status: "False", reason: "KubeletNotReady", message: error };
}

function nodeInfoOf({ instanceId }: NodeIdentity): NodeSystemInfo {
  return {
    machineID: instanceId,
    systemUUID: instanceId,
    bootID: "",
    kernelVersion: "",
    osImage: "Longshore local node",
    containerRuntimeVersion: "process://1",
    kubeletVersion,
    kubeProxyVersion: kubeletVersion,
    operatingSystem: "linux",
    architecture: "",
  };
}

/** True when the conditions or resources in `next` would show readers something new (heartbeats aside). */
export function conditionsDiffer({ status = {} }: Stored<Node>, next: NodeStatusParts): boolean {
  const before = status.conditions ?? [];
  if (before.length !== next.conditions.length) return true;
  const isNew = (condition: NodeCondition) => {
    const was = before.find(({ type }) => type === condition.type);
    return (
      was === undefined ||
      was.status !== condition.status ||
      was.reason !== condition.reason ||
      was.message !== condition.message
    );
  };
  return next.conditions.some(isNew) || resourcesDiffer(status.allocatable ?? {}, next.allocatable);
}

function resourcesDiffer(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(a);
  return names.length !== Object.keys(b).length || names.some((name) => a[name] !== b[name]);
}

/** True when the stored list of volumes in use is another. */
export function volumesInUseDiffer(current: Stored<Node>, volumesInUse: readonly string[]): boolean {
  return JSON.stringify(current.status?.volumesInUse ?? []) !== JSON.stringify(volumesInUse);
}
