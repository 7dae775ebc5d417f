/** `kubernetes.io/vsphere-volume` and `csi.vsphere.vmware.com`. */

import {
  fsTypeRule,
  type ParameterRule,
  rewriteParameters,
  translateTopologies,
  withParameters,
} from "../class-parameters.ts";
import { csiSource, inlinePersistentVolume, traceCommon, traceDriver } from "../csi-source.ts";
import type { InTreePlugin } from "../in-tree-plugin.ts";
import { entry, replaceSource } from "../objects.ts";
import { optionalText, requiredText } from "../source-fields.ts";
import { zoneAndRegionToCSI, zoneAndRegionToInTree } from "../topology.ts";
import type { Trace } from "../trace.ts";
import { objectLabel, TranslationError } from "../translation-error.ts";
import type { CSIPersistentVolumeSource, Draft, VsphereVirtualDiskSource } from "../types.ts";

const driverName = "csi.vsphere.vmware.com";
const zoneKey = "topology.csi.vmware.com/zone";
const regionKey = "topology.csi.vmware.com/region";
const POLICY = "storagepolicyname";
/** The attribute with the path of a disk that the driver created for an in-tree class. */
const INITIAL_PATH = "initialvolumefilepath";

/** vSphere virtual disk. */
export const vsphere: InTreePlugin = {
  inTreeName: "kubernetes.io/vsphere-volume",
  driverName,
  source: "vsphereVolume",
  volumeNameField: "volumePath",
  fields: { volumePath: requiredText, fsType: optionalText, storagePolicyName: optionalText },
  topologyKey: zoneKey,

  pvToCSI(pv, trace) {
    const source = pv.spec?.vsphereVolume as VsphereVirtualDiskSource;
    const csi = toCSI(source, "spec.vsphereVolume", trace);
    return replaceSource(pv, "vsphereVolume", "csi", csi, zoneAndRegionToCSI(pv, zoneKey, regionKey, trace));
  },

  pvToInTree(pv, trace) {
    const csi = pv.spec?.csi as CSIPersistentVolumeSource;
    const volumePath = entry(csi.volumeAttributes, INITIAL_PATH) ?? "";
    const source: Draft<VsphereVirtualDiskSource> = { volumePath };
    if (csi.fsType) source.fsType = csi.fsType;
    if (trace !== undefined) {
      const from = `spec.csi.volumeAttributes[${INITIAL_PATH}]`;
      trace({
        from,
        to: "spec.vsphereVolume.volumePath",
        value: volumePath,
        why: "the path the driver reported",
      });
      traceCommon(trace, "spec.csi", "spec.vsphereVolume", { fsType: csi.fsType });
      const policy = entry(csi.volumeAttributes, POLICY);
      const why = "dropped: it takes part in making a disk only";
      if (policy) trace({ from: `spec.csi.volumeAttributes[${POLICY}]`, to: "", value: policy, why });
    }
    const placement = zoneAndRegionToInTree(pv, zoneKey, regionKey, trace);
    return replaceSource(pv, "csi", "vsphereVolume", source, placement);
  },

  /** The handle of a volume that was translated, not made by the driver, is the path of the disk. */
  completeInTree(inTree, csi, trace) {
    const source = inTree.spec?.vsphereVolume as VsphereVirtualDiskSource;
    if (source.volumePath !== "" || !csi.volumeHandle.startsWith("[")) return inTree;
    const storagePolicyName = entry(csi.volumeAttributes, POLICY);
    const to = "spec.vsphereVolume.volumePath";
    trace({ from: "spec.csi.volumeHandle", to, value: csi.volumeHandle, why: "a path in brackets" });
    tracePolicy(
      trace,
      `spec.csi.volumeAttributes[${POLICY}]`,
      "spec.vsphereVolume.storagePolicyName",
      storagePolicyName,
    );
    const vsphereVolume = {
      ...source,
      volumePath: csi.volumeHandle,
      ...(storagePolicyName ? { storagePolicyName } : {}),
    };
    return { ...inTree, spec: { ...inTree.spec, vsphereVolume } };
  },

  inlineToCSI(volume, _podNamespace, trace) {
    const source = volume.vsphereVolume as VsphereVirtualDiskSource;
    if (source.storagePolicyName) {
      // The reference implementation crashes here, so no component may count on such a volume crossing.
      throw new TranslationError(
        objectLabel("Volume", volume),
        "vsphereVolume.storagePolicyName",
        "a pod's own vSphere volume cannot carry a storage policy through CSI",
        "remove it, or put the disk in a PersistentVolume and use it through a claim",
      );
    }
    const csi = toCSI(source, "vsphereVolume", trace);
    return inlinePersistentVolume(`${driverName}-${csi.volumeHandle}`, csi, "ReadWriteOnce", trace);
  },

  storageClassToCSI(storageClass, trace) {
    const parameters = rewriteParameters(storageClass.parameters, classRules, trace, true);
    // Makes the driver report the path of the disk, which the in-tree form of the volume needs.
    parameters.csimigration = "true";
    trace?.({
      from: "",
      to: "parameters[csimigration]",
      value: "true",
      why: "makes the driver report the disk's path",
    });
    const topologies = translateTopologies(storageClass.allowedTopologies, zoneKey, trace);
    return withParameters(storageClass, parameters, topologies);
  },
};

const forMigration =
  (name: string): ParameterRule =>
  (value) => [[`${name}-migrationparam`, value]];

const classRules: { readonly [name: string]: ParameterRule } = {
  fstype: fsTypeRule,
  [POLICY]: (value) => [[POLICY, value]],
  datastore: forMigration("datastore"),
  diskformat: forMigration("diskformat"),
  hostfailurestotolerate: forMigration("hostfailurestotolerate"),
  forceprovisioning: forMigration("forceprovisioning"),
  cachereservation: forMigration("cachereservation"),
  diskstripes: forMigration("diskstripes"),
  objectspacereservation: forMigration("objectspacereservation"),
  iopslimit: forMigration("iopslimit"),
};

function toCSI(
  source: VsphereVirtualDiskSource,
  path: string,
  trace: Trace | undefined,
): CSIPersistentVolumeSource {
  const policy = source.storagePolicyName;
  if (trace !== undefined) {
    traceDriver(trace, path, "spec.csi", driverName);
    trace({
      from: `${path}.volumePath`,
      to: "spec.csi.volumeHandle",
      value: source.volumePath,
      why: "copied",
    });
    traceCommon(trace, path, "spec.csi", { fsType: source.fsType });
    tracePolicy(trace, `${path}.storagePolicyName`, `spec.csi.volumeAttributes[${POLICY}]`, policy);
  }
  return csiSource(
    driverName,
    source.volumePath,
    source.fsType,
    false,
    policy ? { [POLICY]: policy } : undefined,
  );
}

function tracePolicy(trace: Trace, from: string, to: string, policy: string | undefined): void {
  if (policy) trace({ from, to, value: policy, why: "the storage policy" });
}
