/**
 * What a pod wants attached: builds the specs of its volumes and, for plugins that can migrate,
 * decides who attaches them. Source: docs/behaviour/controllers.md A3-A5; docs/contract.md.
 *
 * Invariants
 *  - C1: while the node uses the disk in the form in which it is attached, the path that attached it stays
 *    responsible; nothing is decided.
 *  - Otherwise each pod's volume is decided on one live GET of the CSINode; the decision stands until the
 *    disk has been detached, or the CSINode changes. Where it turns out other than the form attached (the
 *    node was flipped before the detach had ended), that form is detached first.
 *  - A volume that cannot be named or decided is not forgotten: it protects what it could be.
 */
import { type Pod, resources, type Stored, type Volume } from "@longshore/kube";
import { errorChain, withDeadline } from "@longshore/runtime";
import { uniqueVolumeName } from "../../framework/names.ts";
import { isAttachable, type VolumePlugin } from "../../framework/plugin.ts";
import { PluginLookupError } from "../../framework/plugin-manager.ts";
import type { VolumeSpec } from "../../framework/spec.ts";
import { csiPluginName } from "../../plugins/csi/csi-names.ts";
import { type BackendDecision, decideBackend, type GateState, needsCsiNode } from "./backend-decision.ts";
import { type AttachDetachContext, formsAttached } from "./context.ts";
import type { PodWish, PodWishes, UndecidedVolume, WantedVolume } from "./desired-state.ts";
import { nodeUses } from "./detach-guards.ts";
import { type BuiltVolume, buildPodVolume } from "./pod-volume-spec.ts";
import { csiNameOfSpec, csiSpecOf, type VolumeIdentity } from "./volume-identity.ts";

/** Deadline of the reads for one decision, in milliseconds. */
const decisionTimeoutMs = 10_000;

/** What an earlier pass found, and what has happened since. */
export interface WishHistory {
  readonly before: PodWishes | undefined;
  /** Counts the changes of the node's CSINode. */
  readonly csiNodeVersion: number;
  /** Whether the disk was detached from the node since it was decided. */
  wasDetached(identity: VolumeIdentity): boolean;
}

/** One volume of a pod whose backend is being decided. */
interface Question {
  readonly pod: Stored<Pod>;
  readonly nodeName: string;
  readonly volume: Volume;
  readonly built: Extract<BuiltVolume, { kind: "spec" }>;
  readonly history: WishHistory;
}

/** Everything that the pod wants; volumes that need no attach are left out. */
export async function podWishes(
  context: AttachDetachContext,
  pod: Stored<Pod>,
  nodeName: string,
  history: WishHistory,
  signal: AbortSignal,
): Promise<PodWishes> {
  const wishes: PodWish[] = [];
  for (const volume of pod.spec?.volumes ?? []) {
    const wish = await wishOf(context, pod, nodeName, volume, history, signal);
    if (wish !== undefined) wishes.push(wish);
  }
  return { pod, nodeName, wishes };
}

