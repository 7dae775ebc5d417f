/**
 * Signs, in the objects of a cluster, that one of the contract's rules C1 to C4 does not hold for the plugin's volumes. A crossing
 * looks for them before its first change and after each batch, and stops at the first. Pure. Source: docs/contract.md C1 to C4.
 */
import type {
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Stored,
  VolumeAttachment,
} from "@longshore/kube";
import { csiUniqueVolumeName } from "@longshore/storage";
import type { CrossingSubject } from "./crossing-subject.ts";
import { isVolumeOfPlugin } from "./pod-facts.ts";
import { volumeFormOf } from "./volume-form.ts";

/** What is looked at. */
export interface SignsView {
  readonly nodes: readonly Stored<Node>[];
  readonly volumes: readonly Stored<PersistentVolume>[];
  readonly claims: readonly Stored<PersistentVolumeClaim>[];
  readonly attachments: readonly Stored<VolumeAttachment>[];
}

/** One sign. */
export interface ContractSign {
  readonly rule: "C1" | "C2" | "C3" | "C4";
  readonly object: string;
  readonly reason: string;
  readonly remedy: string;
}

/** A rule of the contract seems broken: the crossing has stopped before its next change. */
export class ContractError extends Error {
  override readonly name = "ContractError";
  readonly signs: readonly ContractSign[];
  constructor(signs: readonly ContractSign[]) {
    const lines = signs.map(({ rule, object, reason, remedy }) => `${rule}: ${object}: ${reason}; ${remedy}`);
    super(
      `the crossing has stopped, since data may be at risk: ${lines.length === 1 ? lines[0] : `\n  ${lines.join("\n  ")}`}`,
    );
    this.signs = signs;
  }
}

/** The signs. @param before what was there when the run began: what was missing then is no sign */
export function contractSigns(
  subject: CrossingSubject,
  before: SignsView,
  now: SignsView,
): readonly ContractSign[] {
  const ours = now.volumes.filter(
    (pv) => isVolumeOfPlugin(subject, pv) || pv.spec?.csi?.driver === subject.driverName,
  );
  const holders = holdersOf(subject, now);
  return [
    ...ours.flatMap((pv) => signsOfVolume(subject, pv, holders)),
    ...lostVolumes(subject, before, now),
    ...orphanedAttachments(subject, before, now),
  ];
}

interface Holders {
  /** Nodes whose status lists a volume of this unique name as attached. */
  readonly listedOn: ReadonlyMap<string, readonly string[]>;
  /** Nodes to which a VolumeAttachment of the driver says the PersistentVolume is attached. */
  readonly joinedOn: ReadonlyMap<string, readonly string[]>;
}

function holdersOf(subject: CrossingSubject, { nodes, attachments }: SignsView): Holders {
  const listedOn = new Map<string, string[]>();
  for (const { metadata, status } of nodes) {
    for (const { name } of status?.volumesAttached ?? []) listIn(listedOn, name).push(metadata.name);
  }
  const joinedOn = new Map<string, string[]>();
  for (const { spec, status } of attachments) {
    const pv = spec.source.persistentVolumeName;
    if (spec.attacher !== subject.driverName || status?.attached !== true || pv === undefined) continue;
    listIn(joinedOn, pv).push(spec.nodeName);
  }
  return { listedOn, joinedOn };
}

function signsOfVolume(
  subject: CrossingSubject,
  pv: Stored<PersistentVolume>,
  { listedOn, joinedOn }: Holders,
): ContractSign[] {
  const form = volumeFormOf(pv);
  if (form.kind === "other") return [];
  const object = `PersistentVolume ${pv.metadata.name}`;
  const inTree = form.kind === "in-tree" ? (listedOn.get(`${subject.inTreeName}/${form.handle}`) ?? []) : [];
  const handle = form.kind === "csi" ? form.handle : form.csiHandle;
  const listed =
    handle === undefined ? [] : (listedOn.get(csiUniqueVolumeName(subject.driverName, handle)) ?? []);
  const csi = [...new Set([...(joinedOn.get(pv.metadata.name) ?? []), ...listed])];
  const both = inTree.filter((nodeName) => csi.includes(nodeName));
  if (both.length > 0) {
    return [
      {
        rule: "C1",
        object,
        reason: `it is attached to node ${both.join(", ")} by the in-tree plugin and by the driver at the same time`,
        remedy:
          "end its pods there, compare status.volumesAttached of the Node with the VolumeAttachments and with the provider, and let the controller that attached it detach it",
      },
    ];
  }
  const everywhere = [...new Set([...inTree, ...csi])].sort();
  if (everywhere.length < 2 || hasManyNodes(pv)) return [];
  return [
    {
      rule: "C2",
      object,
      reason: `it may have one node, and is attached to ${everywhere.join(" and ")}`,
      remedy:
        "end the pods that use it on all but one of them, and see with the provider where the disk is, before anything is attached again",
    },
  ];
}

function hasManyNodes(pv: PersistentVolume): boolean {
  return (pv.spec?.accessModes ?? []).some((mode) => mode === "ReadWriteMany" || mode === "ReadOnlyMany");
}

function lostVolumes(subject: CrossingSubject, before: SignsView, now: SignsView): ContractSign[] {
  const there = new Set(now.volumes.map(({ metadata }) => metadata.uid));
  const gone = new Map(
    before.volumes
      .filter((pv) => isVolumeOfPlugin(subject, pv) && !there.has(pv.metadata.uid))
      .map((pv) => [pv.metadata.name, pv]),
  );
  if (gone.size === 0) return [];
  return now.claims
    .filter(({ spec, metadata }) => {
      const claimed = gone.get(spec?.volumeName ?? "")?.spec?.claimRef;
      return claimed?.uid === metadata.uid && metadata.deletionTimestamp === undefined;
    })
    .map(({ metadata, spec }) => ({
      rule: "C3",
      object: `PersistentVolumeClaim ${metadata.namespace}/${metadata.name}`,
      reason: `its PersistentVolume ${spec?.volumeName} was there when the run began, and is gone`,
      remedy:
        "see with the provider whether the disk is still there, and make a PersistentVolume for it again",
    }));
}

function orphanedAttachments(subject: CrossingSubject, before: SignsView, now: SignsView): ContractSign[] {
  const volumes = new Set(now.volumes.map(({ metadata }) => metadata.name));
  const known = new Set(before.volumes.map(({ metadata }) => metadata.name));
  return now.attachments.flatMap(({ metadata, spec }): ContractSign[] => {
    const pv = spec.source.persistentVolumeName;
    // One whose volume was missing already when the run began is not of this run's making.
    if (spec.attacher !== subject.driverName || pv === undefined || volumes.has(pv) || !known.has(pv))
      return [];
    return [
      {
        rule: "C4",
        object: `VolumeAttachment ${metadata.name}`,
        reason: `its PersistentVolume ${pv} is gone while it is attached to node ${spec.nodeName}`,
        remedy:
          "see with the provider whether the disk is attached there, detach it, and delete the VolumeAttachment",
      },
    ];
  });
}

function listIn(lists: Map<string, string[]>, key: string): string[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}
