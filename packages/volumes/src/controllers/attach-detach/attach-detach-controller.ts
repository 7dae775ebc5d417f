/**
 * The attach/detach controller: attaches what scheduled pods need to their nodes and detaches what
 * no pod needs, in-tree or by CSI. Source: docs/behaviour/controllers.md Part A.
 *
 *     object changes ──► dirty pods ──► desired state ──────────┐
 *     operation ends, deadlines ────────────────────────────────┼──► pass: detach, attach, report
 *     node statuses, VolumeAttachments (at start) ──► actual ───┘
 *
 * Invariants
 *  - Event-driven: without a change, an ended operation or a due deadline nothing runs.
 *  - Passes never overlap; whatever is in flight may be dropped, and is found again at the next start.
 *  - It keeps only state that it can read again from API objects and plugins.
 */
import {
  createEventRecorder,
  type KubeEnv,
  keyOf,
  type Node,
  type OwnWrites,
  type Pod,
  type SharedInformers,
  type Stored,
  sharedInformers,
  trackWrites,
} from "@longshore/kube";
import {
  abortable,
  backoffMs,
  type Component,
  errorChain,
  type FeatureGates,
  TaskGroup,
  type Timer,
} from "@longshore/runtime";
import { gateDependencyWarnings, withForcedMigration } from "../../csimigration/gates.ts";
import {
  createMigratedPluginManager,
  withoutCompletedPlugins,
} from "../../csimigration/migrated-plugin-manager.ts";
import { createOperationExecutor, operationBackoff } from "../../framework/operations.ts";
import type { VolumePlugin } from "../../framework/plugin.ts";
import { createVolumePluginManager } from "../../framework/plugin-manager.ts";
import { ActualState, type Attachment } from "./actual-state.ts";
import { attachDetachPass } from "./attach-detach-pass.ts";
import { startCaches } from "./caches.ts";
import {
  type AttachDetachCaches,
  type AttachDetachContext,
  cacheIndexes,
  keepTerminatedAnnotation,
  managedNodeAnnotation,
} from "./context.ts";
import { DesiredState, type PodWish } from "./desired-state.ts";
import { statusMatchesReport } from "./node-status-writer.ts";
import { operationTimeoutMs } from "./operations.ts";
import { isPodTerminated } from "./pod-volume-spec.ts";
import { podWishes } from "./pod-wishes.ts";
import { expectListing, recoverUnreported } from "./recover-unreported.ts";
import { recoverActualState } from "./recovery.ts";
import { verifyAttached } from "./verify-attached.ts";
import { identitiesOfVolume, identityOfName, inTreePluginOfIdentity } from "./volume-identity.ts";

/** The seams of the controller. */
export type AttachDetachEnv = KubeEnv & {
  /** The volume plugins, not initialised; those of clouds are bound to this controller as their caller. */
  readonly plugins: readonly VolumePlugin[];
  /** Caches shared with other controllers of the process; its own when left out. */
  readonly informers?: SharedInformers;
};

/** How the controller runs. */
export interface AttachDetachOptions {
  /** The controller manager's gates. */
  readonly gates: FeatureGates;
  /** Do what Kubernetes 1.20 is recorded to do where ours deliberately differs. */
  readonly compat?: "kubernetes-1.20" | undefined;
  /** OpenShift mode: migration of these in-tree plugins counts as on in this controller, so the node decides. */
  readonly forceMigrationOf?: readonly string[] | undefined;
  /** Detach by force after six minutes without a confirmed unmount; default: only with `compat`. */
  readonly forceDetachOnTimeout?: boolean | undefined;
  /** Period of asking whether attachments still exist, in milliseconds; 0: never. Default 60 s. */
  readonly verifyPeriodMs?: number | undefined;
}

/** Six minutes, and one pass. */
const forceDetachAfterMs = 360_000;
const defaultVerifyPeriodMs = 60_000;
/** Changes within this time are served by one pass, in milliseconds. */
const coalesceMs = 10;
/** Pods are looked at by this many at a time. */
const parallelPods = 16;

/** Starts the controller; it works in the background until it is stopped. */
export function startAttachDetachController(env: AttachDetachEnv, options: AttachDetachOptions): Component {
  const controller = new AttachDetachController(env, options);
  controller.start();
  return controller;
}

