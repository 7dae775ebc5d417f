/**
 * A cluster that kubeadm has set up: gates are lines in files of its nodes, which a command per node reads and writes. A node's agent is
 * restarted through systemd; static pods are restarted by the agent when their manifest changes. What is in effect is observed in the API.
 * Source: kubeadm's layout of a node; docs/behaviour/migration-controllers.md C1, C2.
 */
import { type KubeClient, type Node, resources, type Stored } from "@longshore/kube";
import { type Clock, errorChain } from "@longshore/runtime";
import { migrationGates } from "@longshore/translation";
import type { Finding } from "../crossing/finding.ts";
import type { GateValues, Platform } from "../crossing/platform.ts";
import type { Wait } from "../crossing/wait.ts";
import { gatesWait, waitFor } from "../crossing/waits.ts";
import {
  commandGates,
  kubeletConfigGates,
  NodeFileError,
  withKubeletGates,
  withManifestGates,
} from "./feature-gate-files.ts";
import { type NodeCommand, runOnNode } from "./node-command.ts";
import { controlPlanePods, gatesOfPods, includesGates, readNodeGates } from "./observed-gates.ts";

/** What the platform needs. */
export interface KubeadmPlatformEnv {
  readonly clock: Clock;
  readonly kube: KubeClient;
  readonly nodeCommand: NodeCommand;
  /** Why a component of this version (`v1.20.2`) would refuse to start with the gate, or undefined when it would start. */
  readonly refusal: (version: string, gate: string, value: boolean) => string | undefined;
}

/** A component would not start with the gates. */
export class GateRefusedError extends Error {
  override readonly name = "GateRefusedError";
}

const kubeletConfig = "/var/lib/kubelet/config.yaml";
const kubeletFlags = "/var/lib/kubelet/kubeadm-flags.env";
const manifestDir = "/etc/kubernetes/manifests";
/** In the order in which they are changed: the API server first, as the others write what it must know. */
const components = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"] as const;
const controlPlaneLabels = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];
const pollMs = 2000;
/** Nodes whose files are read at the same time in the preflight. */
const looksMax = 16;

/** Makes the platform. */
export function createKubeadmPlatform(env: KubeadmPlatformEnv): Platform {
  const { clock, kube } = env;
  const requireStart = (what: string, version: string | undefined, values: GateValues) => {
    for (const [gate, value] of version === undefined ? [] : Object.entries(values)) {
      const refusal = env.refusal(version ?? "", gate, value);
      if (refusal === undefined) continue;
      throw new GateRefusedError(
        `${what}: ${refusal}; nothing of it was changed: see the gates of its version`,
      );
    }
  };
  const setComponent = async (
    component: (typeof components)[number],
    values: GateValues,
    signal: AbortSignal,
    onWaiting: () => void,
  ) => {
    for (const nodeName of await controlPlaneNodes(kube, signal)) {
      const file = `${manifestDir}/${component}.yaml`;
      const change = (text: string) => {
        requireStart(`Node ${nodeName}: ${component}`, imageVersion(text), values);
        return withManifestGates(text, values);
      };
      await changeFile(env, nodeName, file, change, signal);
      const running = async () => {
        // The API server itself is restarted: that it does not answer meanwhile is what is waited for.
        const pods = await controlPlanePods(kube, component, signal).catch(() => []);
        return gatesOfPods(pods.filter(({ spec }) => spec?.nodeName === nodeName));
      };
      while (!includesGates(await running(), values)) {
        onWaiting();
        await clock.sleep(pollMs, signal);
      }
    }
  };
  return {
    name: "kubeadm",
    controlPlaneGates: async (signal) =>
      gatesOfPods(await controlPlanePods(kube, "kube-controller-manager", signal)),
    nodeGates: (nodeName, signal) => readNodeGates(kube, nodeName, signal),
    async configuredNodeGates(nodeName, signal) {
      return kubeletConfigGates(await readFile(env, nodeName, kubeletConfig, signal));
    },
    async setControlPlaneGates(values, signal, onWaiting) {
      const waits = () => onWaiting?.(gatesWait(undefined, values));
      for (const component of components) await setComponent(component, values, signal, waits);
    },
    async setNodeGates(nodeName, values, signal, onWaiting) {
      const node = await kube.get(resources.nodes, { name: nodeName }, { signal });
      requireStart(`Node ${nodeName}: kubelet`, node?.status?.nodeInfo?.kubeletVersion, values);
      const changed = await changeFile(
        env,
        nodeName,
        kubeletConfig,
        (text) => withKubeletGates(text, values),
        signal,
      );
      const observe = () => readNodeGates(kube, nodeName, signal);
      // A run may have been cut off between the change and the restart, which is safe to do again.
      if (changed || !includesGates(await observe(), values)) {
        await runOnNode(env.nodeCommand, nodeName, ["systemctl", "restart", "kubelet"], { signal });
      }
      while (!includesGates(await observe(), values)) {
        onWaiting?.(gatesWait(nodeName, values));
        await clock.sleep(pollMs, signal);
      }
    },
    findings: (signal, onWaiting) => nodeFindings(env, signal, onWaiting),
  };
}

