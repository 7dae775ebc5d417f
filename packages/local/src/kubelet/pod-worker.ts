/**
 * Brings one pod to the state that its object asks for: volumes mounted, container running, status
 * reported; or all of it taken back, and then the object deleted.
 */
import {
  type EventRecorder,
  type Informer,
  isConflict,
  isDeleting,
  isNotFound,
  type KubeClient,
  type Pod,
  type ReconcileResult,
  refOf,
  resources,
  type Stored,
  settled,
} from "@longshore/kube";
import { backoffMs, type RuntimeEnv, StoppedError, withAnyOf, withDeadline } from "@longshore/runtime";
import type { NodeVolumes } from "@longshore/volumes";
import type { PodRuntime, PodState } from "../containers/pod-runtime.ts";
import { sandboxOf } from "./pod-sandbox.ts";
import { podStatusOf, restarts } from "./pod-status.ts";

type WorkerEnv = RuntimeEnv & { readonly kube: KubeClient; readonly runtime: PodRuntime };

interface WorkerParts {
  readonly volumes: NodeVolumes;
  readonly events: EventRecorder;
  readonly pods: Informer<Pod>;
  readonly logDir: string;
}

const mountWaitMs = 20_000;
const runningCheckMs = 1000;
const goneCheckMs = 500;
const restartBackoff = { initialMs: 1000, maximumMs: 60_000 };

/** Reconciles the pods of one node, by UID. */
export class PodWorker {
  readonly #env: WorkerEnv;
  readonly #parts: WorkerParts;
  readonly #waits = new Map<string, AbortController>();
  readonly #restarts = new Map<string, number>();
  /** Monotonic time before which a pod that has ended is not started again. */
  readonly #restartAtMs = new Map<string, number>();

  constructor(env: WorkerEnv, parts: WorkerParts) {
    this.#env = env;
    this.#parts = parts;
  }

  /** Ends a wait for the pod's volumes, because the pod's object has changed. */
  interrupt(podUID: string): void {
    const pod = this.#pod(podUID);
    if (pod === undefined || isDeleting(pod)) this.#waits.get(podUID)?.abort(new StoppedError());
  }

  /** Pods whose deletion waits for their volumes. */
  podsEnding(): string[] {
    return this.#parts.pods
      .list()
      .filter(isDeleting)
      .map((pod) => pod.metadata.uid);
  }

  async reconcile(podUID: string, signal: AbortSignal): Promise<ReconcileResult> {
    const pod = this.#pod(podUID);
    if (pod === undefined) {
      this.#restarts.delete(podUID);
      this.#restartAtMs.delete(podUID);
      await this.#env.runtime.terminate(podUID, 0, signal);
      return settled;
    }
    return isDeleting(pod) || hasEnded(pod) ? this.#end(pod, signal) : this.#run(pod, signal);
  }

