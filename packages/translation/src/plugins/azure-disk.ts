/** `kubernetes.io/azure-disk` and `disk.csi.azure.com`. */

import { rewriteZonedClass } from "../class-parameters.ts";
import { csiSource, inlinePersistentVolume, traceCommon, traceDriver } from "../csi-source.ts";
import { lowerCase } from "../go-text.ts";
import type { InTreePlugin } from "../in-tree-plugin.ts";
import { replaceSource } from "../objects.ts";
import { commonFields, optionalText, requiredText } from "../source-fields.ts";
import type { Trace } from "../trace.ts";
import { objectLabel, TranslationError } from "../translation-error.ts";
import type { AzureDiskSource, CSIPersistentVolumeSource, Draft, DraftMap } from "../types.ts";

const driverName = "disk.csi.azure.com";
const topologyKey = "topology.disk.csi.azure.com/zone";
const MANAGED = "Managed";
// `[^\n]` is the dot of Go: that of JavaScript also excludes carriage returns and U+2028.
const MANAGED_DISK =
  /[^\n]*\/subscriptions\/(?:[^\n]*)\/resourceGroups\/(?:[^\n]*)\/providers\/Microsoft.Compute\/disks\/([^\n]+)/u;
const BLOB_DISK = /http(?:[^\n]*):\/\/(?:[^\n]*)\/vhds\/([^\n]+)/u;

/** Azure managed disk. */
export const azureDisk: InTreePlugin = {
  inTreeName: "kubernetes.io/azure-disk",
  driverName,
  source: "azureDisk",
  fields: {
    diskName: requiredText,
    diskURI: requiredText,
    cachingMode: optionalText,
    kind: optionalText,
    ...commonFields,
  },
  topologyKey,

  pvToCSI(pv, trace) {
    const source = pv.spec?.azureDisk as AzureDiskSource;
    const csi = toCSI(source, "spec.azureDisk", () => objectLabel("PersistentVolume", pv.metadata), trace);
    return replaceSource(pv, "azureDisk", "csi", csi, {});
  },

  pvToInTree(pv, trace) {
    const csi = pv.spec?.csi as CSIPersistentVolumeSource;
    const diskURI = csi.volumeHandle;
    const diskName = (diskURI.startsWith("http") ? BLOB_DISK : MANAGED_DISK).exec(diskURI)?.[1];
    if (diskName === undefined) {
      throw new TranslationError(
        objectLabel("PersistentVolume", pv.metadata),
        "spec.csi.volumeHandle",
        `${JSON.stringify(diskURI)} names no Azure disk`,
        "write /subscriptions/<id>/resourceGroups/<group>/providers/Microsoft.Compute/disks/<name>",
      );
    }
    const source: Draft<AzureDiskSource> = { diskName, diskURI };
    // Set even where they say nothing: they are pointers in the reference, which never leaves them nil.
    source.fsType = csi.fsType ?? "";
    source.readOnly = csi.readOnly ?? false;
    source.kind = MANAGED;
    for (const [name, value] of Object.entries(csi.volumeAttributes ?? {})) {
      const lower = lowerCase(name);
      if (lower === "cachingmode" && value !== "") source.cachingMode = value;
      else if (lower === "fstype" && value !== "") source.fsType = value;
    }
    if (trace !== undefined) traceBack(trace, source);
    return replaceSource(pv, "csi", "azureDisk", source, {});
  },

  inlineToCSI(volume, _podNamespace, trace) {
    const source = volume.azureDisk as AzureDiskSource;
    const csi = toCSI(withoutEmpty(source), "azureDisk", () => objectLabel("Volume", volume), trace);
    return inlinePersistentVolume(source.diskURI, csi, "ReadWriteOnce", trace);
  },

  storageClassToCSI(storageClass, trace) {
    return rewriteZonedClass(storageClass, topologyKey, {}, trace, withoutFaultDomains);
  },
};

/** In a pod's volume an empty caching mode or file system says nothing. */
function withoutEmpty(source: AzureDiskSource): AzureDiskSource {
  return { ...source, cachingMode: source.cachingMode || undefined, fsType: source.fsType || undefined };
}

function toCSI(
  source: AzureDiskSource,
  path: string,
  label: () => string,
  trace: Trace | undefined,
): CSIPersistentVolumeSource {
  const { kind } = source;
  if (kind != null && kind.toLowerCase() !== "managed") {
    const problem = `a disk of kind ${JSON.stringify(kind)} cannot be used through CSI`;
    throw new TranslationError(label(), `${path}.kind`, problem, "make it a managed disk first");
  }
  const attributes: DraftMap = { kind: MANAGED };
  if (source.cachingMode != null) attributes.cachingmode = source.cachingMode;
  if (source.fsType != null) attributes.fstype = source.fsType;
  if (trace !== undefined) {
    traceDriver(trace, path, "spec.csi", driverName);
    trace({ from: `${path}.diskURI`, to: "spec.csi.volumeHandle", value: source.diskURI, why: "copied" });
    traceCommon(trace, path, "spec.csi", source);
    const origin: { readonly [attribute: string]: string } = {
      cachingmode: "cachingMode",
      fstype: "fsType",
      kind: "kind",
    };
    for (const [name, value] of Object.entries(attributes)) {
      const why = name === "kind" ? "CSI knows managed disks only" : "the driver's name for it";
      trace({ from: `${path}.${origin[name]}`, to: `spec.csi.volumeAttributes[${name}]`, value, why });
    }
  }
  return csiSource(driverName, source.diskURI, source.fsType, source.readOnly, attributes);
}

function traceBack(trace: Trace, source: AzureDiskSource): void {
  const to = "spec.azureDisk";
  trace({ from: "spec.csi.volumeHandle", to: `${to}.diskURI`, value: source.diskURI, why: "copied" });
  trace({
    from: "spec.csi.volumeHandle",
    to: `${to}.diskName`,
    value: source.diskName,
    why: "its last part",
  });
  trace({ from: "", to: `${to}.kind`, value: MANAGED, why: "CSI knows managed disks only" });
  if (source.cachingMode != null) {
    const from = "spec.csi.volumeAttributes[cachingmode]";
    trace({ from, to: `${to}.cachingMode`, value: source.cachingMode, why: "copied" });
  }
  traceCommon(trace, "spec.csi", to, source);
}

/** A purely numeric "zone" is a fault domain of a region without zones; the driver writes it as none. */
function withoutFaultDomains(values: readonly string[]): readonly string[] {
  if (!values.some(isFaultDomain)) return values;
  return values.map((value) => (isFaultDomain(value) ? "" : value));
}

function isFaultDomain(value: string): boolean {
  return /^[0-9]+$/.test(value);
}
