/**
 * The platform of an administrator: what is to be done is said once, and then waited for until the API shows it. Nothing is changed.
 */
import type { KubeClient } from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import type { GateValues, Platform } from "../crossing/platform.ts";
import { gatesWait } from "../crossing/waits.ts";
import {
  controlPlaneGatesMap,
  controlPlanePods,
  gatesOfPods,
  gatesText,
  includesGates,
  readNodeGates,
  readPublishedGates,
} from "./observed-gates.ts";

/** What an administrator is to do. */
export interface ManualTask {
  /** The node whose agent is to be restarted with the gates; the control plane when left out. */
  readonly nodeName?: string;
  /** `A=true,B=false`. */
  readonly gates: string;
  /** Where that is to be said once it is done, since the API does not show it by itself. */
  readonly confirm?: typeof controlPlaneGatesMap;
}

/** What the platform needs. */
export interface ManualPlatformEnv {
  readonly clock: Clock;
  readonly kube: KubeClient;
  /** Receives each task once in a run. */
  readonly onTask: (task: ManualTask) => void;
}

const pollMs = 2000;

/** Makes the platform. */
export function createManualPlatform({ clock, kube, onTask }: ManualPlatformEnv): Platform {
  const controlPlane = async (signal: AbortSignal) => {
    const pods = await controlPlanePods(kube, "kube-controller-manager", signal);
    return pods.length > 0
      ? { gates: gatesOfPods(pods), isShown: true }
      : { gates: await readPublishedGates(kube, signal), isShown: false };
  };
  const until = async (
    task: () => Promise<ManualTask>,
    observe: () => Promise<GateValues | undefined>,
    values: GateValues,
    signal: AbortSignal,
    onWaiting: () => void,
  ) => {
    if (includesGates(await observe(), values)) return;
    onTask(await task());
    do {
      onWaiting();
      await clock.sleep(pollMs, signal);
    } while (!includesGates(await observe(), values));
  };
  return {
    name: "manual",
    controlPlaneGates: async (signal) => (await controlPlane(signal)).gates,
    nodeGates: (nodeName, signal) => readNodeGates(kube, nodeName, signal),
    setControlPlaneGates: (values, signal, onWaiting) =>
      until(
        async () => ({
          gates: gatesText(values),
          ...((await controlPlane(signal)).isShown ? {} : { confirm: controlPlaneGatesMap }),
        }),
        async () => (await controlPlane(signal)).gates,
        values,
        signal,
        () => onWaiting?.(gatesWait(undefined, values)),
      ),
    setNodeGates: (nodeName, values, signal, onWaiting) =>
      until(
        async () => ({ nodeName, gates: gatesText(values) }),
        () => readNodeGates(kube, nodeName, signal),
        values,
        signal,
        () => onWaiting?.(gatesWait(nodeName, values)),
      ),
  };
}
