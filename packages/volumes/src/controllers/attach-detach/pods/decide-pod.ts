/**
 * What one pod wants attached, and by which path. Pure. Source: docs/behaviour/controllers.md A3-A5; docs/contract.md.
 *
 * Invariants
 *  - C1: while the node uses the disk in the form in which it is attached, the path that attached it stays
 *    responsible; nothing is decided.
 *  - Otherwise each pod's volume is decided on one live GET of the CSINode; the decision stands until the
 *    disk has been detached, or the CSINode changes. Where it turns out other than the form attached (the
 *    node was flipped before the detach had ended), that form is detached first.
 *  - A volume that cannot be named or decided is not forgotten: it protects what it could be.
 */
import type { Pod, Stored } from "@longshore/kube";
import { csiPluginName } from "../../../plugins/csi/csi-names.ts";
import { type BackendDecision, decideBackend, needsCsiNode } from "../backend-decision.ts";
import type { DesiredPod, DesiredPodVolume, UndecidedVolume, WantedVolume } from "../desired-state.ts";
import type { VolumeIdentity } from "../volume-identity.ts";
import type { MigratableVolume, ObservedPod, ObservedPodVolume, VolumeForm } from "./observe-pod.ts";

/** Why a volume of the pod is not attached. */
export interface PodVolumeProblem {
  readonly podVolumeName: string;
  /** The volume in the words of the log. */
  readonly label: string;
  readonly message: string;
}

/** The next step for one pod. */
export type PodStep =
  /** It wants nothing attached: it is gone, finished, or not on a node that this controller attaches for. */
  | { readonly step: "forget" }
  /** Who attaches depends on the node's CSINode as the API server has it now. */
  | { readonly step: "readCsiNode"; readonly nodeName: string }
  | {
      readonly step: "report";
      readonly pod: Stored<Pod>;
      readonly problems: readonly PodVolumeProblem[];
    }
  /** Replaces what the pod wants; `retries`: something is undecided, to be decided again after a delay. */
  | { readonly step: "want"; readonly desired: DesiredPod; readonly retries: boolean };

/** One volume, decided: what the pod wants of it, if anything, and what is to be reported. */
interface DecidedVolume {
  readonly volume?: DesiredPodVolume | undefined;
  readonly problem?: string;
}

const unread = Symbol("the CSINode has to be read");

/** Decides on one pod. */
export function decidePod(observed: ObservedPod): PodStep {
  const { pod, nodeName } = observed;
  if (pod === undefined || nodeName === undefined || !counts(observed)) return { step: "forget" };
  const volumes: DesiredPodVolume[] = [];
  const problems: PodVolumeProblem[] = [];
  for (const volume of observed.volumes) {
    const decided = decideVolume(observed, nodeName, volume);
    if (decided === unread) return { step: "readCsiNode", nodeName };
    if (decided.volume !== undefined) volumes.push(decided.volume);
    if (decided.problem === undefined) continue;
    problems.push({
      podVolumeName: volume.podVolumeName,
      label: labelOf(volume),
      message: decided.problem,
    });
  }
  if (problems.length > 0 && !observed.isReported) return { step: "report", pod, problems };
  const retries = volumes.some(({ kind }) => kind === "undecided");
  return { step: "want", desired: { pod, nodeName, volumes }, retries };
}

/** Whether this controller attaches the pod's volumes. A node that vanished keeps its desired volumes. */
function counts({ hasStopped, node, mayHoldVolumes }: ObservedPod): boolean {
  if (hasStopped && node?.keepsTerminated !== true) return false;
  return node === undefined ? mayHoldVolumes : node.isManaged;
}

function decideVolume(
  observed: ObservedPod,
  nodeName: string,
  volume: ObservedPodVolume,
): DecidedVolume | typeof unread {
  const { built, form, migratable, podVolumeName } = volume;
  if (built.kind === "unbuildable") {
    // What was once named keeps its name: a claim that vanishes under a running pod changes nothing.
    const before = decidedBefore(observed, volume);
    if (before?.kind === "wanted") return { volume: before };
    return { volume: undecided(podVolumeName, built.reason, { claim: built.claim, pvName: built.pvName }) };
  }
  if (migratable !== undefined) return decideMigratable(observed, nodeName, volume, migratable);
  if (form?.kind === "failed")
    return {
      volume: undecided(podVolumeName, form.reason, { claim: built.claim, identity: form.identity }),
    };
  if (form?.kind !== "attachable") return {};
  return { volume: wanted(podVolumeName, form, { identity: form.uniqueName }) };
}

