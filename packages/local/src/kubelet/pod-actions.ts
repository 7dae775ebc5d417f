/** The actions of the pod worker, one for each step of its decision. */
import {
  type Actions,
  type EventRecorder,
  type Informer,
  isConflict,
  isNotFound,
  type KubeClient,
  type Next,
  observeAgain,
  type Pod,
  type PodStatus,
  refOf,
  resources,
  type Stored,
  settled,
} from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import type { NodeVolumes } from "@longshore/volumes";
import type { PodRuntime } from "../containers/pod-runtime.ts";
import type { ContainerRestarts } from "./container-restarts.ts";
import type { NodePod, PodObservation, PodPass, PodStep } from "./decide-pod-step.ts";
import { isWanted, podByUID } from "./node-pods.ts";
import { sandboxOf } from "./pod-sandbox.ts";
import { withSubPaths } from "./sub-paths.ts";
import type { VolumeWaits } from "./volume-waits.ts";

/** What the actions need. */
export interface PodParts {
  readonly clock: Clock;
  readonly kube: KubeClient;
  readonly runtime: PodRuntime;
  readonly volumes: Pick<NodeVolumes, "mountedVolumes" | "bindSubPath" | "podVolumesGone">;
  readonly waits: VolumeWaits;
  readonly restarts: ContainerRestarts;
  readonly events: EventRecorder;
  readonly pods: Informer<Pod>;
  readonly logDir: string;
}

const runningCheckMs = 1000;
const goneCheckMs = 500;

/** The table of actions. */
export function podActions(parts: PodParts): Actions<PodObservation, PodStep> {
  return { ...startingActions(parts), ...endingActions(parts) };
}

type StartingStep = Extract<
  PodStep,
  {
    step:
      | "waitForVolumes"
      | "failMount"
      | "startContainer"
      | "failStart"
      | "reportStarted"
      | "readState"
      | "checkAgain";
  }
>;

function startingActions(parts: PodParts): Actions<PodObservation, StartingStep> {
  const { clock, runtime, events, logDir } = parts;
  return {
    waitForVolumes: ({ pod }, observed, { signal }) => waitForVolumes(parts, pod, observed, signal),
    failMount({ pod, error }) {
      events.event(pod, "Warning", "FailedMount", messageOf(error));
      throw error;
    },
    async startContainer({ pod, mounted }, observed, { signal }) {
      try {
        const sandbox = await withSubPaths(parts.volumes, sandboxOf(pod, mounted, logDir));
        await runtime.ensureRunning(sandbox, signal);
        return passed(observed, { start: { kind: "started" } });
      } catch (error) {
        return passed(observed, { start: { kind: "failed", error } });
      }
    },
    failStart({ pod, error }) {
      events.event(pod, "Warning", "FailedCreatePodSandBox", messageOf(error));
      throw error;
    },
    reportStarted({ pod }, observed) {
      events.event(pod, "Normal", "Started", `Started container ${pod.spec?.containers[0]?.name}`);
      return passed(observed, { start: { kind: "reported" } });
    },
    async readState(_step, observed, { key, signal }) {
      const state = await runtime.state(key, signal);
      return passed(observed, { start: { kind: "read" } }, { state, now: clock.now() });
    },
    checkAgain: () => ({ requeueAfterMs: runningCheckMs }),
  };
}

function endingActions(parts: PodParts): Actions<PodObservation, Exclude<PodStep, StartingStep>> {
  const { kube, runtime, volumes, restarts } = parts;
  return {
    async removeRemnant(_step, _observed, { key, signal }) {
      restarts.forget(key);
      await runtime.terminate(key, 0, signal);
      return settled;
    },
    async reportStatus({ pod, status }, observed, { signal }) {
      await writeStatus(kube, pod, status, signal);
      return passed(observed, { reported: status });
    },
    async restartContainer({ pod }, _observed, { key, signal }) {
      restarts.add(pod);
      await runtime.terminate(key, 0, signal);
      return { requeueAfterMs: 0 };
    },
    waitForRestart: ({ pauseMs }) => ({ requeueAfterMs: pauseMs }),
    async terminate({ graceMs }, observed, { key, signal }) {
      await runtime.terminate(key, graceMs, signal);
      return passed(observed, { isTerminated: true });
    },
    checkVolumes: (_step, observed, { key }) =>
      passed(observed, { areVolumesGone: volumes.podVolumesGone(key) }),
    waitUntilVolumesGone: () => ({ requeueAfterMs: goneCheckMs }),
    async deletePod({ pod }, _observed, { key, signal }) {
      const options = { uid: key, gracePeriodSeconds: 0, signal };
      await kube.delete(resources.pods, refOf(pod), options).catch((error) => {
        if (!isConflict(error)) throw error; // A new pod of that name: ours is gone.
      });
      return settled;
    },
    settle: () => settled,
  };
}

/** The pod may have changed by the time that its volumes are mounted: what follows is decided on what it is then. */
async function waitForVolumes(
  { pods, volumes, waits }: PodParts,
  pod: Stored<Pod>,
  observed: PodObservation,
  signal: AbortSignal,
): Promise<Next<PodObservation>> {
  const { uid } = pod.metadata;
  // A deletion that came before the wait began does not interrupt it.
  if (!isWanted(pods, uid)) return observeAgain;
  try {
    if (!(await waits.mounted(pod, signal))) return observeAgain;
  } catch (error) {
    return passed(observed, { mount: { error } });
  }
  const current = podByUID(pods, uid);
  if (current === undefined) return observeAgain;
  return passed(observed, { mount: { mounted: volumes.mountedVolumes(uid) } }, { pod: current });
}

/** Another pod of that name by now, or none: the status of ours is of no use. */
async function writeStatus(
  kube: KubeClient,
  pod: Stored<Pod>,
  status: PodStatus,
  signal: AbortSignal,
): Promise<void> {
  const patch = { type: "merge", body: { metadata: { uid: pod.metadata.uid }, status } } as const;
  await kube.patch(resources.pods, refOf(pod), patch, { subresource: "status", signal }).catch((error) => {
    if (!isNotFound(error) && !isConflict(error)) throw error;
  });
}

/** The observation with what this pass has done, and what it has read. */
function passed(
  observed: PodObservation,
  done: PodPass,
  read: Partial<Omit<NodePod, "pass">> = {},
): Next<PodObservation> {
  if (observed.pod === undefined) return observeAgain;
  return { observed: { ...observed, ...read, pass: { ...observed.pass, ...done } } };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
