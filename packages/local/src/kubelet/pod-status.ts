/** A pod's status, as this node reports it. Pure. Source: core/v1 PodStatus, pod life cycle. */
import {
  apiTime,
  type Container,
  type ContainerStatus,
  type Pod,
  type PodCondition,
  type PodStatus,
  type Stored,
} from "@longshore/kube";
import type { ContainerState, EndedContainer } from "../containers/pod-runtime.ts";
import {
  hasEndedForGood,
  isInitDone,
  isInitialized,
  isReady,
  isSidecar,
  isStarted,
  type PodContainers,
  restartPauseMs,
} from "./container-plan.ts";

/** What the node knows of the pod. */
export interface PodFacts extends Omit<PodContainers, "pod"> {
  /** A container that could not be started, and why. */
  readonly startError?: { readonly container: string; readonly reason: string; readonly message: string };
  /** The pod has been ended: nothing of it runs. */
  readonly isEnded?: boolean;
  /** Why the node has ended it: it has failed, whatever its containers say. */
  readonly failure?: { readonly reason: string; readonly message: string };
}

/** Why a container that cannot be started waits. */
const startErrors: readonly string[] = ["CreateContainerConfigError", "RunContainerError"];
/** Conditions that this node writes; those of others are kept. */
const ownConditions: readonly string[] = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];

/** The status to report. Times of what has not changed are kept. */
export function podStatusOf(pod: Stored<Pod>, facts: PodFacts): PodStatus {
  const seen = { ...facts, pod };
  const now = apiTime(facts.now);
  const before = pod.status;
  const phase = phaseOf(seen, facts);
  const main = pod.spec?.containers ?? [];
  const init = pod.spec?.initContainers ?? [];
  const isOver = phase === "Succeeded" || phase === "Failed" || facts.isEnded === true;
  const containersReady = !isOver && [...main, ...init.filter(isSidecar)].every((one) => isReady(seen, one));
  const gates = pod.spec?.readinessGates ?? [];
  const areGatesOpen = gates.every(
    ({ conditionType }) => before?.conditions?.find((c) => c.type === conditionType)?.status === "True",
  );
  const statusOf = (container: Container) => containerStatusOf(seen, facts, container);
  return {
    phase,
    conditions: [
      ...(before?.conditions ?? []).filter((c) => !ownConditions.includes(c.type)),
      condition(before, "PodScheduled", true, now),
      condition(before, "Initialized", isInitialized(seen), now),
      condition(before, "ContainersReady", containersReady, now),
      condition(before, "Ready", containersReady && areGatesOpen, now),
    ],
    hostIP: "127.0.0.1",
    startTime: before?.startTime ?? now,
    ...(facts.failure ?? {}),
    ...(init.length === 0 ? {} : { initContainerStatuses: init.map(statusOf) }),
    containerStatuses: main.map(statusOf),
  };
}

/** Whether two statuses show the same to readers, times aside. */
export function showsSame(before: PodStatus | undefined, after: PodStatus): boolean {
  return shown(before) === shown(after);
}

function shown(status: PodStatus | undefined): string {
  const containers = (list: readonly ContainerStatus[] | undefined) =>
    (list ?? []).map(({ name, ready, started, restartCount, state, lastState }) => [
      [name, ready, started ?? false, restartCount, Object.keys(state ?? {})],
      [state?.waiting?.reason, state?.terminated?.exitCode, lastState?.terminated?.exitCode],
    ]);
  return JSON.stringify([
    status?.phase,
    status?.reason,
    status?.conditions?.map((c) => [c.type, c.status]).sort(),
    containers(status?.initContainerStatuses),
    containers(status?.containerStatuses),
  ]);
}

function phaseOf(seen: PodContainers, facts: PodFacts): NonNullable<PodStatus["phase"]> {
  const { pod, containers } = seen;
  const main = pod.spec?.containers ?? [];
  const init = pod.spec?.initContainers ?? [];
  if (facts.failure !== undefined) return "Failed";
  const states = main.map(({ name }) => containers.get(name));
  const failed = [
    ...states,
    ...init.filter((one) => !isSidecar(one)).map(({ name }) => containers.get(name)),
  ];
  const hasFailed = failed.some((state) => state?.kind === "ended" && state.exitCode !== 0);
  if (facts.isEnded === true) return hasFailed ? "Failed" : "Succeeded";
  const isServed = init.some(({ name }) => containers.get(name)?.kind === "running");
  const isOver = main.every((one) => hasEndedForGood(pod, one, containers.get(one.name)));
  if (isOver && !isServed) return hasFailed ? "Failed" : "Succeeded";
  const hasInitFailed = init.some((one) => {
    const state = containers.get(one.name);
    return state?.kind === "ended" && state.exitCode !== 0 && hasEndedForGood(pod, one, state);
  });
  if (hasInitFailed && !isInitialized(seen) && !isServed) return "Failed";
  // A pod that has run is not reported Pending again, as when the node has lost its containers.
  if (pod.status?.phase === "Running") return "Running";
  return states.every((state) => state !== undefined) ? "Running" : "Pending";
}