  #pod(podUID: string): Stored<Pod> | undefined {
    return this.#parts.pods.list().find((pod) => pod.metadata.uid === podUID);
  }

  async #run(pod: Stored<Pod>, signal: AbortSignal): Promise<ReconcileResult> {
    const { runtime } = this.#env;
    const podUID = pod.metadata.uid;
    const state = await runtime.state(podUID, signal);
    if (state.kind === "running") {
      await this.#report(pod, state, signal);
      return { requeueAfterMs: runningCheckMs };
    }
    if (state.kind === "ended") {
      await this.#report(pod, state, signal);
      if (!restarts(pod, state.exitCode)) return settled;
      const count = this.#restartsOf(pod) + 1;
      this.#restarts.set(podUID, count);
      this.#restartAtMs.set(podUID, this.#env.clock.monotonicMs() + backoffMs(restartBackoff, count));
      await runtime.terminate(podUID, 0, signal);
      return { requeueAfterMs: 0 };
    }
    const pauseMs = (this.#restartAtMs.get(podUID) ?? 0) - this.#env.clock.monotonicMs();
    if (pauseMs > 0) {
      await this.#report(pod, state, signal);
      return { requeueAfterMs: pauseMs };
    }
    if (pod.status?.phase !== "Running") await this.#report(pod, state, signal);
    if (!(await this.#mounted(pod, signal))) return { requeueAfterMs: 0 };
    try {
      const sandbox = sandboxOf(pod, this.#parts.volumes.mountedVolumes(podUID), this.#parts.logDir);
      await runtime.ensureRunning(sandbox, signal);
    } catch (error) {
      this.#parts.events.event(pod, "Warning", "FailedCreatePodSandBox", messageOf(error));
      throw error;
    }
    this.#parts.events.event(pod, "Normal", "Started", `Started container ${pod.spec?.containers[0]?.name}`);
    await this.#report(pod, await runtime.state(podUID, signal), signal);
    return { requeueAfterMs: runningCheckMs };
  }

  /** Waits for the pod's volumes; false when the pod changed meanwhile and must be looked at again. */
  async #mounted(pod: Stored<Pod>, signal: AbortSignal): Promise<boolean> {
    const podUID = pod.metadata.uid;
    const controller = new AbortController();
    this.#waits.set(podUID, controller);
    try {
      await withAnyOf([signal, controller.signal], (either) =>
        withDeadline(this.#env.clock, mountWaitMs, either, (s) =>
          this.#parts.volumes.waitForAttachAndMount(pod, s),
        ),
      );
      return true;
    } catch (error) {
      signal.throwIfAborted();
      if (controller.signal.aborted) return false;
      this.#parts.events.event(pod, "Warning", "FailedMount", messageOf(error));
      throw error;
    } finally {
      this.#waits.delete(podUID);
    }
  }

  async #end(pod: Stored<Pod>, signal: AbortSignal): Promise<ReconcileResult> {
    const { runtime, kube } = this.#env;
    const podUID = pod.metadata.uid;
    const graceMs = 1000 * (pod.metadata.deletionGracePeriodSeconds ?? 0);
    const state = await runtime.state(podUID, signal);
    if (isDeleting(pod)) {
      await runtime.terminate(podUID, graceMs, signal);
      // Said before the volumes are waited for: it is what lets the volume manager take them down.
      await this.#report(
        pod,
        { kind: "ended", exitCode: state.kind === "ended" ? state.exitCode : 0 },
        signal,
      );
      if (!this.#parts.volumes.podVolumesGone(podUID)) return { requeueAfterMs: goneCheckMs };
      await kube
        .delete(resources.pods, refOf(pod), { uid: podUID, gracePeriodSeconds: 0, signal })
        .catch((error) => {
          if (!isConflict(error)) throw error; // A new pod of that name: ours is gone.
        });
      return settled;
    }
    // The pod's status was set to a final phase by another client: a running container would keep its volumes for ever.
    if (state.kind === "running") await runtime.terminate(podUID, graceMs, signal);
    return settled;
  }

  /** An agent that was itself restarted goes on counting from the pod's status. */
  #restartsOf(pod: Stored<Pod>): number {
    return this.#restarts.get(pod.metadata.uid) ?? pod.status?.containerStatuses?.[0]?.restartCount ?? 0;
  }

  async #report(pod: Stored<Pod>, state: PodState, signal: AbortSignal): Promise<void> {
    const status = podStatusOf(pod, {
      state,
      restarts: this.#restartsOf(pod),
      waitingReason: this.#restarts.has(pod.metadata.uid) ? "CrashLoopBackOff" : "ContainerCreating",
      now: this.#env.clock.now(),
    });
    if (sameFacts(pod.status, status)) return;
    await this.#env.kube
      .patch(
        resources.pods,
        refOf(pod),
        { type: "merge", body: { metadata: { uid: pod.metadata.uid }, status } },
        { subresource: "status", signal },
      )
      .catch((error) => {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      });
  }
}

function hasEnded(pod: Pod): boolean {
  return pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
}

function sameFacts(before: Pod["status"], after: Pod["status"]): boolean {
  const facts = (status: Pod["status"]) =>
    JSON.stringify([
      status?.phase,
      status?.conditions?.map((c) => [c.type, c.status]).sort(),
      status?.containerStatuses?.map((c) => [c.ready, c.restartCount, Object.keys(c.state ?? {})]),
    ]);
  return facts(before) === facts(after);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
