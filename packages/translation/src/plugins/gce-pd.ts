/** `kubernetes.io/gce-pd` and `pd.csi.storage.gke.io`. */

import { fsTypeRule, rewriteZonedClass } from "../class-parameters.ts";
import { csiSource, inlinePersistentVolume, traceCommon, traceDriver } from "../csi-source.ts";
import { parsePartition } from "../go-text.ts";
import type { InTreePlugin } from "../in-tree-plugin.ts";
import { entry, replaceSource } from "../objects.ts";
import { commonFields, requiredText } from "../source-fields.ts";
import { BETA_ZONE, placementToCSI, placementToInTree, ZONE, ZONE_DELIMITER } from "../topology.ts";
import type { Trace } from "../trace.ts";
import { type Fault, isFault, objectLabel, TranslationError } from "../translation-error.ts";
import type {
  CSIPersistentVolumeSource,
  Draft,
  GCEPersistentDiskSource,
  PersistentVolume,
} from "../types.ts";

const driverName = "pd.csi.storage.gke.io";
const topologyKey = "topology.gke.io/zone";
const UNSPECIFIED = "UNSPECIFIED";
/** A handle reads projects/<project>/zones|regions/<place>/disks/<name>. */
const HANDLE_PARTS = 6;

/** Google Compute Engine persistent disk. */
export const gcePd: InTreePlugin = {
  inTreeName: "kubernetes.io/gce-pd",
  driverName,
  source: "gcePersistentDisk",
  fields: { pdName: requiredText, partition: { type: "whole number" }, ...commonFields },
  topologyKey,

  pvToCSI(pv, trace) {
    const source = pv.spec?.gcePersistentDisk as GCEPersistentDiskSource;
    const csi = toCSI(source, placeOf(pv), "spec.gcePersistentDisk", trace);
    const accessModes = crossedAccessModes(pv.spec?.accessModes, trace);
    const { nodeAffinity, metadata } = placementToCSI(pv, topologyKey, trace);
    return replaceSource(pv, "gcePersistentDisk", "csi", csi, { nodeAffinity, metadata, accessModes });
  },

  pvToInTree(pv, trace) {
    const csi = pv.spec?.csi as CSIPersistentVolumeSource;
    const parts = csi.volumeHandle.split("/");
    const label = () => objectLabel("PersistentVolume", pv.metadata);
    if (parts.length < HANDLE_PARTS) {
      const fault = handleFault(csi.volumeHandle);
      throw new TranslationError(label(), "spec.csi.volumeHandle", fault.problem, fault.remedy);
    }
    const source: Draft<GCEPersistentDiskSource> = { pdName: parts[5] as string };
    if (csi.fsType) source.fsType = csi.fsType;
    const text = entry(csi.volumeAttributes, "partition");
    if (text) {
      const partition = parsePartition(text);
      if (isFault(partition)) {
        throw new TranslationError(
          label(),
          "spec.csi.volumeAttributes.partition",
          partition.problem,
          partition.remedy,
        );
      }
      if (partition !== 0) source.partition = partition;
    }
    if (csi.readOnly) source.readOnly = true;
    if (trace !== undefined) traceBack(trace, csi, source);
    return replaceSource(
      pv,
      "csi",
      "gcePersistentDisk",
      source,
      placementToInTree(pv, topologyKey, regionOf, trace),
    );
  },

  inlineToCSI(volume, _podNamespace, trace) {
    const source = volume.gcePersistentDisk as GCEPersistentDiskSource;
    const csi = toCSI(source, `zones/${UNSPECIFIED}`, "gcePersistentDisk", trace);
    const accessMode = source.readOnly ? "ReadOnlyMany" : "ReadWriteOnce";
    return inlinePersistentVolume(`${driverName}-${source.pdName}`, csi, accessMode, trace);
  },

  storageClassToCSI(storageClass, trace) {
    return rewriteZonedClass(storageClass, topologyKey, { fstype: fsTypeRule }, trace);
  },

  repairVolumeHandle,
};

function toCSI(
  source: GCEPersistentDiskSource,
  place: string,
  path: string,
  trace: Trace | undefined,
): CSIPersistentVolumeSource {
  const handle = `projects/${UNSPECIFIED}/${place}/disks/${source.pdName}`;
  // Empty for the whole disk, where EBS has "0": each driver reads its own form (docs/behaviour/volume-plugins.md 8.3).
  const partition = source.partition ? String(source.partition) : "";
  if (trace !== undefined) {
    traceDriver(trace, path, "spec.csi", driverName);
    const why =
      "the disk's name, with its zone or region from the zone label; the project is filled in at attach";
    trace({ from: `${path}.pdName`, to: "spec.csi.volumeHandle", value: handle, why });
    trace({
      from: `${path}.partition`,
      to: "spec.csi.volumeAttributes[partition]",
      value: partition,
      why: "in decimal, empty for the whole disk",
    });
    traceCommon(trace, path, "spec.csi", source);
  }
  return csiSource(driverName, handle, source.fsType, source.readOnly, { partition });
}

