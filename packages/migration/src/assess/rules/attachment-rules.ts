/** VolumeAttachments that are stuck or have lost what they belong to, and finalizers of drivers that are gone. */
import { hasFinalizer, isDeleting, type Stored, type VolumeAttachment } from "@longshore/kube";
import { attacherFinalizer } from "@longshore/storage";
import type { InventoryFacts } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";
import { subjectOf } from "../inventory.ts";

/** After this time a detach is stuck, in milliseconds: the attach/detach controller forces one after six minutes. */
const stuckAfterMs = 6 * 60_000;

/** Of the provisioner, on a PersistentVolume whose disk is still to be deleted (KEP-2644). */
const provisionerFinalizer = "external-provisioner.volume.kubernetes.io/finalizer";

/** Findings about VolumeAttachments and finalizers. */
export function attachmentRules(view: InventoryFacts): RuleFinding[] {
  const { attachments, nodes, unread } = view.inventory;
  const known = unread.has("Node") ? undefined : new Set(nodes.map(({ metadata }) => metadata.name));
  return [
    ...attachments.flatMap((va) => attachment(view, known, va)),
    ...withoutPod(view, known),
    ...finalizersLeft(view),
  ];
}

function attachment(
  view: InventoryFacts,
  nodes: ReadonlySet<string> | undefined,
  va: Stored<VolumeAttachment>,
): RuleFinding[] {
  const object = subjectOf("VolumeAttachment", va);
  const { nodeName, source } = va.spec;
  const pv = source.persistentVolumeName;
  const findings: RuleFinding[] = [];
  if (nodes?.has(nodeName) === false) {
    findings.push(
      found("LS1501", { object, field: "spec.nodeName", evidence: `there is no Node ${nodeName}` }),
    );
  }
  if (pv !== undefined && !view.inventory.unread.has("PersistentVolume") && !view.volumeByName.has(pv)) {
    const field = "spec.source.persistentVolumeName";
    findings.push(found("LS1502", { object, field, evidence: `there is no PersistentVolume ${pv}` }));
  }
  return [...findings, ...stuck(view, va, object)];
}

function stuck(view: InventoryFacts, va: Stored<VolumeAttachment>, object: string): RuleFinding[] {
  const since = va.metadata.deletionTimestamp;
  if (since === undefined) {
    const message = va.status?.attached === true ? undefined : va.status?.attachError?.message;
    return message === undefined
      ? []
      : [found("LS1504", { object, field: "status.attachError", evidence: message })];
  }
  const detachError = va.status?.detachError?.message;
  if (detachError === undefined && view.inventory.now.getTime() - Date.parse(since) < stuckAfterMs) return [];
  const held = `it is being deleted since ${since}, held by ${(va.metadata.finalizers ?? []).join(", ")}`;
  const evidence = detachError === undefined ? held : `${held}: ${detachError}`;
  return [found("LS1503", { object, field: "metadata.finalizers", evidence })];
}

/** Attachments of volumes that are there, on nodes that are there, for no pod: nothing detaches them but a controller that missed it. */
function withoutPod(view: InventoryFacts, nodes: ReadonlySet<string> | undefined): RuleFinding[] {
  const { attachments, unread, now, nodes: all } = view.inventory;
  if (attachments.length === 0) return [];
  if (nodes === undefined || ["Pod", "PersistentVolumeClaim"].some((kind) => unread.has(kind))) return [];
  const used = new Set(view.uses.map(({ pv, nodeName }) => `${nodeName}/${pv?.metadata.name}`));
  const inUse = new Set(
    all.flatMap(({ metadata, status }) =>
      (status?.volumesInUse ?? []).map((name) => `${metadata.name}/${name}`),
    ),
  );
  return attachments.flatMap((va) => {
    const { nodeName, attacher, source } = va.spec;
    const pv = view.volumeByName.get(source.persistentVolumeName ?? "");
    if (pv === undefined || !nodes.has(nodeName) || isDeleting(va) || va.status?.attached !== true) return [];
    const since = va.metadata.creationTimestamp;
    if (since === undefined || now.getTime() - Date.parse(since) < stuckAfterMs) return [];
    if (used.has(`${nodeName}/${pv.metadata.name}`)) return [];
    const { csi } = (view.translated.get(pv.metadata.name)?.csi ?? pv).spec ?? {};
    if (inUse.has(`${nodeName}/kubernetes.io/csi/${attacher}^${csi?.volumeHandle}`)) return [];
    return [
      found("LS1506", {
        object: subjectOf("VolumeAttachment", va),
        field: "spec.nodeName",
        evidence: `PersistentVolume ${pv.metadata.name} is attached to node ${nodeName} since ${since}, and no pod there uses it`,
      }),
    ];
  });
}

/** Only the attacher of its driver takes such a finalizer off. */
function finalizersLeft(view: InventoryFacts): RuleFinding[] {
  if (view.inventory.unread.has("CSINode")) return [];
  const owned = attacherFinalizer("");
  const isOwned = ({ metadata }: Stored) =>
    metadata.finalizers?.some((name) => name.startsWith(owned)) === true;
  const objects = [
    ...view.inventory.attachments.filter(isOwned).map((va) => ["VolumeAttachment", va] as const),
    ...view.inventory.volumes.filter(isOwned).map((pv) => ["PersistentVolume", pv] as const),
  ];
  // The form of a finalizer replaces characters of the driver's name.
  const present = new Set([...view.registered.keys()].map(attacherFinalizer));
  const drivers = new Set(view.registered.keys());
  const undeleted = view.inventory.volumes.filter(isDeleting).flatMap((pv) => {
    const driver = view.translated.get(pv.metadata.name)?.gates.driverName ?? pv.spec?.csi?.driver;
    const isHeld = hasFinalizer(pv, provisionerFinalizer);
    if (driver === undefined || drivers.has(driver) || !isHeld) return [];
    return [
      found("LS1505", {
        object: subjectOf("PersistentVolume", pv),
        field: "metadata.finalizers",
        evidence: `it is being deleted since ${pv.metadata.deletionTimestamp}, ${provisionerFinalizer} holds it, and no node has ${driver}`,
      }),
    ];
  });
  const byAttachers = objects.flatMap(([kind, object]) =>
    (object.metadata.finalizers ?? [])
      .filter((finalizer) => finalizer.startsWith(owned) && !present.has(finalizer))
      .map((finalizer) =>
        found("LS1505", {
          object: subjectOf(kind, object),
          field: "metadata.finalizers",
          evidence: `${finalizer} holds it, and no node has that driver`,
        }),
      ),
  );
  return [...byAttachers, ...undeleted];
}
