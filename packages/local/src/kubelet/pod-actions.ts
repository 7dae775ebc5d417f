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
import type { ProbeNetwork } from "../containers/probe-network.ts";
import { containerConfigOf } from "./container-config.ts";
import { environmentFrom, readEnvironmentSources } from "./container-environment.ts";
import { specGraceMs } from "./container-plan.ts";
import type { NodePod, PodObservation, PodPass, PodStep } from "./decide-pod-step.ts";
import type { EmptyDirLimits } from "./empty-dir-limits.ts";
import { isWanted, podByUID } from "./node-pods.ts";
import type { NodeShutdown } from "./node-shutdown.ts";
import { PodSpecError } from "./pod-spec-error.ts";
import type { Probes } from "./probes.ts";
import { type PodContainer, runHandler } from "./run-probe.ts";
import { withSubPaths } from "./sub-paths.ts";
import type { VolumeWaits } from "./volume-waits.ts";

/** What the actions need. */
export interface PodParts {
  readonly clock: Clock;
  readonly kube: KubeClient;
  readonly runtime: PodRuntime;
  readonly volumes: Pick<NodeVolumes, "mountedVolumes" | "bindSubPath" | "podVolumesGone">;
  readonly waits: VolumeWaits;
  readonly probes: Pick<Probes, "verdicts" | "follow" | "forget">;
  readonly network: ProbeNetwork;
  readonly events: EventRecorder;
  readonly pods: Informer<Pod>;
  readonly shutdown: Pick<NodeShutdown, "forPods">;
  readonly emptyDirs: Pick<EmptyDirLimits, "of">;
  readonly logDir: string;
}

/** How often a runtime that does not say when a container ends is asked. */
const runningCheckMs = 1000;
/** The same of one that does: a safeguard. */
const watchedCheckMs = 60_000;
const goneCheckMs = 500;
/** The pause before a start that cannot succeed is tried again: the pod is only replaced. */
const lastingErrorMs = 60_000;
/** A hook that does not end fails: it would hold up the pod's other containers for ever. */
const postStartMaxMs = 120_000;

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
      | "runPostStart"
      | "reportStarted"
      | "readState"
      | "waitForRestart"
      | "checkAgain";
  }
>;

function startingActions(parts: PodParts): Actions<PodObservation, StartingStep> {
  const { runtime, events, probes } = parts;
  return {
    waitForVolumes: ({ pod }, observed, { signal }) => waitForVolumes(parts, pod, observed, signal),
    failMount({ pod, error }) {
      events.event(pod, "Warning", "FailedMount", messageOf(error));
      throw error;
    },
    startContainer: (step, observed, { signal }) => startContainer(parts, step, observed, signal),
    failStart({ pod, reason, error, isKnown }) {
      if (isKnown) return { requeueAfterMs: lastingErrorMs };
      events.event(pod, "Warning", reason === "RunContainerError" ? "Failed" : reason, messageOf(error));
      throw error;
    },
    async runPostStart({ pod, run }, observed, { key, signal }) {
      const { container } = run;
      const hook = container.lifecycle?.postStart;
      const graceMs = specGraceMs(pod);
      const failure =
        hook === undefined
          ? undefined
          : await runHandler(parts, { pod, container }, hook, postStartMaxMs, signal);
      if (failure !== undefined) {
        events.event(pod, "Warning", "FailedPostStartHook", `PostStartHook failed: ${failure}`);
        await runtime.stopContainer(key, container.name, graceMs, signal);
      }
      return passed(observed, { start: { kind: "hooked", run } });
    },
    reportStarted({ pod, container }, observed) {
      events.event(pod, "Normal", "Started", `Started container ${container.name}`);
      return observed.pod === undefined || observed.pass.start === undefined
        ? observeAgain
        : passed(observed, { start: { kind: "reported", run: observed.pass.start.run } });
    },
    readState: (_step, observed, { signal }) => readState(parts, observed, signal),
    waitForRestart({ pod, container, pauseMs, isOneRunning, isNew }) {
      if (isNew) {
        const message = `Back-off restarting failed container ${container}`;
        events.event(pod, "Warning", "BackOff", message);
      }
      if (isOneRunning) probes.follow(pod);
      return { requeueAfterMs: isOneRunning ? Math.min(pauseMs, runningCheckMs) : pauseMs };
    },
    checkAgain({ pod, overdueInMs = Number.POSITIVE_INFINITY }) {
      probes.follow(pod);
      const checkMs = runtime.onEnd === undefined ? runningCheckMs : watchedCheckMs;
      return { requeueAfterMs: Math.min(checkMs, overdueInMs) };
    },
  };
}

