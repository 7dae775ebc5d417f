/** `kubernetes.io/portworx-volume` and `pxd.portworx.com`. */

import { type ParameterRule, rewriteParameters, withParameters } from "../class-parameters.ts";
import { csiSource, inlinePersistentVolume, traceCommon, traceDriver } from "../csi-source.ts";
import type { InTreePlugin } from "../in-tree-plugin.ts";
import { entry, replaceSource } from "../objects.ts";
import { commonFields, requiredText } from "../source-fields.ts";
import type { Trace } from "../trace.ts";
import type { CSIPersistentVolumeSource, Draft, PortworxVolumeSource, SecretReference } from "../types.ts";

const driverName = "pxd.portworx.com";
const SECRET_NAME = "openstorage.io/auth-secret-name";
const SECRET_NAMESPACE = "openstorage.io/auth-secret-namespace";
const SECRET_KINDS = [
  "provisioner",
  "node-publish",
  "controller-expand",
  "node-expand",
  "controller-publish",
  "node-stage",
];

/** Portworx volume. */
export const portworx: InTreePlugin = {
  inTreeName: "kubernetes.io/portworx-volume",
  driverName,
  source: "portworxVolume",
  volumeNameField: "volumeID",
  fields: { volumeID: requiredText, ...commonFields },

  pvToCSI(pv, trace) {
    const csi = toCSI(pv.spec?.portworxVolume as PortworxVolumeSource, "spec.portworxVolume", trace);
    const name = entry(pv.metadata?.annotations, SECRET_NAME);
    const namespace = entry(pv.metadata?.annotations, SECRET_NAMESPACE);
    if (name !== undefined && namespace !== undefined) {
      addSecret(csi, name, namespace);
      const from = `metadata.annotations[${SECRET_NAME}]`;
      const why = "one secret for every call of the driver";
      trace?.({ from, to: "spec.csi.*SecretRef", value: `${namespace}/${name}`, why });
    }
    return replaceSource(pv, "portworxVolume", "csi", csi, {});
  },

  pvToInTree(pv, trace) {
    const csi = pv.spec?.csi as CSIPersistentVolumeSource;
    const source: Draft<PortworxVolumeSource> = { volumeID: csi.volumeHandle };
    if (csi.fsType) source.fsType = csi.fsType;
    if (csi.readOnly) source.readOnly = true;
    trace?.({
      from: "spec.csi.volumeHandle",
      to: "spec.portworxVolume.volumeID",
      value: source.volumeID,
      why: "copied",
    });
    traceCommon(trace, "spec.csi", "spec.portworxVolume", csi);
    return replaceSource(pv, "csi", "portworxVolume", source, {});
  },

  inlineToCSI(volume, _podNamespace, trace) {
    const source = volume.portworxVolume as PortworxVolumeSource;
    const csi = toCSI(source, "portworxVolume", trace);
    const accessMode = source.readOnly ? "ReadOnlyMany" : "ReadWriteOnce";
    return inlinePersistentVolume(`${driverName}-${csi.volumeHandle}`, csi, accessMode, trace);
  },

  storageClassToCSI(storageClass, trace) {
    const parameters = rewriteParameters(storageClass.parameters, classRules, trace);
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

const toEverySecret = (suffix: string): ParameterRule => {
  return (value) =>
    SECRET_KINDS.map((kind) => [`csi.storage.k8s.io/${kind}-secret-${suffix}`, value] as const);
};

const classRules = { [SECRET_NAME]: toEverySecret("name"), [SECRET_NAMESPACE]: toEverySecret("namespace") };

function toCSI(
  source: PortworxVolumeSource,
  path: string,
  trace: Trace | undefined,
): Draft<CSIPersistentVolumeSource> {
  traceDriver(trace, path, "spec.csi", driverName);
  trace?.({ from: `${path}.volumeID`, to: "spec.csi.volumeHandle", value: source.volumeID, why: "copied" });
  traceCommon(trace, path, "spec.csi", { fsType: source.fsType });
  return csiSource(driverName, source.volumeID, source.fsType, false, undefined);
}

function addSecret(csi: Draft<CSIPersistentVolumeSource>, name: string, namespace: string): void {
  const secret: Draft<SecretReference> = {};
  if (name !== "") secret.name = name;
  if (namespace !== "") secret.namespace = namespace;
  csi.controllerPublishSecretRef = secret;
  csi.nodeStageSecretRef = secret;
  csi.nodePublishSecretRef = secret;
  csi.controllerExpandSecretRef = secret;
  csi.nodeExpandSecretRef = secret;
}