function traceBack(trace: Trace, csi: CSIPersistentVolumeSource, source: GCEPersistentDiskSource): void {
  const to = "spec.gcePersistentDisk";
  trace({
    from: "spec.csi.volumeHandle",
    to: `${to}.pdName`,
    value: source.pdName,
    why: "the last part of the handle",
  });
  if (source.partition !== undefined) {
    const from = "spec.csi.volumeAttributes[partition]";
    trace({ from, to: `${to}.partition`, value: source.partition, why: "as a number" });
  }
  traceCommon(trace, "spec.csi", to, csi);
}

/** `zones/<zone>` of a zonal disk, `regions/<region>` of a regional one, from the volume's zone label. */
function placeOf(pv: PersistentVolume): string {
  const labels = pv.metadata?.labels;
  const key = entry(labels, BETA_ZONE) ? BETA_ZONE : ZONE;
  const label = entry(labels, key);
  if (!label) return `zones/${UNSPECIFIED}`;
  if (!label.includes(ZONE_DELIMITER)) return `zones/${label}`;
  const region = regionOf(label.split(ZONE_DELIMITER));
  if (!isFault(region)) return `regions/${region}`;
  const object = objectLabel("PersistentVolume", pv.metadata);
  throw new TranslationError(object, `metadata.labels[${key}]`, region.problem, region.remedy);
}

/** In-tree, many writers meant one; the driver would take it at its word. */
function crossedAccessModes(
  modes: readonly string[] | null | undefined,
  trace: Trace | undefined,
): readonly string[] | null | undefined {
  if (modes == null) return modes;
  const onlyReaders =
    modes.includes("ReadOnlyMany") && !modes.includes("ReadWriteOnce") && !modes.includes("ReadWriteMany");
  const mode = onlyReaders ? "ReadOnlyMany" : "ReadWriteOnce";
  if (modes.length === 1 && modes[0] === mode) return modes;
  const why = "a disk has one writer or only readers";
  trace?.({ from: "spec.accessModes", to: "spec.accessModes", value: [mode], why });
  return [mode];
}

function handleFault(handle: string): Fault {
  return {
    problem: `${JSON.stringify(handle)} is not the handle of a persistent disk`,
    remedy: "write it as projects/<project>/zones/<zone>/disks/<name>",
  };
}

/** The region is a zone's name without its last part: europe-west1-b lies in europe-west1. */
function regionOf(zones: readonly string[]): string | Fault {
  const remedy = "use zones of one region, as <continent>-<region>-<letter>";
  const regions = new Set<string>();
  for (const zone of zones) {
    const parts = zone.split("-");
    if (parts.length !== 3)
      return { problem: `${JSON.stringify(zone)} is not the name of a GCE zone`, remedy };
    regions.add(`${parts[0]}-${parts[1]}`);
  }
  const [region] = regions;
  if (region === undefined || regions.size > 1) {
    return { problem: `zones ${JSON.stringify(zones)} do not lie in one region`, remedy };
  }
  return region;
}

/** Fills in the project, and the zone or region, of a handle from the node's own path. */
function repairVolumeHandle(volumeHandle: string, nodeID: string): string {
  const handle = volumeHandle.split("/");
  const refuse = (field: string, fault: Fault) => {
    return new TranslationError(`Volume ${JSON.stringify(volumeHandle)}`, field, fault.problem, fault.remedy);
  };
  if (handle.length < HANDLE_PARTS) throw refuse("volumeHandle", handleFault(volumeHandle));
  // A handle with a project was made by the driver and is complete.
  if (handle[1] !== UNSPECIFIED) return volumeHandle;
  const node = nodeID.split("/");
  if (node.length < HANDLE_PARTS) {
    throw refuse("nodeID", {
      problem: `${JSON.stringify(nodeID)} is not the ID of a GCE instance`,
      remedy: "the driver's node ID must read projects/<project>/zones/<zone>/instances/<name>",
    });
  }
  const [project, nodeZone, kind, place, name] = [
    node[1],
    node[3] as string,
    handle[2],
    handle[3],
    handle[5],
  ];
  if (kind === "zones")
    return `projects/${project}/zones/${place === UNSPECIFIED ? nodeZone : place}/disks/${name}`;
  if (kind !== "regions") throw refuse("volumeHandle", handleFault(volumeHandle));
  if (place !== UNSPECIFIED) return `projects/${project}/regions/${place}/disks/${name}`;
  const region = regionOf([nodeZone]);
  if (isFault(region)) throw refuse("nodeID", region);
  return `projects/${project}/regions/${region}/disks/${name}`;
}
