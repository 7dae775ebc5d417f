/**
 * The permanent translation back to in-tree form: a loss is an error or is reported, where the reference's translation
 * leaves a field empty.
 */

import type { InTreePlugin } from "./in-tree-plugin.ts";
import { checkSource } from "./source-fields.ts";
import { objectLabel, TranslationError } from "./translation-error.ts";
import type { CSIPersistentVolumeSource, PersistentVolume, SecretReference, StringMap } from "./types.ts";

/** A member of a CSI source that its in-tree form has no room for, and that the disk can be found without. */
export interface DroppedField {
  /** Path in the CSI volume, such as `spec.csi.volumeAttributes[storage.kubernetes.io/csiProvisionerIdentity]`. */
  readonly field: string;
  /** What happens to it, as the rest of a sentence about the field. */
  readonly text: string;
}

const secretFields = [
  "controllerPublishSecretRef",
  "nodeStageSecretRef",
  "nodePublishSecretRef",
  "controllerExpandSecretRef",
  "nodeExpandSecretRef",
] as const;

/**
 * Checks that the in-tree form `after` keeps what the CSI volume `before` says; `after` was made from `before`.
 * @returns what is dropped, in the order of the input
 * @throws TranslationError naming what would be lost: the identity of the disk (the translation back to CSI yields
 *   another handle, or none), the file system, read-only use, or a secret
 */
export function checkRestored(
  plugin: InTreePlugin,
  before: PersistentVolume,
  after: PersistentVolume,
): readonly DroppedField[] {
  const label = () => objectLabel("PersistentVolume", before.metadata);
  const csi = before.spec?.csi as CSIPersistentVolumeSource;
  const source = after.spec?.[plugin.source] as unknown as { readonly [member: string]: unknown };
  try {
    // What is missing here was not in the handle: the error has to be about that, not about the in-tree form.
    checkSource(label, `spec.${plugin.source}`, source, plugin.fields);
  } catch (error) {
    if (!(error instanceof TranslationError)) throw error;
    const problem = `${JSON.stringify(csi.volumeHandle)} does not contain ${error.field}, which the in-tree form needs`;
    throw new TranslationError(label(), "spec.csi.volumeHandle", problem, byHand(plugin));
  }
  if ((csi.fsType ?? "") !== "" && source.fsType !== csi.fsType)
    throw lost(label, plugin, "fsType", csi.fsType);
  if (csi.readOnly && source.readOnly !== true) throw lost(label, plugin, "readOnly", true);
  const again = crossedAgain(plugin, before, after, label);
  if (!namesSameDisk(plugin, csi.volumeHandle, again.volumeHandle)) {
    const problem = `${JSON.stringify(csi.volumeHandle)} would be lost: the in-tree form stands for ${JSON.stringify(again.volumeHandle)}`;
    throw new TranslationError(label(), "spec.csi.volumeHandle", problem, byHand(plugin));
  }
  for (const field of secretFields) {
    if (isSameSecret(csi[field], again[field])) continue;
    const name = `${csi[field]?.namespace ?? ""}/${csi[field]?.name ?? ""}`;
    throw lost(label, plugin, field, name);
  }
  return [
    ...droppedOfHandle(csi.volumeHandle, again.volumeHandle),
    ...droppedAttributes(plugin, before, csi, again),
  ];
}

function droppedOfHandle(handle: string, again: string): readonly DroppedField[] {
  if (handle === again) return [];
  const text = `${JSON.stringify(handle)} is kept as ${JSON.stringify(again)}: the rest comes from the node that uses the disk`;
  return [{ field: "spec.csi.volumeHandle", text }];
}

function droppedAttributes(
  plugin: InTreePlugin,
  before: PersistentVolume,
  csi: CSIPersistentVolumeSource,
  again: CSIPersistentVolumeSource,
): readonly DroppedField[] {
  const without = inTreeTextOf(plugin, before, {});
  return Object.entries(csi.volumeAttributes ?? {}).flatMap(([name, value]) => {
    if (value === "" || again.volumeAttributes?.[name] === value) return [];
    // By itself, so that the cost grows with the number of attributes and not with its square.
    if (inTreeTextOf(plugin, before, { [name]: value }) !== without) return [];
    const text = `${JSON.stringify(value)} is dropped: ${plugin.source} has no room for it`;
    return [{ field: `spec.csi.volumeAttributes[${name}]`, text }];
  });
}

function crossedAgain(
  plugin: InTreePlugin,
  before: PersistentVolume,
  after: PersistentVolume,
  label: () => string,
): CSIPersistentVolumeSource {
  try {
    return plugin.pvToCSI(after, undefined).spec?.csi as CSIPersistentVolumeSource;
  } catch (error) {
    if (!(error instanceof TranslationError)) throw error;
    const handle = JSON.stringify(before.spec?.csi?.volumeHandle);
    const problem = `${handle} would be lost: the in-tree form could not cross again (${error.field}: ${error.problem})`;
    throw new TranslationError(label(), "spec.csi.volumeHandle", problem, byHand(plugin));
  }
}

/** Where the in-tree form keeps only a part of the handle, completes it as a node in the disk's location would. */
function namesSameDisk(plugin: InTreePlugin, handle: string, again: string): boolean {
  if (handle === again) return true;
  if (plugin.repairVolumeHandle === undefined) return false;
  try {
    return plugin.repairVolumeHandle(again, handle) === handle;
  } catch (error) {
    if (error instanceof TranslationError) return false;
    throw error;
  }
}

function isSameSecret(
  before: SecretReference | null | undefined,
  after: SecretReference | null | undefined,
): boolean {
  if (before == null || (!before.name && !before.namespace)) return true;
  return (before.name ?? "") === (after?.name ?? "") && (before.namespace ?? "") === (after?.namespace ?? "");
}

/** The in-tree form of the volume if these were its attributes, as text to compare; "" where there is none. */
function inTreeTextOf(plugin: InTreePlugin, pv: PersistentVolume, volumeAttributes: StringMap): string {
  const csi = { ...(pv.spec?.csi as CSIPersistentVolumeSource), volumeAttributes };
  try {
    const { metadata, spec } = plugin.pvToInTree({ metadata: pv.metadata, spec: { csi } }, undefined);
    return JSON.stringify([metadata?.annotations, spec]);
  } catch (error) {
    if (error instanceof TranslationError) return "";
    throw error;
  }
}

function lost(label: () => string, plugin: InTreePlugin, member: string, value: unknown): TranslationError {
  const problem = `${JSON.stringify(value)} would be lost: ${plugin.source} has no room for it`;
  return new TranslationError(label(), `spec.csi.${member}`, problem, byHand(plugin));
}

function byHand(plugin: InTreePlugin): string {
  return `keep the volume as it is, or write its ${plugin.source} source by hand`;
}
