/** `kubernetes.io/rbd` and `rbd.csi.ceph.com`, in the form the translation last had (Kubernetes 1.30). */

import { fsTypeRule, type ParameterRule, rewriteParameters, withParameters } from "../class-parameters.ts";
import { csiSource, inlinePersistentVolume, traceCommon, traceDriver } from "../csi-source.ts";
import { utf8Bytes } from "../go-text.ts";
import type { InTreePlugin } from "../in-tree-plugin.ts";
import { md5Hex } from "../md5.ts";
import { entry, replaceSource } from "../objects.ts";
import { commonFields, optionalText, requiredText } from "../source-fields.ts";
import type { Trace } from "../trace.ts";
import { objectLabel, TranslationError } from "../translation-error.ts";
import type {
  CSIPersistentVolumeSource,
  Draft,
  DraftMap,
  PersistentVolume,
  RBDSource,
  SecretReference,
} from "../types.ts";

const driverName = "rbd.csi.ceph.com";
/** Keeps the handle of a volume that was CSI first, so that it gets it back. */
const HANDLE_ANNOTATION = "rbd.csi.ceph.com/volume-handle";
const DYNAMIC_IMAGE = "kubernetes-dynamic-pvc-";
const DEFAULT_POOL = "rbd";
const DEFAULT_USER = "admin";
const DEFAULT_FEATURES = "layering";
const PROVISIONER_SECRET = "csi.storage.k8s.io/provisioner-secret-name";
const SECRET_KINDS = ["provisioner", "node-stage", "controller-expand"];
/** Kept as annotations while a volume is in its in-tree form, which has no room for them. */
const KEPT_ATTRIBUTES = ["clusterID", "journalPool", "imageFeatures", "imageFormat"];

