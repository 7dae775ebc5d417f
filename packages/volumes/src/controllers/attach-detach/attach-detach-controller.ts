/**
 * The attach/detach controller: attaches what scheduled pods need to their nodes and detaches what
 * no pod needs, in-tree or by CSI. Source: docs/behaviour/controllers.md Part A.
 *
 *     pods, claims, PVs, CSINodes ──► pod: what does it want attached? ──► desired state ──┐
 *     Nodes, VolumeAttachments, ends of calls ─────────────────────────► disk: attach, detach ──► actual state
 *     Nodes ───────────────────────────────► node: list and record ◄───────────────────────┘
 *
 * Three controllers, each observe, decide, act: of pods, of disks and of node statuses. They share what pods want
 * (DesiredState), what is attached (ActualState) and what is under way (DiskOperations).
 *
 * Invariants
 *  - Event-driven: without a change, an ended operation or a due deadline nothing runs. An event costs in proportion to
 *    what it touches.
 *  - What a pod wants is written by passes over that pod alone, what is known of a disk by passes over that disk, a Node's
 *    status by passes over that node: no two workers are in each other's way.
 *  - Nothing is detached from a node before all caches have synced and every pod there is decided.
 *  - It keeps only state that it can read again from API objects and plugins; whatever is in flight may be dropped, and is
 *    found again at the next start.
 */
import {
  type Controller,
  type ControllerEnv,
  createEventRecorder,
  type KubeEnv,
  keyOf,
  type OwnWrites,
  type Priority,
  type SharedInformers,
  sharedInformers,
  trackWrites,
} from "@longshore/kube";
import { abortable, backoffMs, type Component, type FeatureGates, TaskGroup } from "@longshore/runtime";
import { inTreeNameKeysOf, keyOfInTreeName } from "../../csimigration/in-tree-name-key.ts";
import {
  createMigratedPluginManager,
  type MigratedPluginManager,
  registeredInTreePlugins,
} from "../../csimigration/migrated-plugin-manager.ts";
import { gateDependencyWarnings, withForcedMigration } from "../../csimigration/volume-gates.ts";
import type { DynamicPluginProber } from "../../framework/dynamic-plugin-prober.ts";
import { operationBackoff } from "../../framework/operation-backoff.ts";
import type { UniqueVolumeName } from "../../framework/unique-volume-name.ts";
import type { VolumePlugin } from "../../framework/volume-plugin.ts";
import {
  createVolumePluginManager,
  type VolumePluginManager,
} from "../../framework/volume-plugin-manager.ts";
import { CountedGauge } from "../../metrics/counted-gauge.ts";
import { CountedVolumes } from "../../metrics/counted-volumes.ts";
import { storageOperations } from "../../metrics/storage-operations.ts";
import { volumePluginLabelOfName } from "../../metrics/volume-plugin-label.ts";
import { ActualState } from "./actual-state.ts";
import {
  type AttachDetachCaches,
  type AttachDetachContext,
  cacheIndexes,
  wakeUnwanted,
} from "./attach-detach-context.ts";
import { startCaches } from "./caches.ts";
import { DesiredState } from "./desired-state.ts";
import type { VolumeOwners } from "./detach-guards.ts";
import { DiskOperations } from "./disk-operations.ts";
import { operationTimeoutMs } from "./disks/attach-in-tree.ts";
import { startDiskController } from "./disks/start-disk-controller.ts";
import { MissingNodes } from "./missing-nodes.ts";
import { startNodeStatusController } from "./nodes/start-node-status-controller.ts";
import { PendingPods } from "./pending-pods.ts";
import { startPodController } from "./pods/start-pod-controller.ts";
import { recoverActualState } from "./recover-actual-state.ts";
import { expectListing, recoverUnreported } from "./recover-unreported.ts";
import { verifyAttached } from "./verify-attached.ts";
import {
  identitiesOfVolume,
  identityOfName,
  inTreePluginOfIdentity,
  type VolumeIdentity,
} from "./volume-identity.ts";

/** The seams of the controller. */
export interface AttachDetachEnv extends ControllerEnv {
  /** The volume plugins, not initialised; those of clouds are bound to this controller as their caller. */
  readonly plugins: readonly VolumePlugin[];
  /** Finds plugins that come and go; it is this controller's alone, and stopped with it. */
  readonly prober?: DynamicPluginProber;
}

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

