/** `kubernetes.io/cinder` and `cinder.csi.openstack.org`. */

import { fsTypeRule, rewriteParameters, translateTopologies, withParameters } from "../class-parameters.ts";
import { csiSource, inlinePersistentVolume, traceCommon, traceDriver } from "../csi-source.ts";
import type { InTreePlugin } from "../in-tree-plugin.ts";
import { replaceSource } from "../objects.ts";
import { commonFields, requiredText } from "../source-fields.ts";
import { placementToCSI, placementToInTree } from "../topology.ts";
import type { Trace } from "../trace.ts";
import type { CinderSource, CSIPersistentVolumeSource, Draft } from "../types.ts";

const driverName = "cinder.csi.openstack.org";
const topologyKey = "topology.cinder.csi.openstack.org/zone";

/** OpenStack block storage. */
export const cinder: InTreePlugin = {
  inTreeName: "kubernetes.io/cinder",
  driverName,
  source: "cinder",
  volumeNameField: "volumeID",
  fields: { volumeID: requiredText, ...commonFields },
  topologyKey,

  pvToCSI(pv, trace) {
    const csi = toCSI(pv.spec?.cinder as CinderSource, "spec.cinder", trace);
    return replaceSource(pv, "cinder", "csi", csi, placementToCSI(pv, topologyKey, trace));
  },

  pvToInTree(pv, trace) {
    const csi = pv.spec?.csi as CSIPersistentVolumeSource;
    const source: Draft<CinderSource> = { volumeID: csi.volumeHandle };
    if (csi.fsType) source.fsType = csi.fsType;
    if (csi.readOnly) source.readOnly = true;
    trace?.({
      from: "spec.csi.volumeHandle",
      to: "spec.cinder.volumeID",
      value: source.volumeID,
      why: "copied",
    });
    traceCommon(trace, "spec.csi", "spec.cinder", csi);
    return replaceSource(pv, "csi", "cinder", source, placementToInTree(pv, topologyKey, undefined, trace));
  },

  inlineToCSI(volume, _podNamespace, trace) {
    const csi = toCSI(volume.cinder as CinderSource, "cinder", trace);
    return inlinePersistentVolume(`${driverName}-${csi.volumeHandle}`, csi, "ReadWriteOnce", trace);
  },

  storageClassToCSI(storageClass, trace) {
    const parameters = rewriteParameters(storageClass.parameters, { fstype: fsTypeRule }, trace);
    const topologies = translateTopologies(storageClass.allowedTopologies, topologyKey, trace);
    return withParameters(storageClass, parameters, topologies);
  },
};

function toCSI(source: CinderSource, path: string, trace: Trace | undefined): CSIPersistentVolumeSource {
  traceDriver(trace, path, "spec.csi", driverName);
  trace?.({ from: `${path}.volumeID`, to: "spec.csi.volumeHandle", value: source.volumeID, why: "copied" });
  traceCommon(trace, path, "spec.csi", source);
  return csiSource(driverName, source.volumeID, source.fsType, source.readOnly, undefined);
}
