/**
 * The expand controller: grows volumes whose claim asks for more, in-tree, or names the external
 * resizer that is to do it. Source: docs/behaviour/controllers.md Part C.
 *
 * Invariants
 *  - The annotation `storage-resizer` names the only party that may expand.
 *  - Whether a volume is migrated is decided before any plugin is looked up.
 */
import {
  createEventRecorder,
  type EventRecorder,
  type Informer,
  type KubeEnv,
  keyOf,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type PersistentVolumeClaimCondition,
  parseQuantity,
  resources,
  type SharedInformers,
  type Stored,
  settled,
  sharedInformers,
  startWorkQueue,
  trackWrites,
} from "@longshore/kube";
import { type Component, errorChain, type FeatureGates, stopAll, TaskGroup } from "@longshore/runtime";
import {
  createMigratedPluginManager,
  type MigratedPluginManager,
  withoutCompletedPlugins,
} from "../../csimigration/migrated-plugin-manager.ts";
import type { ExpandableVolumePlugin, VolumePlugin } from "../../framework/plugin.ts";
import { createVolumePluginManager, type VolumePluginManager } from "../../framework/plugin-manager.ts";
import { specOfPersistentVolume, type VolumeSpec } from "../../framework/spec.ts";
import { mergedResizeConditions } from "./resize-conditions.ts";

/** On a claim: who expands its volume. */
export const storageResizerAnnotation = "volume.kubernetes.io/storage-resizer";

/** The seams of the controller. */
export type ExpandEnv = KubeEnv & {
  readonly plugins: readonly VolumePlugin[];
  readonly informers?: SharedInformers;
};

/** How the controller runs. */
export interface ExpandOptions {
  readonly gates: FeatureGates;
}

interface ExpandContext {
  readonly env: ExpandEnv;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly plugins: VolumePluginManager;
  readonly migration: MigratedPluginManager;
  readonly events: EventRecorder;
}

type Claim = Stored<PersistentVolumeClaim>;
type Volume = Stored<PersistentVolume>;

/** Starts the controller; it works in the background until it is stopped. */
export function startExpandController(given: ExpandEnv, options: ExpandOptions): Component {
  const tasks = new TaskGroup((error) => given.logger.error("expand controller failed", { error }));
  const parts: Component[] = [];
  const informers = given.informers ?? sharedInformers(given);
  if (given.informers === undefined) parts.push(informers);
  const env = trackWrites(given, informers);
  tasks.spawn(async (signal) => {
    const claims = informers.of(resources.persistentVolumeClaims);
    await claims.synced(signal);
    const migration = createMigratedPluginManager(options.gates);
    const { clock, random, logger, meter, kube } = env;
    const plugins = await createVolumePluginManager(
      {
        clock,
        random,
        logger,
        meter,
        kube,
        csiDriver: (name, within) => kube.get(resources.csiDrivers, { name }, { signal: within }),
      },
      withoutCompletedPlugins(env.plugins, migration),
    );
    const events = createEventRecorder(env, { component: "volume_expand" });
    const context: ExpandContext = { env, claims, plugins, migration, events };
    const queue = startWorkQueue(env, {
      name: "volume_expand",
      workers: 10,
      reconcileTimeoutMs: 120_000,
      reconcile: async (key, within) => {
        await expand(context, key, within);
        return settled;
      },
    });
    const add = (claim: Claim) => {
      if (wantsMore(claim)) queue.add(keyOf(claim));
    };
    const end = claims.onChange({
      added: add,
      updated: (before, after) => {
        if (requestOf(after).compare(requestOf(before)) > 0 || before.status?.phase !== after.status?.phase) {
          add(after);
        }
      },
    });
    parts.push(events, queue, { stop: async () => end() });
  });
  return {
    async stop() {
      await tasks.stop();
      await stopAll(parts);
    },
  };
}

/** Bound, and asking for more than it has. */
function wantsMore(claim: PersistentVolumeClaim): boolean {
  if (claim.status?.phase !== "Bound") return false;
  return requestOf(claim).compare(parseQuantity(claim.status.capacity?.storage ?? "0")) > 0;
}

async function expand(context: ExpandContext, key: string, signal: AbortSignal): Promise<void> {
  const claim = context.claims.get(key);
  if (claim === undefined || !wantsMore(claim)) return;
  const name = claim.spec?.volumeName ?? "";
  const volume = await context.env.kube.get(resources.persistentVolumes, { name }, { signal });
  if (volume === undefined) throw new Error(`claim ${key}: volume ${name} does not exist`);
  if (volume.spec?.claimRef?.uid !== claim.metadata.uid) {
    throw new Error(`claim ${key}: volume ${name} is not bound to it (claimRef differs)`);
  }
  const spec = specOfPersistentVolume(volume, false);
  if (context.migration.isMigratable(spec)) {
    await leaveToResizer(context, claim, context.migration.inTreePluginOf(spec) ?? "", signal);
    return;
  }
  const plugin = expandablePlugin(context, spec);
  if (typeof plugin === "string") {
    tell(context, claim, "Warning", "ExternalExpanding", plugin);
    return;
  }
  await expandInTree(context, claim, volume, spec, plugin, signal);
}