/** The version in the tag of a manifest's image; undefined where it is another tag. */
function imageVersion(manifest: string): string | undefined {
  return /^\s*image:\s*["']?\S+:(v\d+\.\d+\.\d+)/m.exec(manifest)?.[1];
}

/** Nodes that cannot be reached, or whose files cannot be changed: found before anything is. */
async function nodeFindings(
  env: KubeadmPlatformEnv,
  signal: AbortSignal,
  onWaiting: (wait: Wait) => void = () => {},
): Promise<readonly Finding[]> {
  const { items } = await env.kube.list(resources.nodes, { signal });
  const found = new Map<string, readonly Finding[]>();
  const left = [...items];
  const look = async () => {
    for (let node = left.shift(); node !== undefined; node = left.shift()) {
      onWaiting(
        waitFor("Node", node.metadata.name, `its files to be read; ${left.length} more nodes follow`),
      );
      found.set(node.metadata.name, await findingsOf(env, node, signal));
    }
  };
  await Promise.all(Array.from({ length: looksMax }, look));
  const findings = items.flatMap(({ metadata }) => found.get(metadata.name) ?? []);
  if (items.some(isControlPlane)) return findings;
  return [
    ...findings,
    {
      severity: "blocker",
      object: "the control plane",
      reason: `no Node has the label ${controlPlaneLabels.join(" or ")}`,
      remedy: "label the nodes whose static pods are the control plane, or choose another `platform`",
    },
  ];
}

async function findingsOf(
  env: KubeadmPlatformEnv,
  node: Stored<Node>,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { name } = node.metadata;
  const blocked = (field: string, error: unknown): Finding => ({
    severity: "blocker",
    object: `Node ${name}`,
    field,
    reason: errorChain(error),
    remedy: "see that the command for nodes reaches it as root, and that the file is as kubeadm wrote it",
  });
  // Any value, only to see that the file could be changed.
  const trial = { [migrationGates[0]?.gate ?? ""]: true };
  const findings: Finding[] = [];
  const attempt = async (file: string, look: (text: string) => void) => {
    try {
      look(await readFile(env, name, file, signal));
    } catch (error) {
      if (signal.aborted) throw error;
      findings.push(blocked(file, error));
    }
  };
  await attempt(kubeletConfig, (text) => withKubeletGates(text, trial));
  // The first failure says enough of a node that cannot be reached.
  if (findings.length > 0) return findings;
  await attempt(kubeletFlags, (text) => {
    const words = text.split(/[\s"']+/);
    const set = migrationGates.find(({ gate }) => Object.hasOwn(commandGates(words), gate));
    if (set === undefined) return;
    throw new NodeFileError(
      `it sets ${set.gate} as a flag, which counts more than ${kubeletConfig}: take it out there`,
    );
  });
  if (!isControlPlane(node)) return findings;
  for (const component of components) {
    await attempt(`${manifestDir}/${component}.yaml`, (text) => withManifestGates(text, trial));
  }
  return findings;
}

function isControlPlane({ metadata }: Stored<Node>): boolean {
  return controlPlaneLabels.some((label) => metadata.labels?.[label] !== undefined);
}

async function controlPlaneNodes(kube: KubeClient, signal: AbortSignal): Promise<readonly string[]> {
  const { items } = await kube.list(resources.nodes, { signal });
  return items
    .filter(isControlPlane)
    .map(({ metadata }) => metadata.name)
    .sort();
}

function readFile({ nodeCommand }: KubeadmPlatformEnv, nodeName: string, file: string, signal: AbortSignal) {
  return runOnNode(nodeCommand, nodeName, ["cat", file], { signal });
}

/** Replaces the file by what `change` makes of it, in one step that survives a loss of power. @returns whether it changed */
async function changeFile(
  env: KubeadmPlatformEnv,
  nodeName: string,
  file: string,
  change: (text: string) => string,
  signal: AbortSignal,
): Promise<boolean> {
  const text = await readFile(env, nodeName, file, signal);
  let changed: string;
  try {
    changed = change(text);
  } catch (error) {
    if (error instanceof GateRefusedError) throw error;
    throw new NodeFileError(`Node ${nodeName}: ${file}`, { cause: error });
  }
  if (changed === text) return false;
  const slash = file.lastIndexOf("/");
  // Hidden: the agent takes every other file in the directory of manifests for one.
  const fresh = `${file.slice(0, slash)}/.${file.slice(slash + 1)}.longshore`;
  const run = (words: readonly string[], input?: string) =>
    runOnNode(env.nodeCommand, nodeName, words, { signal, ...(input === undefined ? {} : { input }) });
  await run(["cp", "-p", file, fresh]); // With its owner and mode, which the next command keeps.
  await run(["tee", fresh], changed);
  await run(["sync", fresh]);
  await run(["mv", "-f", fresh, file]);
  return true;
}
