/** PersistentVolumes of in-tree plugins: whether they can be translated, and what the driver makes of them. */
import type { PersistentVolume, Stored } from "@longshore/kube";
import { provisionedByAnnotation } from "@longshore/storage";
import { checkInTreePV, explain, translateInTreePVToCSI } from "@longshore/translation";
import { type AssessView, pluginOfVolume, stateOf } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";
import { subjectOf } from "../inventory.ts";
import { translationFault } from "../translation-fault.ts";

/** Findings about PersistentVolumes. */
export function volumeRules(view: AssessView): RuleFinding[] {
  return view.inventory.volumes.flatMap((pv) => {
    const gates = pluginOfVolume(pv);
    if (gates === undefined) return [];
    const state = stateOf(view, gates);
    if (state === "gone") return [];
    const fault = translationFault(() => {
      checkInTreePV(pv);
      translateInTreePVToCSI(pv);
    });
    if (fault !== undefined) {
      const severity = state === "redirected" ? "error" : "warning";
      return [found("LS1201", { object: subjectOf("PersistentVolume", pv), severity, ...fault })];
    }
    return [...accessModes(view, pv), ...deletionTags(pv), ...clusterIds(pv)];
  });
}

/** Drivers of disks that mount a file system for writing on one node only. */
const diskDrivers: ReadonlySet<string> = new Set([
  "ebs.csi.aws.com",
  "pd.csi.storage.gke.io",
  "disk.csi.azure.com",
  "cinder.csi.openstack.org",
]);

function accessModes(view: AssessView, pv: Stored<PersistentVolume>): RuleFinding[] {
  const driver = view.translated.get(pv.metadata.name)?.gates.driverName ?? "";
  const modes = pv.spec?.accessModes ?? [];
  if (!diskDrivers.has(driver) || pv.spec?.volumeMode === "Block" || !modes.includes("ReadWriteMany"))
    return [];
  return [
    found("LS1207", {
      object: subjectOf("PersistentVolume", pv),
      field: "spec.accessModes",
      evidence: `${driver} does not mount a file system with the modes ${modes.join(", ")}`,
    }),
  ];
}

/** What was provisioned, in the tree or by the driver, has the tags; what was made by hand does not. */
function deletionTags(pv: Stored<PersistentVolume>): RuleFinding[] {
  const { awsElasticBlockStore: disk, persistentVolumeReclaimPolicy: policy } = pv.spec ?? {};
  if (disk == null || policy !== "Delete") return [];
  if (pv.metadata.annotations?.[provisionedByAnnotation] !== undefined) return [];
  return [
    found("LS1208", {
      object: subjectOf("PersistentVolume", pv),
      field: "spec.persistentVolumeReclaimPolicy",
      evidence: `${disk.volumeID} was not provisioned (there is no annotation ${provisionedByAnnotation}), and its policy is Delete`,
      remedy: `kubectl patch pv ${pv.metadata.name} -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}', or tag the disk`,
    }),
  ];
}

function clusterIds(pv: Stored<PersistentVolume>): RuleFinding[] {
  if (pv.spec?.rbd == null) return [];
  const { steps } = explain.translateInTreePVToCSI(pv);
  const step = steps.find(({ hashOf }) => hashOf !== undefined);
  if (step === undefined) return [];
  return [
    found("LS1210", {
      object: subjectOf("PersistentVolume", pv),
      field: "spec.rbd.monitors",
      evidence: `its cluster id is ${String(step.value)}, the MD5 of "${step.hashOf}"`,
    }),
  ];
}