class AttachDetachController implements Component {
  readonly #env: AttachDetachEnv & { readonly ownWrites: OwnWrites };
  readonly #options: AttachDetachOptions;
  readonly #tasks: TaskGroup;
  readonly #informers: SharedInformers;
  readonly #caches: AttachDetachCaches;
  readonly #unsubscribe: (() => void)[] = [];
  readonly #cleanup: Component[] = [];
  /** Pods to look at in the next pass. */
  readonly #dirtyPods = new Set<string>();
  /** Changes of each node's CSINode since the start. */
  readonly #csiNodeVersions = new Map<string, number>();
  /** Disks detached from a node since a pod there was last decided. */
  readonly #detached = new Set<string>();
  readonly #podRetries = new Map<string, { failures: number; timer: Timer }>();
  #wakeTimer: Timer | undefined;
  #wakeAtMs = Number.POSITIVE_INFINITY;
  #resolveWake: (() => void) | undefined;

  constructor(env: AttachDetachEnv, options: AttachDetachOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) => env.logger.error("attach/detach controller failed", { error }));
    this.#informers = env.informers ?? sharedInformers(env);
    this.#env = trackWrites(env, this.#informers);
    if (env.informers === undefined) this.#cleanup.push(this.#informers);
    this.#caches = startCaches(this.#informers);
  }

  start(): void {
    for (const warning of gateDependencyWarnings(this.#options.gates)) this.#env.logger.warn(warning);
    this.#tasks.spawn((signal) => this.#run(signal));
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#wakeTimer?.cancel();
    for (const { timer } of this.#podRetries.values()) timer.cancel();
    await this.#tasks.stop();
    for (const component of this.#cleanup.reverse()) await component.stop();
  }

  async #run(signal: AbortSignal): Promise<void> {
    await Promise.all(Object.values(this.#caches).map((cache) => cache.synced(signal)));
    const context = await this.#createContext();
    recoverActualState(context);
    this.#subscribe(context);
    // CSI must not take a disk that the in-tree code has attached; what else there is to do does not wait.
    expectListing(context);
    this.#tasks.spawn((within) => this.#findUnreported(context, within));
    const verifyPeriodMs = this.#options.verifyPeriodMs ?? defaultVerifyPeriodMs;
    let verifyAtMs = this.#env.clock.monotonicMs() + verifyPeriodMs;
    let failures = 0;
    for (;;) {
      try {
        await this.#env.ownWrites.seen(signal);
        await this.#decidePods(context, signal);
        await attachDetachPass(context, signal);
        if (verifyPeriodMs > 0 && context.actual.size > 0) {
          if (this.#env.clock.monotonicMs() >= verifyAtMs) {
            await verifyAttached(context, signal);
            verifyAtMs = this.#env.clock.monotonicMs() + verifyPeriodMs;
          }
          this.#wakeIn(verifyAtMs - this.#env.clock.monotonicMs());
        }
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        failures++;
        this.#env.logger.error("attach/detach pass failed", { error: errorChain(error) });
        this.#wakeIn(backoffMs(operationBackoff, failures));
      }
      await this.#nextWake(signal);
    }
  }

  /** Until the providers have answered, and once more when every call of an earlier controller has ended. */
  async #findUnreported(context: AttachDetachContext, signal: AbortSignal): Promise<void> {
    for (let failures = 1; !(await recoverUnreported(context, signal)); failures++) {
      this.#wake();
      await this.#env.clock.sleep(backoffMs(operationBackoff, failures), signal);
    }
    this.#wake();
    await this.#env.clock.sleep(operationTimeoutMs, signal);
    await recoverUnreported(context, signal);
    this.#wake();
  }

  async #createContext(): Promise<AttachDetachContext> {
    const { gates, compat, forceMigrationOf, forceDetachOnTimeout } = this.#options;
    const env = this.#env;
    const migration = createMigratedPluginManager(
      forceMigrationOf === undefined ? gates : withForcedMigration(gates, forceMigrationOf),
    );
    const plugins = await createVolumePluginManager(
      {
        clock: env.clock,
        random: env.random,
        logger: env.logger,
        meter: env.meter,
        kube: env.kube,
        csiDriver: async (name) => this.#caches.csiDrivers.get(name),
        attachDetach: {
          csiNode: (name) => this.#caches.csiNodes.get(name),
          volumeAttachment: (name) => this.#caches.attachments.get(name),
        },
      },
      withoutCompletedPlugins(env.plugins, migration),
    );
    const executor = createOperationExecutor(env, {
      onEnd: ({ error, key, operationName, retryInMs }) => {
        if (error !== undefined) {
          env.logger.warn(`${operationName} failed`, {
            volume: key.volumeName,
            retryInMs,
            error: errorChain(error),
          });
          this.#wakeIn(retryInMs);
        }
        this.#wake();
      },
    });
    const events = createEventRecorder(env, { component: "attachdetach-controller" });
    this.#cleanup.push(events, executor);
    this.#caches.volumes.addIndex(cacheIndexes.volumesByIdentity, (pv) => identitiesOfVolume(migration, pv));
    const forced = forceDetachOnTimeout ?? compat !== undefined;
    return {
      env,
      settings: {
        compat: compat !== undefined,
        forceDetachAfterMs: forced ? forceDetachAfterMs : undefined,
      },
      caches: this.#caches,
      plugins,
      migration,
      desired: new DesiredState(),
      actual: new ActualState(),
      executor,
      events,
      unlisted: new Map(),
      identityOfName: (name) => identityOfName(migration, name),
      ownersOf: ({ identity }) => {
        const volumes = this.#caches.volumes.byIndex(cacheIndexes.volumesByIdentity, identity);
        return {
          pvNames: volumes.map((pv) => pv.metadata.name),
          claims: volumes.flatMap(({ spec }) =>
            spec?.claimRef == null
              ? []
              : [{ namespace: spec.claimRef.namespace ?? "", name: spec.claimRef.name ?? "" }],
          ),
          inTreePlugin: inTreePluginOfIdentity(identity),
        };
      },
      wake: () => this.#wake(),
      wakeIn: (ms) => this.#wakeIn(ms),
      onDetached: (attachment) => this.#onDetached(attachment),
    };
  }

  /** Decides every dirty pod and replaces its part of the desired state. */
  async #decidePods(context: AttachDetachContext, signal: AbortSignal): Promise<void> {
    const keys = [...this.#dirtyPods];
    this.#dirtyPods.clear();
    const settledDisks = [...this.#detached];
    const worker = async (): Promise<void> => {
      for (let key = keys.pop(); key !== undefined; key = keys.pop()) {
        await this.#decidePod(context, key, signal);
      }
    };
    await Promise.all(Array.from({ length: Math.min(parallelPods, keys.length) }, worker));
    for (const disk of settledDisks) this.#detached.delete(disk);
  }

  async #decidePod(context: AttachDetachContext, key: string, signal: AbortSignal): Promise<void> {
    const pod = this.#caches.pods.get(key);
    const nodeName = pod?.spec?.nodeName;
    this.#forgetRetry(key, pod === undefined);
    if (pod === undefined || nodeName === undefined || !this.#counts(context, key, pod, nodeName)) {
      context.desired.setPod(key, undefined);
      return;
    }
    const known = context.desired.pod(key);
    const before =
      known?.pod.metadata.uid === pod.metadata.uid && known.nodeName === nodeName ? known : undefined;
    const csiNodeVersion = this.#csiNodeVersions.get(nodeName) ?? 0;
    try {
      const wishes = await podWishes(
        context,
        pod,
        nodeName,
        { before, csiNodeVersion, wasDetached: (identity) => this.#detached.has(diskOn(nodeName, identity)) },
        signal,
      );
      context.desired.setPod(key, wishes);
      for (const wish of wishes.wishes) takeSpec(context, nodeName, wish);
      if (wishes.wishes.some((wish) => wish.kind === "undecided")) this.#retryPod(key);
    } catch (error) {
      if (signal.aborted) throw error;
      this.#env.logger.error("pod not looked at", { pod: key, error: errorChain(error) });
      this.#retryPod(key);
    }
  }

  /** Whether this controller attaches the pod's volumes. A node that vanished keeps its desired volumes. */
  #counts(context: AttachDetachContext, key: string, pod: Stored<Pod>, nodeName: string): boolean {
    const node = this.#caches.nodes.get(nodeName);
    const annotations = node?.metadata.annotations;
    if (isPodTerminated(pod) && annotations?.[keepTerminatedAnnotation] !== "true") return false;
    if (node !== undefined) return annotations?.[managedNodeAnnotation] !== undefined;
    return context.desired.pod(key) !== undefined || context.actual.on(nodeName).length > 0;
  }

  #subscribe(context: AttachDetachContext): void {
    const { pods, nodes, claims, volumes, csiNodes, csiDrivers, attachments } = this.#caches;
    const onAny = (told: (object: never) => void) => ({
      added: told,
      updated: (_before: never, after: never) => told(after),
      deleted: told,
    });
    this.#unsubscribe.push(
      pods.onChange(onAny((pod: Stored<Pod>) => this.#dirty(keyOf(pod)))),
      nodes.onChange({
        added: (node) => this.#onNode(context, undefined, node),
        updated: (before, after) => this.#onNode(context, before, after),
        deleted: () => this.#wake(),
      }),
      claims.onChange(onAny((claim: Stored) => this.#dirtyClaim(keyOf(claim)))),
      volumes.onChange({
        added: (pv) => this.#dirtyClaimOf(pv),
        updated: (before, after) => {
          if (before.spec?.claimRef?.uid !== after.spec?.claimRef?.uid) this.#dirtyClaimOf(before);
          this.#dirtyClaimOf(after);
        },
        deleted: (pv) => this.#dirtyClaimOf(pv),
      }),
      csiNodes.onChange(onAny((csiNode: Stored) => this.#onCsiNode(csiNode.metadata.name))),
      csiDrivers.onChange(
        onAny(() => {
          for (const pod of this.#caches.pods.list()) this.#dirty(keyOf(pod));
        }),
      ),
      attachments.onChange({ deleted: ({ spec }) => this.#dirtyUndecided(context, spec.nodeName) }),
    );
  }

  #onNode(context: AttachDetachContext, before: Stored<Node> | undefined, after: Stored<Node>): void {
    const name = after.metadata.name;
    const managed = (node: Stored<Node> | undefined) =>
      `${node?.metadata.annotations?.[managedNodeAnnotation] !== undefined} ${node?.metadata.annotations?.[keepTerminatedAnnotation]}`;
    if (before === undefined || managed(before) !== managed(after)) this.#dirtyNode(name);
    // Also restores what another writer of the status, or a node object that was recreated, has lost.
    if (!statusMatchesReport(after, context.actual)) context.actual.markDirty(name);
    this.#wake();
  }

  #onCsiNode(nodeName: string): void {
    this.#csiNodeVersions.set(nodeName, (this.#csiNodeVersions.get(nodeName) ?? 0) + 1);
    this.#dirtyNode(nodeName);
  }

  #onDetached(attachment: Attachment): void {
    this.#detached.add(diskOn(attachment.nodeName, attachment.identity));
    this.#dirtyNode(attachment.nodeName);
    this.#wake();
  }

  #dirty(podKey: string): void {
    this.#dirtyPods.add(podKey);
    this.#wake();
  }

  #dirtyNode(nodeName: string): void {
    for (const pod of this.#caches.pods.byIndex(cacheIndexes.podsByNode, nodeName)) this.#dirty(keyOf(pod));
  }

  #dirtyClaim(claimKey: string): void {
    for (const pod of this.#caches.pods.byIndex(cacheIndexes.podsByClaim, claimKey)) this.#dirty(keyOf(pod));
  }

  #dirtyClaimOf(pv: { readonly spec?: { readonly claimRef?: { namespace?: string; name?: string } } }): void {
    const claim = pv.spec?.claimRef;
    if (claim != null) this.#dirtyClaim(`${claim.namespace}/${claim.name}`);
  }

  #dirtyUndecided(context: AttachDetachContext, nodeName: string): void {
    for (const key of context.desired.podsOn(nodeName)) {
      if (context.desired.pod(key)?.wishes.some((wish) => wish.kind === "undecided")) this.#dirty(key);
    }
  }

  /** Looks at the pod again after its own growing delay; whatever it waits for wakes it before. */
  #retryPod(key: string): void {
    const failures = (this.#podRetries.get(key)?.failures ?? 0) + 1;
    const timer = this.#env.clock.timer(backoffMs(operationBackoff, failures), () => this.#dirty(key));
    this.#podRetries.set(key, { failures, timer });
  }

  #forgetRetry(key: string, gone: boolean): void {
    this.#podRetries.get(key)?.timer.cancel();
    if (gone) this.#podRetries.delete(key);
  }

  #wake(): void {
    this.#wakeIn(coalesceMs);
  }

  #wakeIn(ms: number): void {
    if (this.#tasks.signal.aborted) return;
    const atMs = this.#env.clock.monotonicMs() + Math.max(ms, coalesceMs);
    if (atMs >= this.#wakeAtMs) return;
    this.#wakeTimer?.cancel();
    this.#wakeAtMs = atMs;
    this.#wakeTimer = this.#env.clock.timer(Math.max(ms, coalesceMs), () => {
      this.#wakeAtMs = 0; // Due: nothing has to be set until the pass has taken it.
      this.#resolveWake?.();
    });
  }

  async #nextWake(signal: AbortSignal): Promise<void> {
    if (this.#wakeAtMs !== 0) {
      const woken = new Promise<void>((resolve) => {
        this.#resolveWake = resolve;
      });
      await abortable(woken, signal);
    }
    this.#wakeAtMs = Number.POSITIVE_INFINITY;
  }
}

/** A recovered attachment gets the spec that a pod brings. */
function takeSpec(context: AttachDetachContext, nodeName: string, wish: PodWish): void {
  if (wish.kind !== "wanted") return;
  const attachment = context.actual.get(nodeName, wish.uniqueName);
  if (attachment !== undefined) attachment.spec ??= wish.spec;
}

function diskOn(nodeName: string, identity: string): string {
  return `${nodeName}\n${identity}`;
}
