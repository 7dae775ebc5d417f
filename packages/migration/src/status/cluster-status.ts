/**
 * What of a cluster is where: the drivers and migrated plugins of each node, the path that each volume takes there, and who
 * holds which disk. A pure function of what was read. Source: docs/behaviour/migration-controllers.md C1, C2.
 */
import type { Node, PersistentVolume, Stored } from "@longshore/kube";
import { migrationPendingCondition } from "@longshore/storage";
import { type AssessView, assessView } from "../assess/assess-view.ts";
import type { Inventory } from "../assess/inventory.ts";
import { isCordonedForCrossing } from "../crossing/cordon.ts";
import { migratedPluginsOf } from "../crossing/node-state.ts";
import { uniqueNamesOf, type VolumeForm, volumeFormOf } from "../crossing/volume-form.ts";
import { type DiskHolder, type HolderIndex, holderIndex, type StrayDisk } from "./disk-holders.ts";

/** One node. */
export interface NodeStatus {
  readonly name: string;
  readonly ready: boolean;
  /** `crossing`: a crossing has cordoned it; `other`: someone else has. */
  readonly cordoned?: "crossing" | "other";
  readonly kubelet?: string;
  /** In-tree names of the plugins whose volumes it serves through CSI. */
  readonly migratedPlugins: readonly string[];
  /** Which plugins are not on the path that its gates want, and what has to go first; left out where all are. */
  readonly migrationPending?: string;
  /** Names of the drivers that are registered there. */
  readonly drivers: readonly string[];
}

/** Where a volume is used, and by which path. */
export interface VolumeUseStatus {
  readonly nodeName: string;
  /** `namespace/name` of the pod. */
  readonly pod: string;
  readonly path: "in-tree" | "csi";
}

/** One volume: a PersistentVolume, or an in-tree volume of a pod's own. */
export interface VolumeStatus {
  /** Name of the PersistentVolume, or which volume of which pod. */
  readonly name: string;
  readonly phase?: string;
  /** `namespace/name` of the claim that it is bound to. */
  readonly claim?: string;
  readonly form: VolumeForm["kind"];
  /** In-tree name of its plugin. */
  readonly plugin?: string;
  readonly driver?: string;
  /** What its plugin or driver calls it. */
  readonly handle?: string;
  readonly uses: readonly VolumeUseStatus[];
  readonly holders: readonly DiskHolder[];
}

/** The whole cluster. */
export interface ClusterStatus {
  /** When it was looked at, RFC 3339. */
  readonly at: string;
  readonly nodes: readonly NodeStatus[];
  readonly volumes: readonly VolumeStatus[];
  /** Disks that are held although no volume of the API is one of them. */
  readonly strays: readonly StrayDisk[];
  /** What could not be read, one sentence each: what depends on it is missing above. */
  readonly gaps: readonly string[];
}

/** The status. It takes time in proportion to the inventory. */
export function clusterStatusOf(inventory: Inventory): ClusterStatus {
  const view = assessView(inventory, undefined);
  const holders = holderIndex(inventory);
  const volumes = [...boundVolumes(view, holders), ...ownVolumes(view, holders)];
  return {
    at: inventory.now.toISOString(),
    nodes: nodesOf(inventory),
    volumes,
    strays: isWhole(inventory) ? holders.strays() : [],
    gaps: inventory.gaps.map(({ object, evidence }) => `${object}: ${evidence}`),
  };
}

/** Kinds without which a disk whose volume is there would seem to be of none. */
const volumeKinds: readonly string[] = ["PersistentVolume", "PersistentVolumeClaim", "Pod"].map(
  (kind) => `kind ${kind}`,
);

function isWhole({ gaps }: Inventory): boolean {
  return !gaps.some(({ object }) => volumeKinds.includes(object));
}

