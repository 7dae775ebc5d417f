/**
 * What the decision on one pod needs: its volumes in both forms, what is attached, and what was decided before. Reads
 * caches only. Source: docs/behaviour/controllers.md A3-A5.
 */
import type { Pod, Stored, Volume } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import {
  type UniqueVolumeName,
  uniqueNameOf,
  uniqueVolumeName,
} from "../../../framework/unique-volume-name.ts";
import { isAttachable } from "../../../framework/volume-plugin.ts";
import { PluginLookupError } from "../../../framework/volume-plugin-manager.ts";
import { specName, type VolumeSpec } from "../../../framework/volume-spec.ts";
import { flexVolumeSourceOf } from "../../../plugins/flexvolume/driver-options.ts";
import {
  type AttachDetachContext,
  formsAttached,
  keepTerminatedAnnotation,
  managedNodeAnnotation,
} from "../attach-detach-context.ts";
import type { GateState } from "../backend-decision.ts";
import { type BuiltVolume, buildPodVolume, hasPodStopped } from "../build-pod-volume.ts";
import type { DesiredPod, WantedVolume } from "../desired-state.ts";
import { nodeUses } from "../detach-guards.ts";
import { csiNameOfSpec, csiSpecOf, type VolumeIdentity } from "../volume-identity.ts";
import type { LiveCsiNode } from "./read-csi-node.ts";

/** One form of a volume, in-tree or CSI, as its plugin sees it. */
export type VolumeForm =
  | ({ readonly kind: "attachable" } & Pick<WantedVolume, "uniqueName" | "pluginName" | "spec">)
  /** The plugin does not attach it. */
  | { readonly kind: "not-attached" }
  | { readonly kind: "no-plugin" }
  /** It is not known yet; with the volume's identity where that is known nevertheless. */
  | { readonly kind: "failed"; readonly reason: string; readonly identity?: VolumeIdentity };

/** A volume whose in-tree plugin can migrate. */
export interface MigratableVolume {
  readonly inTreePlugin: string;
  readonly driver: string;
  readonly gates: GateState;
  /** Undefined: it cannot be translated. */
  readonly csiIdentity: VolumeIdentity | undefined;
  readonly csi: VolumeForm;
  /** What is attached of the disk on the pod's node, for sure; `isHeld`: it stays so whatever is decided. */
  readonly attached: { readonly pluginName: string; readonly isHeld: boolean } | undefined;
}

/** One volume of the pod. */
export interface ObservedPodVolume {
  readonly podVolumeName: string;
  readonly built: BuiltVolume;
  /** The form as it is written in the pod or the PV; undefined: it cannot be built. */
  readonly form: VolumeForm | undefined;
  /** Undefined: its plugin cannot migrate. */
  readonly migratable: MigratableVolume | undefined;
}

/** One pod, and all that affects what it wants attached. */
export interface ObservedPod {
  /** Undefined: it is gone. */
  readonly pod: Stored<Pod> | undefined;
  /** Undefined: it is on no node. */
  readonly nodeName: string | undefined;
  readonly hasStopped: boolean;
  /** Undefined: the node is not there. */
  readonly node: { readonly isManaged: boolean; readonly keepsTerminated: boolean } | undefined;
  /** Whether the pod wants anything by the last decision, or anything is attached to its node. */
  readonly mayHoldVolumes: boolean;
  readonly volumes: readonly ObservedPodVolume[];
  /** What was decided before for this very pod on this node. */
  readonly before: DesiredPod | undefined;
  /** Counts the changes of the node's CSINode. */
  readonly csiNodeVersion: number;
  readonly isCompat: boolean;
  /** Marks of the pod when it was observed; see PendingPods. */
  readonly marks: number;
  /** What was read of the API server in this pass. */
  readonly live: LiveCsiNode | undefined;
  /** The messages of this pass are emitted. */
  readonly isReported: boolean;
}

/** Observes the pod of this key. */
export async function observePod(context: AttachDetachContext, key: string): Promise<ObservedPod> {
  const marks = context.pending.marksOf(key);
  const pod = context.caches.pods.get(key);
  const nodeName = pod?.spec?.nodeName;
  const known = context.desired.pod(key);
  const isKnown = known?.pod.metadata.uid === pod?.metadata.uid && known?.nodeName === nodeName;
  const observed: ObservedPod = {
    pod,
    nodeName,
    hasStopped: pod !== undefined && hasPodStopped(pod),
    node: nodeName === undefined ? undefined : nodeOf(context, nodeName),
    mayHoldVolumes: known !== undefined || (nodeName !== undefined && context.actual.on(nodeName).length > 0),
    volumes: [],
    before: isKnown ? known : undefined,
    csiNodeVersion: nodeName === undefined ? 0 : (context.csiNodeVersions.get(nodeName) ?? 0),
    isCompat: context.settings.compat,
    marks,
    live: undefined,
    isReported: false,
  };
  if (pod === undefined || nodeName === undefined) return observed;
  const volumes: ObservedPodVolume[] = [];
  for (const volume of pod.spec?.volumes ?? []) {
    volumes.push(await observeVolume(context, pod, nodeName, volume));
  }
  return { ...observed, volumes };
}

