/**
 * Which of a pod's containers is to be started or stopped next. Pure. Source: core/v1 pod life cycle, init containers,
 * restartPolicy; kubernetes pkg/kubelet/kuberuntime computePodActions, for the back-off images.MaxContainerBackOff.
 *
 * Init containers run one after another before the others; one whose own policy is `Always` (a sidecar) only needs to have
 * started, runs on beside the others, and is ended once they have.
 */
import type { Container, Pod, Stored } from "@longshore/kube";
import { backoffMs } from "@longshore/runtime";
import type { ContainerState, ContainerStates, EndedContainer } from "../containers/pod-runtime.ts";

/** What the probes have found, by {@link probeKey}; nothing is there as long as they have not decided. */
export type ProbeVerdicts = ReadonlyMap<string, boolean>;

/** A kind of probe. */
export type ProbeType = "startup" | "readiness" | "liveness";

/** The key of a verdict: it counts for one run of a container. */
export function probeKey(containerName: string, attempt: number, type: ProbeType): string {
  return `${containerName}/${attempt}/${type}`;
}

/** What the plan of a pod is made from. */
export interface PodContainers {
  readonly pod: Stored<Pod>;
  readonly containers: ContainerStates;
  readonly verdicts: ProbeVerdicts;
  readonly now: Date;
}

/** A run of a container that is to begin. */
export interface NextRun {
  readonly container: Container;
  readonly attempt: number;
  readonly quickRestarts: number;
}

/** What comes next. */
export type ContainerPlan =
  | ({ readonly next: "start" } & NextRun)
  /** A probe has failed, or the containers that a sidecar serves have ended. */
  | { readonly next: "stop"; readonly container: Container; readonly why: string; readonly graceMs: number }
  /** Nothing until a container ends, or until the pause before a restart is over, in milliseconds. */
  | { readonly next: "wait"; readonly pauseMs: number | undefined; readonly paused: string | undefined }
  | { readonly next: "finish" };

const restartBackoff = { initialMs: 10_000, maximumMs: 300_000 };
/** A run of this length, in milliseconds, ends the series of restarts. */
const lastingRunMs = 600_000;
const graceSecondsDefault = 30;

/** Plans what comes next. */
export function planContainers(seen: PodContainers): ContainerPlan {
  const { pod, containers } = seen;
  const main = pod.spec?.containers ?? [];
  const init = pod.spec?.initContainers ?? [];
  const unhealthy = [...main, ...init].map((one) => stopOfUnhealthy(seen, one)).find((stop) => stop);
  if (unhealthy !== undefined) return unhealthy;
  if (main.every((one) => hasEndedForGood(pod, one, containers.get(one.name)))) return endSidecars(seen);
  const pauses = new Pauses();
  const hasMain = main.some(({ name }) => containers.has(name));
  for (const one of init) {
    if (hasMain && !isSidecar(one)) continue;
    const state = containers.get(one.name);
    const start = runOf(seen, one, pauses);
    if (start !== undefined) return { next: "start", ...start };
    if (hasMain || isInitDone(seen, one)) continue;
    if (!isSidecar(one) && hasEndedForGood(pod, one, state)) return endSidecars(seen);
    return pauses.wait();
  }
  for (const one of main) {
    const start = runOf(seen, one, pauses);
    if (start !== undefined) return { next: "start", ...start };
  }
  return pauses.wait();
}

/** Whether an init container lets the next one begin: it has succeeded, or, a sidecar, has started. */
export function isInitDone(seen: PodContainers, container: Container): boolean {
  const state = seen.containers.get(container.name);
  if (isSidecar(container)) return isStarted(seen, container);
  return state?.kind === "ended" && state.exitCode === 0;
}

/** Whether all init containers are done. Once another container has run, they are. */
export function isInitialized(seen: PodContainers): boolean {
  const { pod, containers } = seen;
  const hasMain = (pod.spec?.containers ?? []).some(({ name }) => containers.has(name));
  return hasMain || (pod.spec?.initContainers ?? []).every((one) => isInitDone(seen, one));
}

/** Whether the container runs, and its startup probe has succeeded. */
export function isStarted({ containers, verdicts }: PodContainers, container: Container): boolean {
  const state = containers.get(container.name);
  if (state?.kind !== "running") return false;
  if (container.startupProbe === undefined) return true;
  return verdicts.get(probeKey(container.name, state.attempt, "startup")) === true;
}

/** Whether the container serves: it has started, and its readiness probe has succeeded. */
export function isReady(seen: PodContainers, container: Container): boolean {
  const state = seen.containers.get(container.name);
  if (state === undefined || !isStarted(seen, container)) return false;
  if (container.readinessProbe === undefined) return true;
  return seen.verdicts.get(probeKey(container.name, state.attempt, "readiness")) === true;
}