/** Ceph RADOS block device. */
export const rbd: InTreePlugin = {
  inTreeName: "kubernetes.io/rbd",
  driverName,
  source: "rbd",
  fields: {
    monitors: { type: "list of texts", required: true },
    image: requiredText,
    pool: optionalText,
    user: optionalText,
    keyring: optionalText,
    secretRef: { type: "object" },
    ...commonFields,
  },

  pvToCSI(pv, trace) {
    const source = pv.spec?.rbd as RBDSource;
    const { handle, attributes } = identity(pv, source, trace);
    const annotations = pv.metadata?.annotations;
    attributes.imageFeatures = entry(annotations, "imageFeatures") || DEFAULT_FEATURES;
    attributes.imageFormat = entry(annotations, "imageFormat") ?? "";
    attributes.imageName = source.image;
    attributes.journalPool = entry(annotations, "journalPool") ?? "";
    attributes.migration = "true";
    attributes.pool = source.pool ?? "";
    attributes.tryOtherMounters = "true";
    const csi = csiSource(driverName, handle, source.fsType, false, attributes);
    if (source.secretRef != null)
      addSecret(csi, secretReference(source.secretRef.name, source.secretRef.namespace));
    const accessModes = keepModes(pv.spec?.accessModes, source.readOnly ? "ReadOnlyMany" : "ReadWriteOnce");
    if (trace !== undefined) traceToCSI(trace, "spec.rbd", csi, attributes);
    trace?.({
      from: "spec.rbd.readOnly",
      to: "spec.accessModes",
      value: accessModes,
      why: "readers only, or one writer",
    });
    return replaceSource(pv, "rbd", "csi", csi, { accessModes });
  },

  pvToInTree(pv, trace) {
    const csi = pv.spec?.csi as CSIPersistentVolumeSource;
    const attribute = (name: string) => entry(csi.volumeAttributes, name) ?? "";
    // The monitors cannot be recovered from their hash; only the driver uses this in-tree form.
    const source: Draft<RBDSource> = { monitors: [""], image: attribute("imageName") };
    if (csi.fsType) source.fsType = csi.fsType;
    if (attribute("pool") !== "") source.pool = attribute("pool");
    source.user = attribute("adminId") || DEFAULT_USER;
    if (csi.readOnly) source.readOnly = true;
    const secret = csi.nodeStageSecretRef;
    if (secret != null) source.secretRef = secretReference(secret.name, secret.namespace);
    const annotations: DraftMap = { ...pv.metadata?.annotations, [HANDLE_ANNOTATION]: csi.volumeHandle };
    for (const name of KEPT_ATTRIBUTES) annotations[name] = attribute(name);
    if (trace !== undefined) traceBack(trace, csi, source, annotations);
    return replaceSource(pv, "csi", "rbd", source, { metadata: { ...pv.metadata, annotations } });
  },

  inlineToCSI(volume, podNamespace, trace) {
    const source = volume.rbd as RBDSource;
    const attributes: DraftMap = {
      clusterID: clusterID(source, "rbd", trace),
      imageFeatures: DEFAULT_FEATURES,
      pool: source.pool || DEFAULT_POOL,
      staticVolume: "true",
    };
    const csi = csiSource(driverName, source.image, source.fsType, false, attributes);
    addSecret(csi, source.secretRef == null ? {} : secretReference(source.secretRef.name, podNamespace));
    if (trace !== undefined) {
      trace({
        from: "rbd.image",
        to: "spec.csi.volumeHandle",
        value: source.image,
        why: "the image as it is named",
      });
      traceToCSI(trace, "rbd", csi, attributes);
    }
    const accessMode = source.readOnly ? "ReadOnlyMany" : "ReadWriteOnce";
    return inlinePersistentVolume(`${driverName}-${source.image}`, csi, accessMode, trace);
  },

  storageClassToCSI(storageClass, trace) {
    const parameters: DraftMap = {
      // Defaults: the parameters of the class follow and replace them.
      ...everySecret("namespace", "default"),
      migration: "true",
      pool: DEFAULT_POOL,
      ...rewriteParameters(storageClass.parameters, classRules, trace, true),
    };
    const refuse = (field: string, problem: string, remedy: string) => {
      return new TranslationError(objectLabel("StorageClass", storageClass.metadata), field, problem, remedy);
    };
    if (!parameters[PROVISIONER_SECRET]) {
      throw refuse(
        "parameters.adminSecretName",
        "the class names no secret of the Ceph administrator",
        "set it",
      );
    }
    if (!parameters.monitors)
      throw refuse("parameters.monitors", "the class names no Ceph monitors", "set them");
    parameters.clusterID = md5Hex(parameters.monitors);
    trace?.({
      from: "parameters[monitors]",
      to: "parameters[clusterID]",
      value: parameters.clusterID,
      why: "MD5 of the monitors names the cluster",
      hashOf: parameters.monitors,
    });
    trace?.({
      from: "provisioner",
      to: "provisioner",
      value: driverName,
      why: "the driver that takes this plugin over",
    });
    return {
      ...withParameters(storageClass, parameters, storageClass.allowedTopologies),
      provisioner: driverName,
    };
  },
};

const everySecret = (suffix: string, value: string): DraftMap => {
  return Object.fromEntries(
    SECRET_KINDS.map((kind) => [`csi.storage.k8s.io/${kind}-secret-${suffix}`, value]),
  );
};

const renamed =
  (name: string): ParameterRule =>
  (value) => [[name, value]];

const classRules: { readonly [name: string]: ParameterRule } = {
  fstype: fsTypeRule,
  imagefeatures: renamed("imageFeatures"),
  pool: renamed("pool"),
  imageformat: renamed("imageFormat"),
  adminid: renamed("adminId"),
  adminsecretname: (value) => Object.entries(everySecret("name", value)),
  adminsecretnamespace: (value) => Object.entries(everySecret("namespace", value)),
  monitors: renamed("monitors"),
};