/** The plugin, or the message for the user. */
function expandablePlugin(context: ExpandContext, spec: VolumeSpec): ExpandableVolumePlugin | string {
  const ignoring =
    "Ignoring the PVC: didn't find a plugin capable of expanding the volume; " +
    "waiting for an external controller to process this PVC.";
  try {
    return context.plugins.findExpandablePluginBySpec(spec) ?? ignoring;
  } catch {
    return ignoring;
  }
}

async function leaveToResizer(
  context: ExpandContext,
  claim: Claim,
  inTreePlugin: string,
  signal: AbortSignal,
): Promise<void> {
  const message = `CSI migration enabled for ${inTreePlugin}; waiting for external resizer to expand the pvc`;
  tell(context, claim, "Normal", "ExternalExpanding", message);
  try {
    await annotate(context, claim, context.migration.csiNameOf(inTreePlugin) ?? "", undefined, signal);
  } catch (error) {
    const failed = `Error setting resizer annotation to pvc ${keyOf(claim)}, with error ${errorChain(error)}`;
    tell(context, claim, "Warning", "ExternalExpanding", failed);
    throw error;
  }
}

async function expandInTree(
  context: ExpandContext,
  claim: Claim,
  volume: Volume,
  spec: VolumeSpec,
  plugin: ExpandableVolumePlugin,
  signal: AbortSignal,
): Promise<void> {
  const { kube } = context.env;
  const now = context.env.clock
    .now()
    .toISOString()
    .replace(/\.\d+Z$/, "Z");
  const resizing = { type: "Resizing", status: "True", lastTransitionTime: now };
  const begun = await annotate(context, claim, plugin.pluginName, [resizing], signal);
  const wanted = requestOf(begun);
  const had = parseQuantity(volume.spec?.capacity?.storage ?? "0");
  let size = had;
  if (had.compare(wanted) < 0) {
    try {
      const bytes = await plugin.expandVolumeDevice(spec, wanted.toBytes(), had.toBytes(), signal);
      size = bytes === wanted.toBytes() ? wanted : parseQuantity(bytes.toString());
    } catch (error) {
      const message = `error expanding volume "${keyOf(claim)}" of plugin "${plugin.pluginName}": ${errorChain(error)}`;
      tell(context, claim, "Warning", "VolumeResizeFailed", message);
      throw error;
    }
    const body = { spec: { capacity: { storage: size.toString() } } };
    await kube.patch(
      resources.persistentVolumes,
      { name: volume.metadata.name },
      { type: "merge", body },
      { signal },
    );
  }
  const needsFileSystem = plugin.requiresFSResize() && volume.spec?.volumeMode !== "Block";
  const conditions: readonly PersistentVolumeClaimCondition[] = needsFileSystem
    ? [
        {
          type: "FileSystemResizePending",
          status: "True",
          lastTransitionTime: now,
          message: "Waiting for user to (re-)start a pod to finish file system resize of volume on node.",
        },
      ]
    : [];
  const status = {
    conditions: mergedResizeConditions(begun.status?.conditions ?? [], conditions),
    ...(needsFileSystem ? {} : { capacity: { ...begun.status?.capacity, storage: size.toString() } }),
  };
  const metadata = { resourceVersion: begun.metadata.resourceVersion };
  await kube.patch(
    resources.persistentVolumeClaims,
    { namespace: claim.metadata.namespace ?? "", name: claim.metadata.name },
    { type: "merge", body: { metadata, status } },
    { signal, subresource: "status" },
  );
  if (!needsFileSystem) {
    tell(
      context,
      claim,
      "Normal",
      "VolumeResizeSuccessful",
      `ExpandVolume succeeded for volume ${keyOf(claim)}`,
    );
  }
}

/** Names who expands, and sets conditions, in one patch that a change of meanwhile makes fail. */
async function annotate(
  context: ExpandContext,
  claim: Claim,
  resizer: string,
  conditions: readonly PersistentVolumeClaimCondition[] | undefined,
  signal: AbortSignal,
): Promise<Claim> {
  const annotated = claim.metadata.annotations?.[storageResizerAnnotation] === resizer;
  const merged =
    conditions === undefined ? undefined : mergedResizeConditions(claim.status?.conditions ?? [], conditions);
  if (annotated && (merged === undefined || sameConditions(merged, claim.status?.conditions ?? [])))
    return claim;
  const body = {
    metadata: {
      resourceVersion: claim.metadata.resourceVersion,
      annotations: { [storageResizerAnnotation]: resizer },
    },
    ...(merged === undefined ? {} : { status: { conditions: merged } }),
  };
  return context.env.kube.patch(
    resources.persistentVolumeClaims,
    { namespace: claim.metadata.namespace ?? "", name: claim.metadata.name },
    { type: "strategic", body },
    { signal, subresource: "status" },
  );
}

function sameConditions(
  a: readonly PersistentVolumeClaimCondition[],
  b: readonly PersistentVolumeClaimCondition[],
): boolean {
  return a.length === b.length && a.every((condition, index) => condition === b[index]);
}

function requestOf(claim: PersistentVolumeClaim): ReturnType<typeof parseQuantity> {
  return parseQuantity(claim.spec?.resources?.requests?.storage ?? "0");
}

function tell(
  context: ExpandContext,
  claim: Claim,
  type: "Normal" | "Warning",
  reason: string,
  message: string,
): void {
  context.events.event({ ...claim, apiVersion: "v1", kind: "PersistentVolumeClaim" }, type, reason, message);
}