/** Whether the container is not started again after this end, by its policy and its pod's. */
export function hasEndedForGood(pod: Pod, container: Container, state: ContainerState | undefined): boolean {
  if (state?.kind !== "ended") return false;
  if (pod.metadata?.deletionTimestamp !== undefined) return true;
  if (isSidecar(container)) return false;
  const policy = pod.spec?.restartPolicy ?? "Always";
  const isInit = pod.spec?.initContainers?.some(({ name }) => name === container.name) === true;
  if (isInit && state.exitCode === 0) return true;
  if (policy === "Always") return false;
  return policy === "Never" || state.exitCode === 0;
}

/** Whether the init container runs on beside the others. */
export function isSidecar(container: Container): boolean {
  return container.restartPolicy === "Always";
}

/** Time until the next run may begin, in milliseconds; not positive: now. */
export function restartPauseMs(ended: EndedContainer, now: Date): number {
  const restarts = hasLasted(ended) ? 0 : ended.quickRestarts;
  if (restarts === 0) return 0;
  const delayMs = backoffMs(restartBackoff, restarts);
  // A clock that was set back does not prolong the pause.
  return Math.min(delayMs, Date.parse(ended.finishedAt) + delayMs - now.getTime());
}

/** How long the containers of a pod may take to end, in milliseconds. */
export function specGraceMs(pod: Pod): number {
  return 1000 * (pod.spec?.terminationGracePeriodSeconds ?? graceSecondsDefault);
}

/** Collects the pauses of those containers that are to be started again. */
class Pauses {
  #pauseMs: number | undefined;
  #paused: string | undefined;

  add(container: Container, pauseMs: number): void {
    if (this.#pauseMs !== undefined && this.#pauseMs <= pauseMs) return;
    this.#pauseMs = pauseMs;
    this.#paused = container.name;
  }

  wait(): ContainerPlan {
    return { next: "wait", pauseMs: this.#pauseMs, paused: this.#paused };
  }
}

/** The run to begin now; undefined while the container runs, pauses or has ended for good. */
function runOf({ pod, containers, now }: PodContainers, container: Container, pauses: Pauses) {
  const state = containers.get(container.name);
  if (state === undefined) return { container, attempt: lostRuns(pod, container.name), quickRestarts: 0 };
  if (state.kind === "running" || hasEndedForGood(pod, container, state)) return undefined;
  const pauseMs = restartPauseMs(state, now);
  if (pauseMs > 0) {
    pauses.add(container, pauseMs);
    return undefined;
  }
  const quickRestarts = hasLasted(state) ? 1 : state.quickRestarts + 1;
  return { container, attempt: state.attempt + 1, quickRestarts };
}

/** The number of the next run of a container that the runtime does not know: it may have lost some, as at a power loss. */
function lostRuns(pod: Pod, name: string): number {
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  const before = [...initContainerStatuses, ...containerStatuses].find((status) => status.name === name);
  const { restartCount = 0, state, lastState } = before ?? {};
  const hasRun = state?.running ?? state?.terminated ?? lastState?.terminated;
  return hasRun === undefined ? restartCount : restartCount + 1;
}

function hasLasted({ startedAt, finishedAt }: EndedContainer): boolean {
  return Date.parse(finishedAt) - Date.parse(startedAt) >= lastingRunMs;
}

function stopOfUnhealthy(
  { pod, containers, verdicts }: PodContainers,
  container: Container,
): ContainerPlan | undefined {
  const state = containers.get(container.name);
  if (state?.kind !== "running") return undefined;
  for (const type of ["startup", "liveness"] as const) {
    if (verdicts.get(probeKey(container.name, state.attempt, type)) !== false) continue;
    const seconds = (type === "startup" ? container.startupProbe : container.livenessProbe)
      ?.terminationGracePeriodSeconds;
    const graceMs = seconds === undefined ? specGraceMs(pod) : 1000 * seconds;
    const why = `Container ${container.name} failed ${type} probe, will be restarted`;
    return { next: "stop", container, why, graceMs };
  }
  return undefined;
}

/** The last sidecar goes first. */
function endSidecars({ pod, containers }: PodContainers): ContainerPlan {
  const running = (pod.spec?.initContainers ?? []).findLast(
    ({ name }) => containers.get(name)?.kind === "running",
  );
  if (running === undefined) return { next: "finish" };
  const why = `Stopping container ${running.name}`;
  return { next: "stop", container: running, why, graceMs: specGraceMs(pod) };
}
