/**
 * The local cluster as a crossing's platform: gates are files, a restart is a restarted process (or
 * component), and what is in effect is what control plane and nodes say of themselves in the API.
 */
import { type KubeClient, resources } from "@longshore/kube";
import type { CrossingMark, GateValues, Platform } from "@longshore/migration";
import { type Clock, parseFeatureGates } from "@longshore/runtime";
import { readControlPlaneGates } from "../components/publish-control-plane-gates.ts";
import { featureGatesAnnotation } from "../kubelet/node-object.ts";

/** Name of the control plane among those whose gates can be set. */
export const controlPlane = "controller-manager";

/** How gates are kept and processes restarted, by name (`controller-manager` or a node's). */
export interface GateControl {
  readGates(name: string): Promise<GateValues>;
  /** Durable when it resolves. */
  writeGates(name: string, values: GateValues): Promise<void>;
  /** Asks for a restart; the process reads its gates again when it comes up. */
  restart(name: string): Promise<void>;
}

/** What the platform needs. */
export interface EmbeddedPlatformEnv {
  readonly clock: Clock;
  readonly kube: KubeClient;
  readonly control: GateControl;
  /** Problems of the cluster's own processes that block a crossing. */
  readonly findings?: NonNullable<Platform["findings"]>;
  /** Called for each mark of the crossing. */
  readonly onMark?: (mark: CrossingMark, signal: AbortSignal) => Promise<void>;
}

const pollMs = 50;

/** Makes the platform of a local cluster. */
export function createEmbeddedPlatform(env: EmbeddedPlatformEnv): Platform {
  const nodeGates = async (nodeName: string, signal: AbortSignal): Promise<GateValues | undefined> => {
    const node = await env.kube.get(resources.nodes, { name: nodeName }, { signal });
    const text = node?.metadata.annotations?.[featureGatesAnnotation];
    return text === undefined ? undefined : parseFeatureGates(text);
  };

  const setGates = async (
    name: string,
    values: GateValues,
    inEffect: (signal: AbortSignal) => Promise<GateValues | undefined>,
    signal: AbortSignal,
  ) => {
    const current = await env.control.readGates(name);
    const wanted = { ...current, ...values };
    // The file alone proves nothing: a run may have been cut off between writing it and the restart.
    if (includes(current, values) && includes(await inEffect(signal), wanted)) return;
    await env.control.writeGates(name, wanted);
    await env.control.restart(name);
    while (!includes(await inEffect(signal).catch(() => undefined), wanted)) {
      await env.clock.sleep(pollMs, signal);
    }
  };

  return {
    name: "embedded",
    controlPlaneGates: (signal) => readControlPlaneGates(env.kube, signal),
    nodeGates,
    setControlPlaneGates: (values, signal) =>
      setGates(controlPlane, values, (s) => readControlPlaneGates(env.kube, s), signal),
    setNodeGates: (nodeName, values, signal) =>
      setGates(nodeName, values, (s) => nodeGates(nodeName, s), signal),
    configuredNodeGates: (nodeName) => env.control.readGates(nodeName),
    findings: async (signal, onWaiting) => (await env.findings?.(signal, onWaiting)) ?? [],
    async noteMark(mark, signal) {
      await env.onMark?.(mark, signal);
    },
  };
}

function includes(values: GateValues | undefined, wanted: GateValues): boolean {
  return values !== undefined && Object.entries(wanted).every(([name, value]) => values[name] === value);
}