async function wishOf(
  context: AttachDetachContext,
  pod: Stored<Pod>,
  nodeName: string,
  volume: Volume,
  history: WishHistory,
  signal: AbortSignal,
): Promise<PodWish | undefined> {
  const built = buildPodVolume(pod, volume, {
    claim: (namespace, name) => context.caches.claims.get(`${namespace}/${name}`),
    persistentVolume: (name) => context.caches.volumes.get(name),
  });
  if (built.kind === "unbuildable") {
    // What was once named keeps its name: a claim that vanishes under a running pod changes nothing.
    const before = wishBefore(history, volume);
    if (before?.kind === "wanted") return before;
    return undecided(volume, built.reason, { claim: built.claim, pvName: built.pvName });
  }
  const question: Question = { pod, nodeName, volume, built, history };
  const inTreePlugin = context.migration.inTreePluginOf(built.spec);
  try {
    if (inTreePlugin === undefined) return await plainWish(context, question);
    return await migratableWish(context, question, inTreePlugin, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    return undecided(volume, errorChain(error), identityHint(context, question));
  }
}

/** A volume whose plugin cannot migrate: CSI from the start, or none that is attached. */
async function plainWish(context: AttachDetachContext, question: Question): Promise<PodWish | undefined> {
  const { spec } = question.built;
  const plugin = findPlugin(context, spec);
  if (plugin === undefined || !isAttachable(plugin) || !(await plugin.canAttach(spec))) return undefined;
  return wanted(question, plugin, spec, {});
}

async function migratableWish(
  context: AttachDetachContext,
  question: Question,
  inTreePlugin: string,
  signal: AbortSignal,
): Promise<PodWish | undefined> {
  const { volume, pod, nodeName, built, history } = question;
  const csiSpec = csiSpecOf(context.migration, built.spec, pod.metadata.namespace ?? "");
  const twin = csiSpec === undefined ? undefined : csiNameOfSpec(csiSpec);
  const backend = await backendFor(context, question, inTreePlugin, twin, signal);
  if (backend.kind === "error") {
    surface(context, question, backend.message);
    return undecided(volume, backend.message, {
      identity: twin,
      claim: built.claim,
      inTreePlugin: twin === undefined ? inTreePlugin : undefined,
    });
  }
  const spec =
    backend.kind === "csi"
      ? (csiSpec ?? context.migration.translateInTreeSpecToCSI(built.spec, pod.metadata.namespace ?? ""))
      : built.spec;
  const plugin = findPlugin(context, spec);
  if (plugin === undefined) {
    const message = `no volume plugin for ${inTreePlugin} on node ${nodeName}: its in-tree code is switched off`;
    surface(context, question, message);
    return undecided(volume, message, { identity: twin, claim: built.claim });
  }
  if (!isAttachable(plugin) || !(await plugin.canAttach(spec))) return undefined;
  return wanted(question, plugin, spec, { inTreePlugin, twin, decidedIn: history.csiNodeVersion });
}

/** Who is responsible: the one that attached it, the earlier decision, or a new one. */
async function backendFor(
  context: AttachDetachContext,
  question: Question,
  inTreePlugin: string,
  twin: VolumeIdentity | undefined,
  signal: AbortSignal,
): Promise<BackendDecision> {
  const { nodeName, history, volume } = question;
  if (twin === undefined) return decide(context, inTreePlugin, nodeName, signal);
  const attached = context.actual
    .ofIdentity(twin)
    .find((other) => other.nodeName === nodeName && other.confirmed && !other.detachTried);
  const keep: BackendDecision | undefined =
    attached === undefined ? undefined : { kind: formOf(attached.pluginName) };
  const node = context.caches.nodes.get(nodeName);
  if (
    keep !== undefined &&
    attached !== undefined &&
    (node === undefined || nodeUses(node, attached, formsAttached(context, attached)))
  ) {
    return keep;
  }
  const before = wishBefore(history, volume);
  if (
    before?.kind === "wanted" &&
    before.identity === twin &&
    before.decidedIn === history.csiNodeVersion &&
    !history.wasDetached(twin)
  ) {
    return { kind: formOf(before.pluginName) };
  }
  const decision = await decide(context, inTreePlugin, nodeName, signal);
  return decision.kind === "error" && keep !== undefined ? keep : decision;
}

function formOf(pluginName: string): "csi" | "in-tree" {
  return pluginName === csiPluginName ? "csi" : "in-tree";
}

/** A new decision, on live reads. @throws what the client throws */
async function decide(
  context: AttachDetachContext,
  inTreePlugin: string,
  nodeName: string,
  signal: AbortSignal,
): Promise<BackendDecision> {
  const { env, migration, settings } = context;
  const driver = migration.csiNameOf(inTreePlugin) ?? "";
  const gates: GateState = migration.isMigrationCompleteForPlugin(inTreePlugin)
    ? "complete"
    : migration.isMigrationEnabledForPlugin(inTreePlugin)
      ? "on"
      : "off";
  const base = { inTreePlugin, driver, nodeName, gates, compat: settings.compat };
  if (!needsCsiNode(gates, settings.compat)) {
    return decideBackend({ ...base, csiNode: undefined, driverHasAttachments: false });
  }
  return withDeadline(env.clock, decisionTimeoutMs, signal, async (within) => {
    const csiNode = await env.kube.get(resources.csiNodes, { name: nodeName }, { signal: within });
    const driverHasAttachments =
      csiNode === undefined && !settings.compat && (await driverIsAtWork(context, driver, nodeName, within));
    return decideBackend({ ...base, csiNode, driverHasAttachments });
  });
}

/** Whether VolumeAttachments join the node to the driver, by a live list. */
export async function driverIsAtWork(
  context: Pick<AttachDetachContext, "env">,
  driver: string,
  nodeName: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { items } = await context.env.kube.list(resources.volumeAttachments, { signal });
  return items.some(({ spec }) => spec.attacher === driver && spec.nodeName === nodeName);
}

/** Logs the message and records it as an event of the pod; as in Kubernetes 1.20, compat only logs. */
function surface(context: AttachDetachContext, question: Question, message: string): void {
  const { pod, volume, built } = question;
  const what =
    built.claim === undefined
      ? `inline volume "${volume.name}"`
      : `PVC "${built.claim.namespace}"/"${built.claim.name}"`;
  context.env.logger.warn(`error performing CSI migration checks and translation for ${what}: ${message}`, {
    pod: `${pod.metadata.namespace}/${pod.metadata.name}`,
  });
  if (context.settings.compat) return;
  context.events.event(
    { apiVersion: "v1", kind: "Pod", ...pod },
    "Warning",
    "FailedAttachVolume",
    `Volume "${volume.name}" is not attached: ${message}`,
  );
}

function findPlugin(context: AttachDetachContext, spec: VolumeSpec): VolumePlugin | undefined {
  try {
    return context.plugins.findPluginBySpec(spec);
  } catch (error) {
    if (error instanceof PluginLookupError) return undefined;
    throw error;
  }
}

function wishBefore(history: WishHistory, volume: Volume): PodWish | undefined {
  return history.before?.wishes.find((wish) => wish.podVolumeName === volume.name);
}

function wanted(
  question: Question,
  plugin: VolumePlugin,
  spec: VolumeSpec,
  {
    inTreePlugin,
    twin,
    decidedIn,
  }: {
    readonly inTreePlugin?: string;
    readonly twin?: VolumeIdentity | undefined;
    readonly decidedIn?: number;
  },
): WantedVolume {
  const uniqueName = uniqueVolumeName(plugin, spec, question.pod.metadata.uid);
  return {
    kind: "wanted",
    podVolumeName: question.volume.name,
    uniqueName,
    identity: twin ?? uniqueName,
    pluginName: plugin.pluginName,
    spec,
    inTreePlugin,
    decidedIn,
  };
}

/** What can be said of a volume whose decision failed, so that nothing else has to be protected. */
function identityHint(
  context: AttachDetachContext,
  { built, pod }: Question,
): Partial<Pick<UndecidedVolume, "identity" | "claim" | "inTreePlugin">> {
  const csiSpec = csiSpecOf(context.migration, built.spec, pod.metadata.namespace ?? "");
  const identity = csiSpec === undefined ? undefined : csiNameOfSpec(csiSpec);
  const inTreePlugin = identity === undefined ? context.migration.inTreePluginOf(built.spec) : undefined;
  return { identity, claim: built.claim, inTreePlugin };
}

function undecided(
  volume: Volume,
  reason: string,
  known: Partial<Pick<UndecidedVolume, "identity" | "claim" | "pvName" | "inTreePlugin">>,
): UndecidedVolume {
  return {
    kind: "undecided",
    podVolumeName: volume.name,
    reason,
    identity: known.identity,
    claim: known.claim,
    pvName: known.pvName,
    inTreePlugin: known.inTreePlugin,
  };
}