function nodesOf({ nodes, csiNodes }: Inventory): NodeStatus[] {
  const byName = new Map(csiNodes.map((csiNode) => [csiNode.metadata.name, csiNode]));
  return nodes.map((node) => {
    const csiNode = byName.get(node.metadata.name);
    const kubelet = node.status?.nodeInfo?.kubeletVersion;
    return {
      name: node.metadata.name,
      ready: node.status?.conditions?.some((c) => c.type === "Ready" && c.status === "True") === true,
      ...cordonOf(node),
      ...(kubelet === undefined ? {} : { kubelet }),
      migratedPlugins: migratedPluginsOf(csiNode),
      ...pendingOf(node),
      drivers: (csiNode?.spec.drivers ?? []).map(({ name }) => name),
    };
  });
}

function pendingOf({ status }: Stored<Node>): Pick<NodeStatus, "migrationPending"> {
  const condition = status?.conditions?.find(({ type }) => type === migrationPendingCondition);
  return condition?.status === "True" ? { migrationPending: condition.message ?? "" } : {};
}

function cordonOf(node: Stored<Node>): Pick<NodeStatus, "cordoned"> {
  if (isCordonedForCrossing(node)) return { cordoned: "crossing" };
  return node.spec?.unschedulable === true ? { cordoned: "other" } : {};
}

function boundVolumes(view: AssessView, holders: HolderIndex): VolumeStatus[] {
  const uses = usesByVolume(view);
  return view.inventory.volumes.map((pv): VolumeStatus => {
    const { name } = pv.metadata;
    const form = volumeFormOf(pv);
    const used = uses.get(name) ?? [];
    const claim = pv.spec?.claimRef;
    const phase = pv.status?.phase;
    return {
      name,
      ...(phase === undefined ? {} : { phase }),
      ...(claim === undefined ? {} : { claim: `${claim.namespace}/${claim.name}` }),
      form: form.kind,
      ...(form.kind === "in-tree" ? { plugin: form.plugin } : {}),
      ...(form.kind === "other" ? {} : { driver: form.driver, handle: form.handle }),
      uses: used,
      holders: holders.of(name, uniqueNamesOf(form), used),
    };
  });
}

function usesByVolume(view: AssessView): ReadonlyMap<string, VolumeUseStatus[]> {
  const uses = new Map<string, VolumeUseStatus[]>();
  for (const use of view.uses) {
    if (use.pv === undefined) continue;
    const { name } = use.pv.metadata;
    const list = uses.get(name);
    if (list === undefined) uses.set(name, [useStatusOf(view, use)]);
    else list.push(useStatusOf(view, use));
  }
  return uses;
}

function useStatusOf(
  view: AssessView,
  { pod, nodeName, gates }: AssessView["uses"][number],
): VolumeUseStatus {
  const isInTree = gates !== undefined && view.migratedOn.get(gates.inTreeName)?.has(nodeName) !== true;
  const { namespace, name } = pod.metadata;
  return { nodeName, pod: `${namespace}/${name}`, path: isInTree ? "in-tree" : "csi" };
}

function ownVolumes(view: AssessView, holders: HolderIndex): VolumeStatus[] {
  return view.uses.flatMap((use): VolumeStatus[] => {
    if (use.pv !== undefined || use.gates === undefined) return [];
    const form = formOfOwn(use);
    const uses = [useStatusOf(view, use)];
    return [
      {
        name: use.what,
        form: "in-tree",
        plugin: use.gates.inTreeName,
        driver: use.driver,
        ...(form.kind === "other" ? {} : { handle: form.handle }),
        uses,
        holders: holders.of("", uniqueNamesOf(form), uses),
      },
    ];
  });
}

/** The form of a volume of the pod's own, whose source a PersistentVolume has in the same fields. */
function formOfOwn({ pod, what }: AssessView["uses"][number]): VolumeForm {
  const { namespace, name } = pod.metadata;
  const volume = pod.spec?.volumes?.find(
    (each) => what === `volume ${each.name} of Pod ${namespace}/${name}`,
  );
  const { name: _name, ...source } = volume ?? { name: "" };
  return volumeFormOf({ metadata: { name: "" }, spec: source } as PersistentVolume);
}