/** Handle and cluster: those of the time when the volume was CSI, else made from monitors, image and pool. */
function identity(
  pv: PersistentVolume,
  source: RBDSource,
  trace: Trace | undefined,
): { readonly handle: string; readonly attributes: DraftMap } {
  const kept = entry(pv.metadata?.annotations, HANDLE_ANNOTATION);
  if (kept) {
    const from = `metadata.annotations[${HANDLE_ANNOTATION}]`;
    trace?.({ from, to: "spec.csi.volumeHandle", value: kept, why: "the handle the volume had as CSI" });
    return { handle: kept, attributes: { clusterID: entry(pv.metadata?.annotations, "clusterID") ?? "" } };
  }
  const cluster = clusterID(source, "spec.rbd", trace);
  const image = source.image.startsWith(DYNAMIC_IMAGE)
    ? source.image.slice(DYNAMIC_IMAGE.length)
    : source.image;
  let pool = "";
  for (const byte of utf8Bytes(source.pool ?? "")) pool += byte.toString(16).padStart(2, "0");
  const handle = `mig_mons-${cluster}_image-${image}_${pool}`;
  trace?.({
    from: "spec.rbd.monitors, spec.rbd.image, spec.rbd.pool",
    to: "spec.csi.volumeHandle",
    value: handle,
    why: "MD5 of the monitors, the image's own part of its name, the pool in hexadecimal",
    hashOf: monitorsText(source),
  });
  return { handle, attributes: { clusterID: cluster, staticVolume: "true" } };
}

function monitorsText(source: RBDSource): string {
  return (source.monitors ?? []).join(",");
}

function clusterID(source: RBDSource, path: string, trace: Trace | undefined): string {
  const hashOf = monitorsText(source);
  const value = md5Hex(hashOf);
  const why = "MD5 of the monitors names the cluster";
  trace?.({ from: `${path}.monitors`, to: "spec.csi.volumeAttributes[clusterID]", value, why, hashOf });
  return value;
}

function secretReference(name: string | undefined, namespace: string | undefined): SecretReference {
  const secret: Draft<SecretReference> = {};
  if (name) secret.name = name;
  if (namespace) secret.namespace = namespace;
  return secret;
}

function addSecret(csi: Draft<CSIPersistentVolumeSource>, secret: SecretReference): void {
  csi.nodeStageSecretRef = secret;
  csi.controllerExpandSecretRef = secret;
}

function keepModes(modes: readonly string[] | null | undefined, mode: string): readonly string[] {
  return modes?.length === 1 && modes[0] === mode ? modes : [mode];
}

function traceToCSI(trace: Trace, path: string, csi: CSIPersistentVolumeSource, attributes: DraftMap): void {
  traceDriver(trace, path, "spec.csi", driverName);
  const origin: { readonly [attribute: string]: string } = {
    imageName: `${path}.image`,
    pool: `${path}.pool`,
    imageFormat: "metadata.annotations[imageFormat]",
    journalPool: "metadata.annotations[journalPool]",
    imageFeatures: "metadata.annotations[imageFeatures]",
  };
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "clusterID") continue;
    trace({
      from: origin[name] ?? "",
      to: `spec.csi.volumeAttributes[${name}]`,
      value,
      why: "as the driver reads it",
    });
  }
  const { namespace = "", name } = csi.nodeStageSecretRef ?? {};
  if (name) {
    const to = "spec.csi.nodeStageSecretRef, spec.csi.controllerExpandSecretRef";
    trace({ from: `${path}.secretRef`, to, value: `${namespace}/${name}`, why: "the secret of the image" });
  }
  traceCommon(trace, path, "spec.csi", csi);
}

function traceBack(
  trace: Trace,
  csi: CSIPersistentVolumeSource,
  source: RBDSource,
  annotations: DraftMap,
): void {
  const from = "spec.csi.volumeAttributes";
  trace({ from: `${from}[imageName]`, to: "spec.rbd.image", value: source.image, why: "copied" });
  trace({ from: "", to: "spec.rbd.monitors", value: [""], why: "a hash cannot be reversed" });
  if (source.pool) trace({ from: `${from}[pool]`, to: "spec.rbd.pool", value: source.pool, why: "copied" });
  trace({
    from: `${from}[adminId]`,
    to: "spec.rbd.user",
    value: source.user,
    why: `the user, else ${DEFAULT_USER}`,
  });
  for (const name of [HANDLE_ANNOTATION, ...KEPT_ATTRIBUTES]) {
    const origin = name === HANDLE_ANNOTATION ? "spec.csi.volumeHandle" : `${from}[${name}]`;
    const why = "kept for the way to CSI";
    trace({ from: origin, to: `metadata.annotations[${name}]`, value: annotations[name], why });
  }
  traceCommon(trace, "spec.csi", "spec.rbd", csi);
}
