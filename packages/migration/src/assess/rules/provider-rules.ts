/** What the driver of one provider asks of a volume: tags, ids of clusters, registrations, secrets. */
import type { PersistentVolume, Stored } from "@longshore/kube";
import { provisionedByAnnotation } from "@longshore/storage";
import { explain, type MigrationGates } from "@longshore/translation";
import { type AssessView, pluginOfVolume, stateOf } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";
import { subjectOf } from "../inventory.ts";

/** Findings about volumes of single providers. */
export function providerRules(view: AssessView): RuleFinding[] {
  const registered = new Set(view.inventory.vsphereRegistrations.map(({ spec }) => spec?.volumepath));
  return view.inventory.volumes.flatMap((pv) => {
    const gates = pluginOfVolume(pv);
    if (gates === undefined || !view.translated.has(pv.metadata.name)) return [];
    if (stateOf(view, gates) === "gone") return [];
    return [
      ...deletionTags(pv),
      ...clusterIds(pv),
      ...secretNamespace(view, pv),
      ...vsphereRegistration(view, gates, pv, registered),
      ...portworxSecret(view, pv),
    ];
  });
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

/** Until 1.23 the translation looked for it in `default`, whatever the claim's namespace was. Source: docs/behaviour/volume-plugins.md 8.3. */
const firstWithClaimsNamespace = 24;

function secretNamespace(view: AssessView, pv: Stored<PersistentVolume>): RuleFinding[] {
  const share = pv.spec?.azureFile;
  const namespace = pv.spec?.claimRef?.namespace ?? "";
  if (share == null || share.secretNamespace != null || namespace === "" || namespace === "default")
    return [];
  const isOld = view.minor === undefined || view.minor < firstWithClaimsNamespace;
  return [
    found("LS1213", {
      object: subjectOf("PersistentVolume", pv),
      field: "spec.azureFile.secretNamespace",
      evidence: `it is not set: Secret ${share.secretName} is looked up in ${namespace}, the namespace of the claim, and before Kubernetes 1.${firstWithClaimsNamespace} in default`,
      severity: isOld ? "warning" : "info",
      remedy: isOld
        ? `kubectl get secret ${share.secretName} -n ${namespace} -o json, and create the same in default`
        : `Keep Secret ${share.secretName} in ${namespace}.`,
    }),
  ];
}

function vsphereRegistration(
  view: AssessView,
  gates: MigrationGates,
  pv: Stored<PersistentVolume>,
  registered: ReadonlySet<string | undefined>,
): RuleFinding[] {
  const path = pv.spec?.vsphereVolume?.volumePath;
  if (path === undefined || registered.has(path) || stateOf(view, gates) !== "redirected") return [];
  if (view.inventory.unread.has("CnsVSphereVolumeMigration")) return [];
  return [
    found("LS1214", {
      object: subjectOf("PersistentVolume", pv),
      field: "spec.vsphereVolume.volumePath",
      evidence: `no CnsVSphereVolumeMigration names ${path}`,
    }),
  ];
}

const portworxSecretAnnotation = "openstorage.io/auth-secret-name";
/** From here on the plugin is redirected, and the first releases of it do not hand the secret on. */
const firstPortworxRedirect = 31;
const portworxSecretKnown = 33;

function portworxSecret(view: AssessView, pv: Stored<PersistentVolume>): RuleFinding[] {
  const secret = pv.metadata.annotations?.[portworxSecretAnnotation];
  if (pv.spec?.portworxVolume == null || secret === undefined) return [];
  const { minor = firstPortworxRedirect } = view;
  if (minor < firstPortworxRedirect || minor >= portworxSecretKnown) return [];
  return [
    found("LS1215", {
      object: subjectOf("PersistentVolume", pv),
      field: `metadata.annotations[${portworxSecretAnnotation}]`,
      evidence: `it names Secret ${secret}, which the first releases of 1.31 and 1.32 do not hand to the driver`,
    }),
  ];
}