function nodeOf(context: AttachDetachContext, nodeName: string): ObservedPod["node"] {
  const node = context.caches.nodes.get(nodeName);
  if (node === undefined) return undefined;
  const { annotations } = node.metadata;
  return {
    isManaged: annotations?.[managedNodeAnnotation] !== undefined,
    keepsTerminated: annotations?.[keepTerminatedAnnotation] === "true",
  };
}

async function observeVolume(
  context: AttachDetachContext,
  pod: Stored<Pod>,
  nodeName: string,
  volume: Volume,
): Promise<ObservedPodVolume> {
  const { caches, migration } = context;
  const built = buildPodVolume(pod, volume, {
    claim: (namespace, name) => caches.claims.get(`${namespace}/${name}`),
    persistentVolume: (name) => caches.volumes.get(name),
  });
  const observed = { podVolumeName: volume.name, built };
  if (built.kind === "unbuildable") return { ...observed, form: undefined, migratable: undefined };
  const inTreePlugin = migration.inTreePluginOf(built.spec);
  const form = await formOf(context, built.spec, pod);
  if (inTreePlugin === undefined) return { ...observed, form, migratable: undefined };
  const inTreeName = form.kind === "attachable" ? form.uniqueName : undefined;
  const of = { spec: built.spec, inTreePlugin, inTreeName };
  return { ...observed, form, migratable: await observeMigratable(context, pod, nodeName, of) };
}

async function observeMigratable(
  context: AttachDetachContext,
  pod: Stored<Pod>,
  nodeName: string,
  of: {
    readonly spec: VolumeSpec;
    readonly inTreePlugin: string;
    readonly inTreeName: UniqueVolumeName | undefined;
  },
): Promise<MigratableVolume> {
  const { migration } = context;
  const { spec, inTreePlugin, inTreeName } = of;
  const csiSpec = csiSpecOf(migration, spec, pod.metadata.namespace ?? "");
  const csiIdentity = csiSpec === undefined ? undefined : csiNameOfSpec(csiSpec);
  const isEnabled = migration.isMigrationEnabledForPlugin(inTreePlugin);
  return {
    inTreePlugin,
    driver: migration.csiNameOf(inTreePlugin) ?? "",
    gates: migration.isMigrationCompleteForPlugin(inTreePlugin) ? "complete" : isEnabled ? "on" : "off",
    csiIdentity,
    csi: csiSpec === undefined ? untranslated(context, spec, pod) : await formOf(context, csiSpec, pod),
    attached: csiIdentity === undefined ? undefined : attachedOn(context, nodeName, csiIdentity, inTreeName),
  };
}

/** Why a spec has no CSI form. */
function untranslated(context: AttachDetachContext, spec: VolumeSpec, pod: Stored<Pod>): VolumeForm {
  try {
    context.migration.translateInTreeSpecToCSI(spec, pod.metadata.namespace ?? "");
    return { kind: "failed", reason: "the volume has no CSI form" };
  } catch (error) {
    return { kind: "failed", reason: errorChain(error) };
  }
}

/** The confirmed attachment of the disk on the node; one that a failed detach has left in doubt does not count. */
function attachedOn(
  context: AttachDetachContext,
  nodeName: string,
  identity: VolumeIdentity,
  inTreeName: UniqueVolumeName | undefined,
): MigratableVolume["attached"] {
  const { actual } = context;
  // When the attachment was recovered, its name alone may have said too little.
  const named = inTreeName === undefined ? undefined : actual.get(nodeName, inTreeName);
  const attached = [...actual.ofIdentity(identity), ...(named === undefined ? [] : [named])].find(
    (other) => other.nodeName === nodeName && other.confirmed && !other.detachTried,
  );
  if (attached === undefined) return undefined;
  const node = context.caches.nodes.get(nodeName);
  // What a node that the cache lacks uses is unknown, so its disk stays with its path.
  const isHeld = node === undefined || nodeUses(node, attached, formsAttached(context, attached));
  return { pluginName: attached.pluginName, isHeld };
}

async function formOf(context: AttachDetachContext, spec: VolumeSpec, pod: Stored<Pod>): Promise<VolumeForm> {
  try {
    const plugin = context.plugins.findPluginBySpec(spec);
    if (!isAttachable(plugin) || !(await plugin.canAttach(spec))) return { kind: "not-attached" };
    const uniqueName = uniqueVolumeName(plugin, spec, pod.metadata.uid);
    return { kind: "attachable", uniqueName, pluginName: plugin.pluginName, spec };
  } catch (error) {
    const identity = flexVolumeIdentityOf(spec);
    // A driver that is missing may come: until then its volume must not be detached, nor keep others from being so.
    if (identity !== undefined) return { kind: "failed", reason: errorChain(error), identity };
    if (error instanceof PluginLookupError) return { kind: "no-plugin" };
    return { kind: "failed", reason: errorChain(error) };
  }
}

/** The identity that the volume has if it is a Flexvolume whose driver attaches. */
function flexVolumeIdentityOf(spec: VolumeSpec): VolumeIdentity | undefined {
  const source = flexVolumeSourceOf(spec);
  return source === undefined ? undefined : uniqueNameOf(source.driver, specName(spec));
}