function decideMigratable(
  observed: ObservedPod,
  nodeName: string,
  volume: ObservedPodVolume,
  migratable: MigratableVolume,
): DecidedVolume | typeof unread {
  const { podVolumeName } = volume;
  const { inTreePlugin, csiIdentity } = migratable;
  const backend = backendOf(observed, nodeName, volume, migratable);
  if (backend === unread) return unread;
  const known = protects(volume, migratable);
  if (backend.kind === "failed") return { volume: undecided(podVolumeName, backend.reason, known) };
  if (backend.kind === "error") {
    return { volume: undecided(podVolumeName, backend.message, known), problem: backend.message };
  }
  const form = backend.kind === "csi" ? migratable.csi : volume.form;
  if (form === undefined || form.kind === "not-attached") return {};
  if (form.kind === "failed") return { volume: undecided(podVolumeName, form.reason, known) };
  if (form.kind === "no-plugin") {
    const message = `no volume plugin for ${inTreePlugin} on node ${nodeName}: its in-tree code is switched off`;
    const { identity, claim } = known;
    return { volume: undecided(podVolumeName, message, { identity, claim }), problem: message };
  }
  const identity = csiIdentity ?? form.uniqueName;
  const decidedIn = observed.csiNodeVersion;
  const inTreeName = volume.form?.kind === "attachable" ? volume.form.uniqueName : undefined;
  return { volume: wanted(podVolumeName, form, { identity, inTreePlugin, inTreeName, decidedIn }) };
}

/** Who is responsible: the one that attached it, the earlier decision, or a new one. */
function backendOf(
  observed: ObservedPod,
  nodeName: string,
  volume: ObservedPodVolume,
  migratable: MigratableVolume,
): BackendDecision | { readonly kind: "failed"; readonly reason: string } | typeof unread {
  const { csiIdentity, attached } = migratable;
  if (csiIdentity === undefined) return newDecision(observed, nodeName, migratable);
  const keep = attached === undefined ? undefined : formOfPlugin(attached.pluginName);
  if (keep !== undefined && attached?.isHeld === true) return keep;
  const before = decidedBefore(observed, volume);
  const isStanding =
    before?.kind === "wanted" &&
    before.identity === csiIdentity &&
    before.decidedIn === observed.csiNodeVersion;
  if (isStanding) return formOfPlugin(before.pluginName);
  const decision = newDecision(observed, nodeName, migratable);
  // An error hands the disk to no path: the one that attached it stays responsible (docs/contract.md C1).
  return decision !== unread && decision.kind === "error" && keep !== undefined ? keep : decision;
}

function newDecision(
  { live, isCompat }: ObservedPod,
  nodeName: string,
  { inTreePlugin, driver, gates }: MigratableVolume,
): BackendDecision | { readonly kind: "failed"; readonly reason: string } | typeof unread {
  const question = { inTreePlugin, driver, nodeName, gates, compat: isCompat };
  if (!needsCsiNode(gates, isCompat)) {
    return decideBackend({ ...question, csiNode: undefined, driverHasAttachments: false });
  }
  if (live === undefined) return unread;
  if (live.kind === "failed") return live;
  const driverHasAttachments = live.activeDrivers.includes(driver);
  return decideBackend({ ...question, csiNode: live.csiNode, driverHasAttachments });
}

function formOfPlugin(pluginName: string): BackendDecision {
  return { kind: pluginName === csiPluginName ? "csi" : "in-tree" };
}

/** What is known of an undecided volume, so that nothing else has to be protected. */
function protects(
  { built }: ObservedPodVolume,
  { csiIdentity, inTreePlugin }: MigratableVolume,
): Partial<Pick<UndecidedVolume, "identity" | "claim" | "inTreePlugin">> {
  return {
    identity: csiIdentity,
    claim: built.claim,
    inTreePlugin: csiIdentity === undefined ? inTreePlugin : undefined,
  };
}

function decidedBefore(
  { before }: ObservedPod,
  { podVolumeName }: ObservedPodVolume,
): DesiredPodVolume | undefined {
  return before?.volumes.find((volume) => volume.podVolumeName === podVolumeName);
}

function labelOf({ built, podVolumeName }: ObservedPodVolume): string {
  return built.claim === undefined
    ? `inline volume "${podVolumeName}"`
    : `PVC "${built.claim.namespace}"/"${built.claim.name}"`;
}

function wanted(
  podVolumeName: string,
  { uniqueName, pluginName, spec }: Extract<VolumeForm, { kind: "attachable" }>,
  of: { readonly identity: VolumeIdentity } & Partial<
    Pick<WantedVolume, "inTreePlugin" | "inTreeName" | "decidedIn">
  >,
): WantedVolume {
  const { identity, inTreePlugin, inTreeName, decidedIn } = of;
  const name = { podVolumeName, uniqueName, identity, pluginName };
  return { kind: "wanted", ...name, spec, inTreePlugin, inTreeName, decidedIn };
}

function undecided(
  podVolumeName: string,
  reason: string,
  known: Partial<Pick<UndecidedVolume, "identity" | "claim" | "pvName" | "inTreePlugin">>,
): UndecidedVolume {
  return {
    kind: "undecided",
    podVolumeName,
    reason,
    identity: known.identity,
    claim: known.claim,
    pvName: known.pvName,
    inTreePlugin: known.inTreePlugin,
  };
}
