/**
 * Building the `csi` source of a PersistentVolume. Members that would be empty are left out, as the
 * API's own encoding does.
 */

import type { Trace } from "./trace.ts";
import type { CSIPersistentVolumeSource, Draft, DraftMap, PersistentVolume } from "./types.ts";

/** A `csi` source with the members that every plugin fills. */
export function csiSource(
  driver: string,
  volumeHandle: string,
  fsType: string | null | undefined,
  readOnly: boolean | null | undefined,
  volumeAttributes: DraftMap | undefined,
): Draft<CSIPersistentVolumeSource> {
  const source: Draft<CSIPersistentVolumeSource> = { driver, volumeHandle };
  if (readOnly) source.readOnly = true;
  if (fsType) source.fsType = fsType;
  if (volumeAttributes !== undefined) source.volumeAttributes = volumeAttributes;
  return source;
}

/** The PersistentVolume that wraps one inline volume of a pod. */
export function inlinePersistentVolume(
  name: string,
  csi: CSIPersistentVolumeSource,
  accessMode: string,
  trace: Trace | undefined,
): PersistentVolume {
  trace?.({ from: "", to: "metadata.name", value: name, why: "one name for each disk" });
  trace?.({
    from: "",
    to: "spec.accessModes",
    value: [accessMode],
    why: "a pod cannot ask for access modes",
  });
  // A pod's own volume is always mounted; block devices come through claims only.
  trace?.({
    from: "",
    to: "spec.volumeMode",
    value: "Filesystem",
    why: "a pod's own volume is always mounted",
  });
  return { metadata: { name }, spec: { accessModes: [accessMode], csi, volumeMode: "Filesystem" } };
}

/** Traces the members that are carried over under their own names. */
export function traceCommon(
  trace: Trace | undefined,
  from: string,
  to: string,
  source: { readonly fsType?: string | null | undefined; readonly readOnly?: boolean | null | undefined },
): void {
  if (trace === undefined) return;
  if (source.fsType)
    trace({ from: `${from}.fsType`, to: `${to}.fsType`, value: source.fsType, why: "copied" });
  if (source.readOnly) trace({ from: `${from}.readOnly`, to: `${to}.readOnly`, value: true, why: "copied" });
}

/** Traces the driver that takes a source over. */
export function traceDriver(trace: Trace | undefined, from: string, to: string, driver: string): void {
  trace?.({ from, to: `${to}.driver`, value: driver, why: "the driver that takes this plugin over" });
}