/** Longest wait for a confirmed unmount, where that is limited, in milliseconds. */
const forceDetachAfterMs = 360_000;
const defaultVerifyPeriodMs = 60_000;

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
  readonly #cleanup: Component[] = [];
  #controllers:
    | { readonly pods: Controller; readonly disks: Controller; readonly nodes: Controller }
    | undefined;

  constructor(env: AttachDetachEnv, options: AttachDetachOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) => env.logger.error("attach/detach controller failed", { error }));
    this.#informers = env.informers ?? sharedInformers(env);
    this.#env = trackWrites(env, this.#informers);
    if (env.informers === undefined) this.#cleanup.push(this.#informers);
    if (env.prober !== undefined) this.#cleanup.push(env.prober);
    this.#caches = startCaches(this.#informers);
  }

  start(): void {
    for (const warning of gateDependencyWarnings(this.#options.gates)) this.#env.logger.warn(warning);
    this.#tasks.spawn((signal) => this.#run(signal));
  }

  async stop(): Promise<void> {
    const { pods, disks, nodes } = this.#controllers ?? {};
    // First: their passes start the tasks that are stopped next.
    await Promise.all([pods?.stop(), disks?.stop(), nodes?.stop()]);
    await this.#tasks.stop();
    for (const component of this.#cleanup.reverse()) await component.stop();
  }

  async #run(signal: AbortSignal): Promise<void> {
    await Promise.all(Object.values(this.#caches).map((cache) => cache.synced(signal)));
    const context = await this.#createContext();
    if (signal.aborted) return;
    this.#begin(context);
    this.#tasks.spawn((within) => this.#findUnreported(context, within));
    const verifyPeriodMs = this.#options.verifyPeriodMs ?? defaultVerifyPeriodMs;
    if (verifyPeriodMs > 0) this.#tasks.spawn((within) => this.#verify(context, verifyPeriodMs, within));
  }

  /** In one go, so that nothing is decided before it is known what is attached, and which pods are not decided yet. */
  #begin(context: AttachDetachContext): void {
    recoverActualState(context);
    // CSI must not take a disk that the in-tree code has attached; what else there is to do does not wait.
    expectListing(context);
    const env = this.#env;
    // Before any disk is decided: what no decided pod wants would be detached.
    for (const pod of this.#caches.pods.list()) context.wakePod(keyOf(pod), "background");
    const pods = startPodController(env, context);
    const disks = startDiskController(env, context);
    const nodes = startNodeStatusController(env, context);
    this.#controllers = { pods, disks, nodes };
    // One that is deleted before the pods are followed would stay pending.
    for (const pod of this.#caches.pods.list()) pods.wake(keyOf(pod), "background");
    // Behind every change: what pods wait for must not queue behind all attachments of the cluster. Where pods are not
    // decided yet, the decision on the last of them wakes what is to be done.
    for (const { identity, nodeName } of context.actual.all()) {
      if (!context.pending.on(nodeName)) disks.wake(identity, "background");
    }
  }

  /** Until the providers have answered, and once more when every call of an earlier controller has ended. */
  async #findUnreported(context: AttachDetachContext, signal: AbortSignal): Promise<void> {
    for (let failures = 1; !(await recoverUnreported(context, signal)); failures++) {
      await this.#env.clock.sleep(backoffMs(operationBackoff, failures), signal);
    }
    await this.#env.clock.sleep(operationTimeoutMs, signal);
    await recoverUnreported(context, signal);
  }

  async #verify(context: AttachDetachContext, periodMs: number, signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#env.clock.sleep(periodMs, signal);
      await verifyAttached(context, signal);
    }
  }

  async #createContext(): Promise<AttachDetachContext> {
    const { gates, compat, forceMigrationOf, forceDetachOnTimeout } = this.#options;
    const env = this.#env;
    const migration = createMigratedPluginManager(
      forceMigrationOf === undefined ? gates : withForcedMigration(gates, forceMigrationOf),
    );
    const events = createEventRecorder(env, { component: "attachdetach-controller" });
    this.#cleanup.push(events);
    this.#caches.volumes.addIndex(cacheIndexes.volumesByIdentity, (pv) => identitiesOfVolume(migration, pv));
    this.#caches.volumes.addIndex(cacheIndexes.volumesByInTreeName, inTreeNameKeysOf);
    const counted = new CountedVolumes(env.meter, "attachdetach_controller_total_volumes");
    const inUse = new CountedGauge(env.meter, "storage_count_attachable_volumes_in_use", {
      help: "Number of attachable volumes that pods of a node want",
      labels: ["node", "volume_plugin"],
    });
    for (const gauge of [counted, inUse]) this.#cleanup.push({ stop: async () => gauge.clear() });
    const isForced = forceDetachOnTimeout ?? compat !== undefined;
    const context: AttachDetachContext = {
      env,
      settings: {
        compat: compat !== undefined,
        forceDetachAfterMs: isForced ? forceDetachAfterMs : undefined,
      },
      caches: this.#caches,
      plugins: await this.#createPlugins(migration),
      migration,
      desired: new DesiredState(counted, inUse),
      actual: new ActualState((name) => this.#controllers?.nodes.wake(name), counted),
      operations: measuredOperations(env),
      pending: new PendingPods(),
      events,
      unlisted: new Map(),
      listedOnMissing: new Map(),
      missingNodes: new MissingNodes(env.clock),
      csiNodeVersions: new Map(),
      identityOfName: (name) => identityAmong(this.#caches, migration, name),
      ownersOf: ({ identity }) => ownersOf(this.#caches, identity),
      wakePod: (key, priority) => this.#wakePod(context, key, priority),
      wakeDisk: (identity) => this.#controllers?.disks.wake(identity),
      inBackground: (work) => this.#tasks.spawn(work),
    };
    return context;
  }

  async #createPlugins(migration: MigratedPluginManager): Promise<VolumePluginManager> {
    const { clock, random, logger, meter, kube, plugins, prober } = this.#env;
    const host = {
      clock,
      random,
      logger,
      meter,
      kube,
      csiDriver: async (name: string) => this.#caches.csiDrivers.get(name),
      attachDetach: {
        csiNode: (name: string) => this.#caches.csiNodes.get(name),
        volumeAttachment: (name: string) => this.#caches.attachments.get(name),
      },
    };
    const creating = createVolumePluginManager(host, registeredInTreePlugins(plugins, migration), prober);
    return abortable(creating, this.#tasks.signal);
  }

  /** The pod is pending until it is decided; its end may be what a detach has waited for. */
  #wakePod(context: AttachDetachContext, key: string, priority?: Priority): void {
    const freed = context.pending.mark(key, this.#caches.pods.get(key)?.spec?.nodeName);
    if (freed !== undefined) wakeUnwanted(context, freed);
    this.#controllers?.pods.wake(key, priority);
  }
}

/** The identity behind a unique name: that of the PVs of its disk, which know more of it (GCE's zone) or spell it in another way. */
function identityAmong(
  { volumes }: AttachDetachCaches,
  migration: MigratedPluginManager,
  uniqueName: UniqueVolumeName,
): VolumeIdentity {
  const named = identityOfName(migration, uniqueName);
  const key = keyOfInTreeName(uniqueName);
  if (key === undefined) return named;
  const owners = volumes.byIndex(cacheIndexes.volumesByInTreeName, key);
  const known = new Set(owners.flatMap((pv) => identitiesOfVolume(migration, pv)));
  const [only] = known;
  return known.size === 1 && only !== undefined ? only : named;
}

/** Attaches and detaches from their start to their end, waits for the attacher of a driver included. */
function measuredOperations(env: KubeEnv): DiskOperations {
  const measured = storageOperations(env);
  return new DiskOperations(({ kind, uniqueName, isMigrated, startedAtMs }, isDone) => {
    const volume = { plugin: volumePluginLabelOfName(uniqueName), isMigrated };
    measured.ended(`volume_${kind}`, volume, startedAtMs, isDone ? "success" : "fail-unknown");
  });
}

/** The PVs of a disk and their claims. */
function ownersOf({ volumes }: AttachDetachCaches, identity: VolumeIdentity): VolumeOwners {
  const owners = volumes.byIndex(cacheIndexes.volumesByIdentity, identity);
  return {
    pvNames: owners.map((pv) => pv.metadata.name),
    claims: owners.flatMap(({ spec }) =>
      spec?.claimRef == null
        ? []
        : [{ namespace: spec.claimRef.namespace ?? "", name: spec.claimRef.name ?? "" }],
    ),
    inTreePlugin: inTreePluginOfIdentity(identity),
  };
}
