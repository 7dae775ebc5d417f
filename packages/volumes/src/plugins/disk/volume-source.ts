/** The in-tree source of a spec: the member of a pod's volume or of a PersistentVolume that names the disk or share. */
import type { PersistentVolumeSpec, Volume } from "@longshore/kube";
import type { InTreeSourceName } from "@longshore/translation";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";

/** The source as a pod names it or as a PersistentVolume does; the two differ in secret references alone. */
export type InTreeSource<F extends InTreeSourceName> =
  | NonNullable<Volume[F]>
  | NonNullable<PersistentVolumeSpec[F]>;

/** A source and what the spec says of writing to it. */
export interface FoundSource<F extends InTreeSourceName> {
  readonly source: InTreeSource<F>;
  /** An inline volume says it in its source, a PersistentVolume through the claim of the pod. */
  readonly readOnly: boolean;
}

/** Whether the spec has a source of this kind. */
export function hasSource(spec: VolumeSpec, field: InTreeSourceName): boolean {
  return spec.persistentVolume?.spec?.[field] != null || spec.volume?.[field] != null;
}

/** The source of this kind. @throws InTreeVolumeError when the spec has none */
export function inTreeSourceOf<F extends InTreeSourceName>(spec: VolumeSpec, field: F): FoundSource<F> {
  const inline = spec.volume?.[field];
  const source = inline ?? spec.persistentVolume?.spec?.[field];
  if (source == null) throw new InTreeVolumeError(`volume "${specName(spec)}": ${field} is missing`);
  const isInlineReadOnly = (inline as { readonly readOnly?: boolean } | undefined)?.readOnly === true;
  return { source, readOnly: inline == null ? spec.readOnly : isInlineReadOnly };
}