function endingActions(parts: PodParts): Actions<PodObservation, Exclude<PodStep, StartingStep>> {
  const { kube, runtime, volumes, probes, events } = parts;
  return {
    async removeRemnant(_step, _observed, { key, signal }) {
      probes.forget(key);
      await runtime.terminate(key, 0, signal);
      return settled;
    },
    async reportStatus({ pod, status }, observed, { signal }) {
      await writeStatus(kube, pod, status, signal);
      return passed(observed, { reported: status });
    },
    async stopContainer({ pod, container, why, graceMs }, observed, { signal }) {
      events.event(pod, "Normal", "Killing", why);
      await stopWithHook(parts, { pod, container }, graceMs, signal);
      return readState(parts, observed, signal);
    },
    terminate: ({ pod, graceMs }, observed, { signal }) => terminate(parts, pod, graceMs, observed, signal),
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

async function startContainer(
  { kube, runtime, volumes, logDir }: PodParts,
  { pod, run, mounted }: Extract<PodStep, { step: "startContainer" }>,
  observed: PodObservation,
  signal: AbortSignal,
): Promise<Next<PodObservation>> {
  let isLasting = false;
  try {
    const sources = await readEnvironmentSources(kube, pod, run.container, signal);
    const env = environmentFrom(pod, run.container, sources);
    isLasting = true;
    const config = containerConfigOf(pod, run, { env, mounted, logDir, nodeUser: runtime.user });
    isLasting = false;
    await runtime.startContainer(await withSubPaths(volumes, config), signal);
    return passed(observed, { start: { kind: "started", run } });
  } catch (error) {
    signal.throwIfAborted();
    const reason = error instanceof PodSpecError ? "CreateContainerConfigError" : "RunContainerError";
    return passed(observed, { start: { kind: "failed", run, reason, error, isLasting } });
  }
}

/** The containers as they are now, and the pod, which may have changed: what follows is decided on them. */
async function readState(
  { runtime, pods, clock, probes, shutdown, emptyDirs }: PodParts,
  observed: PodObservation,
  signal: AbortSignal,
): Promise<Next<PodObservation>> {
  if (observed.pod === undefined) return observeAgain;
  const { uid } = observed.pod.metadata;
  const containers = await runtime.state(uid, signal);
  const pod = podByUID(pods, uid);
  if (pod === undefined) return observeAgain;
  const { start: _, ...pass } = observed.pass;
  const verdicts = probes.verdicts(uid);
  const asked = { shutdown: shutdown.forPods(), excess: emptyDirs.of(uid) };
  return { observed: { pod, containers, verdicts, now: clock.now(), ...asked, pass } };
}

/** Ends what runs of the pod, looks how it has ended, and forgets it. */
async function terminate(
  parts: PodParts,
  pod: Stored<Pod>,
  graceMs: number,
  observed: PodObservation,
  signal: AbortSignal,
): Promise<Next<PodObservation>> {
  const { runtime, events, probes, clock } = parts;
  const { uid } = pod.metadata;
  const all = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
  const before = await runtime.state(uid, signal);
  const running = all.filter(({ name }) => before.get(name)?.kind === "running");
  for (const { name } of running) events.event(pod, "Normal", "Killing", `Stopping container ${name}`);
  await Promise.all(running.map((container) => stopWithHook(parts, { pod, container }, graceMs, signal)));
  const containers = await runtime.state(uid, signal);
  // Also what the spec does not name, and shims that are about to start something.
  await runtime.terminate(uid, graceMs, signal);
  probes.forget(uid);
  return passed(observed, { isTerminated: true }, { containers, now: clock.now() });
}

/** The hook runs before the container is asked to end, in the same time. */
async function stopWithHook(
  parts: PodParts,
  target: PodContainer,
  graceMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { pod, container } = target;
  const hook = container.lifecycle?.preStop;
  const beganMs = parts.clock.monotonicMs();
  if (hook !== undefined && graceMs > 0) {
    const failure = await runHandler(parts, target, hook, graceMs, signal);
    if (failure !== undefined) {
      parts.events.event(pod, "Warning", "FailedPreStopHook", `PreStopHook failed: ${failure}`);
    }
  }
  const leftMs = hook === undefined ? graceMs : graceMs - (parts.clock.monotonicMs() - beganMs);
  // After a hook that took all the time the container gets two seconds (pkg/kubelet/kuberuntime minimumGracePeriodInSeconds).
  const termMs = graceMs === 0 ? 0 : Math.max(leftMs, hook === undefined ? 0 : 2000);
  await parts.runtime.stopContainer(pod.metadata.uid, container.name, termMs, signal);
}

/** The pod may have changed by the time that its volumes are mounted: what follows is decided on what it is then. */
async function waitForVolumes(
  { pods, volumes, waits, shutdown }: PodParts,
  pod: Stored<Pod>,
  observed: PodObservation,
  signal: AbortSignal,
): Promise<Next<PodObservation>> {
  const { uid } = pod.metadata;
  // A deletion or a shutdown that came before the wait began does not interrupt it.
  const group = observed.pod === undefined ? undefined : observed.shutdown?.group;
  if (!isWanted(pods, uid) || shutdown.forPods()?.group !== group) return observeAgain;
  try {
    if (!(await waits.mounted(pod, signal))) return observeAgain;
  } catch (error) {
    return passed(observed, { mount: { error } });
  }
  const current = podByUID(pods, uid);
  if (current === undefined) return observeAgain;
  const read = { pod: current, shutdown: shutdown.forPods() };
  return passed(observed, { mount: { mounted: volumes.mountedVolumes(uid) } }, read);
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
