/**
 * Runs the probes of the node's containers, each in its own time. The rules are in `decide-probe-step.ts`. What probes have
 * found is kept in memory: an agent that starts probes again, as a kubelet does.
 */
import {
  type Actions,
  type Container,
  type EventRecorder,
  type Informer,
  type Pod,
  type Probe,
  type Stored,
  settled,
  startController,
} from "@longshore/kube";
import type { Component, RuntimeEnv } from "@longshore/runtime";
import type { PodRuntime } from "../containers/pod-runtime.ts";
import type { ProbeNetwork } from "../containers/probe-network.ts";
import { type ProbeType, type ProbeVerdicts, probeKey } from "./container-plan.ts";
import {
  decideProbeStep,
  type ObservedProbe,
  type ProbeResult,
  type ProbeStep,
} from "./decide-probe-step.ts";
import { isWanted, podByUID } from "./node-pods.ts";
import { runHandler } from "./run-probe.ts";

/** What the probes work with. */
export interface ProbesOptions {
  readonly pods: Informer<Pod>;
  readonly events: EventRecorder;
  /** Called when a verdict has changed. */
  readonly onVerdict: (podUID: string) => void;
}

/** The running probes. */
export interface Probes extends Component {
  /** The verdicts for the pod's containers, as they are now. */
  verdicts(podUID: string): ProbeVerdicts;
  /** Sees to it that the pod's probes run. */
  follow(pod: Stored<Pod>): void;
  forget(podUID: string): void;
}

type ProbesEnv = RuntimeEnv & { readonly runtime: PodRuntime; readonly network: ProbeNetwork };

const types: readonly ProbeType[] = ["startup", "readiness", "liveness"];
const noVerdicts: ProbeVerdicts = new Map();

/** Starts the probes; each begins once `follow` names its pod. */
export function startProbes(env: ProbesEnv, options: ProbesOptions): Probes {
  const { pods } = options;
  /** By UID of the pod, then by container and type. */
  const results = new Map<string, Map<string, ProbeResult>>();
  const controller = startController<ObservedProbe, ProbeStep>(env, {
    name: "kubelet-probes",
    workers: 32,
    sources: [],
    caches: [pods],
    async observe(key, { signal }) {
      const { podUID, name, type } = partsOf(key);
      const state = (await env.runtime.state(podUID, signal)).get(name);
      const pod = isWanted(pods, podUID) ? podByUID(pods, podUID) : undefined;
      const container = pod === undefined ? undefined : containerOf(pod, name);
      const run = state?.kind === "running" ? state : undefined;
      const startup = results.get(podUID)?.get(`${name}/startup`);
      return {
        type,
        probe: container === undefined ? undefined : probeOf(container, type),
        run,
        result: results.get(podUID)?.get(`${name}/${type}`),
        isStarted:
          container?.startupProbe === undefined ||
          (startup?.attempt === run?.attempt && startup?.verdict === true),
        nowMs: env.clock.now().getTime(),
      };
    },
    decide: decideProbeStep,
    actions: probeActions(env, options, results),
  });
  return {
    verdicts(podUID) {
      const found = results.get(podUID);
      if (found === undefined) return noVerdicts;
      const verdicts = new Map<string, boolean>();
      for (const [key, { attempt, verdict }] of found) {
        const [name = "", type = ""] = key.split("/");
        if (verdict !== undefined) verdicts.set(probeKey(name, attempt, type as ProbeType), verdict);
      }
      return verdicts;
    },
    follow(pod) {
      for (const container of containersOf(pod)) {
        for (const type of types) {
          if (probeOf(container, type) === undefined) continue;
          controller.wake(`${pod.metadata.uid}/${container.name}/${type}`);
        }
      }
    },
    forget: (podUID) => void results.delete(podUID),
    stop: () => controller.stop(),
  };
}

function probeActions(
  env: ProbesEnv,
  { pods, events, onVerdict }: ProbesOptions,
  results: Map<string, Map<string, ProbeResult>>,
): Actions<ObservedProbe, ProbeStep> {
  return {
    forget: () => settled,
    wait: ({ ms }) => ({ requeueAfterMs: ms }),
    async probe({ probe, timeoutMs }, observed, { key, signal }) {
      const { podUID, name } = partsOf(key);
      const pod = podByUID(pods, podUID);
      const container = pod === undefined ? undefined : containerOf(pod, name);
      if (pod === undefined || container === undefined) return settled;
      const failure = await runHandler(env, { pod, container }, probe, timeoutMs, signal);
      return { observed: { ...observed, nowMs: env.clock.now().getTime(), outcome: { failure } } };
    },
    record({ result, failure, isNews, nextMs }, { type }, { key }) {
      const { podUID, name } = partsOf(key);
      const pod = podByUID(pods, podUID);
      if (pod === undefined) return settled;
      const found = results.get(podUID) ?? new Map<string, ProbeResult>();
      results.set(podUID, found.set(`${name}/${type}`, result));
      if (failure !== undefined) {
        const what = `${type.slice(0, 1).toUpperCase()}${type.slice(1)}`;
        events.event(pod, "Warning", "Unhealthy", `${what} probe failed: ${failure}`);
      }
      if (isNews) onVerdict(podUID);
      return nextMs === 0 ? settled : { requeueAfterMs: nextMs };
    },
    settle: () => settled,
  };
}

function partsOf(key: string): { podUID: string; name: string; type: ProbeType } {
  const [podUID = "", name = "", type = ""] = key.split("/");
  return { podUID, name, type: type as ProbeType };
}

function containersOf({ spec }: Pod): readonly Container[] {
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
}

function containerOf(pod: Pod, name: string): Container | undefined {
  return containersOf(pod).find((one) => one.name === name);
}

function probeOf(container: Container, type: ProbeType): Probe | undefined {
  switch (type) {
    case "startup":
      return container.startupProbe;
    case "readiness":
      return container.readinessProbe;
    case "liveness":
      return container.livenessProbe;
  }
}