function containerStatusOf(seen: PodContainers, facts: PodFacts, container: Container): ContainerStatus {
  const { pod, containers } = seen;
  const state = containers.get(container.name);
  const before = statusBefore(pod, container.name);
  const isInit = pod.spec?.initContainers?.includes(container) === true && !isSidecar(container);
  const isEnded = facts.isEnded === true;
  const shownState = containerStateOf(seen, facts, container);
  const last =
    state?.kind === "ended" && shownState.waiting !== undefined ? terminated(state) : pastOf(state, before);
  return {
    name: container.name,
    image: container.image ?? "",
    imageID: "",
    ready: isInit ? isInitDone(seen, container) : !isEnded && isReady(seen, container),
    started: !isEnded && !isInit && isStarted(seen, container),
    restartCount: state?.attempt ?? before?.restartCount ?? 0,
    ...(state === undefined
      ? {}
      : { containerID: `longshore://${pod.metadata.uid}/${container.name}/${state.attempt}` }),
    state: shownState,
    lastState: last === undefined ? {} : { terminated: last },
  };
}

/** How the run before has ended. */
function pastOf(state: ContainerState | undefined, before: ContainerStatus | undefined) {
  if (state === undefined) return before?.state?.terminated ?? before?.lastState?.terminated;
  return state.previous === undefined ? undefined : terminated(state.previous);
}

function containerStateOf(
  { pod, containers, now }: PodContainers,
  { startError, isEnded }: PodFacts,
  container: Container,
): NonNullable<ContainerStatus["state"]> {
  const state = containers.get(container.name);
  const before = statusBefore(pod, container.name);
  if (state === undefined) {
    if (startError?.container === container.name) {
      return { waiting: { reason: startError.reason, message: startError.message } };
    }
    const waited = before?.state?.waiting;
    if (waited !== undefined && startErrors.includes(waited.reason ?? "")) return { waiting: waited };
    const isInitPending = (pod.spec?.initContainers ?? []).length > 0 && pod.status?.phase !== "Running";
    return { waiting: { reason: isInitPending ? "PodInitializing" : "ContainerCreating" } };
  }
  if (state.kind === "running") {
    if (isEnded === true) return { terminated: lostEnd(state, now) };
    return { running: { startedAt: apiTime(new Date(state.startedAt)) } };
  }
  const isPausing =
    isEnded !== true && !hasEndedForGood(pod, container, state) && restartPauseMs(state, now) > 0;
  if (!isPausing) return { terminated: terminated(state) };
  const message = `back-off restarting container ${container.name} of pod ${pod.metadata.name}`;
  return { waiting: { reason: "CrashLoopBackOff", message } };
}

function statusBefore({ status }: Pod, name: string): ContainerStatus | undefined {
  const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return all.find((one) => one.name === name);
}

function terminated({ exitCode, startedAt, finishedAt, message }: EndedContainer) {
  return {
    exitCode,
    reason: exitCode === 0 ? "Completed" : "Error",
    startedAt: apiTime(new Date(startedAt)),
    finishedAt: apiTime(new Date(finishedAt)),
    ...(message === undefined ? {} : { message }),
  };
}

/** The end of a container that left no record of it. */
function lostEnd({ startedAt }: ContainerState, now: Date) {
  return {
    exitCode: 137,
    reason: "ContainerStatusUnknown",
    startedAt: apiTime(new Date(startedAt)),
    finishedAt: apiTime(now),
  };
}

function condition(before: PodStatus | undefined, type: string, holds: boolean, now: string): PodCondition {
  const status = holds ? "True" : "False";
  const was = before?.conditions?.find((c) => c.type === type);
  const lastTransitionTime = was?.status === status ? (was.lastTransitionTime ?? now) : now;
  return { type, status, lastTransitionTime };
}
