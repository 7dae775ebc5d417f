/** Volumes of the picture: their two names, and by which path each is attached where. */
import type { Node, PersistentVolume, Pod, Stored, VolumeAttachment } from "@longshore/kube";
import { type VolumeForm, volumeFormOf } from "@longshore/migration";
import type { AttachPath, NodeVolumeState, VolumeState } from "./state.ts";

/** A PersistentVolume with its form. */
export interface KnownVolume {
  readonly pv: Stored<PersistentVolume>;
  readonly form: VolumeForm;
}

/** The volumes, sorted by name. */
export function knownVolumesOf(volumes: readonly Stored<PersistentVolume>[]): KnownVolume[] {
  return [...volumes]
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .map((pv) => ({ pv, form: volumeFormOf(pv) }));
}

/** Unique names of volumes of drivers: `kubernetes.io/csi/DRIVER^HANDLE`; of in-tree plugins: `PLUGIN/NAME`. */
const csiPrefix = "kubernetes.io/csi/";

/** A volume as a node's status names it. */
export function nodeVolumeOf(uniqueName: string, known: readonly KnownVolume[]): NodeVolumeState {
  const volume = known.find((candidate) => isNamed(candidate.form, uniqueName));
  const claim = volume === undefined ? "" : claimOf(volume.pv);
  return {
    uniqueName,
    path: pathOf(uniqueName),
    label: claim || volume?.pv.metadata.name || uniqueName.slice(uniqueName.search(/[^/^]*$/)),
  };
}

/** A PersistentVolume and where it is attached. */
export function volumeStateOf(
  { pv, form }: KnownVolume,
  seen: {
    readonly nodes: readonly Stored<Node>[];
    readonly attachments: readonly Stored<VolumeAttachment>[];
    /** Names of the pods that use each claim, by the claim's name with its namespace. */
    readonly podsOfClaims: ReadonlyMap<string, readonly string[]>;
  },
): VolumeState {
  const attachedTo = new Map<string, { readonly node: string; readonly path: AttachPath }>();
  const attach = (node: string, path: AttachPath) => attachedTo.set(`${node} ${path}`, { node, path });
  for (const node of seen.nodes) {
    for (const { name } of node.status?.volumesAttached ?? []) {
      if (isNamed(form, name)) attach(node.metadata.name, pathOf(name));
    }
  }
  for (const va of seen.attachments) {
    const isOurs = va.spec.source.persistentVolumeName === pv.metadata.name;
    if (isOurs && va.status?.attached === true) attach(va.spec.nodeName, "csi");
  }
  return {
    name: pv.metadata.name,
    claim: claimOf(pv),
    phase: pv.status?.phase ?? "Pending",
    size: pv.spec?.capacity?.storage ?? "",
    pods: seen.podsOfClaims.get(claimOf(pv)) ?? [],
    form: form.kind,
    owner: form.kind === "in-tree" ? form.plugin : form.kind === "csi" ? form.driver : "",
    handle: form.kind === "other" ? "" : form.handle,
    csiHandle: (form.kind === "in-tree" ? form.csiHandle : undefined) ?? "",
    attachedTo: [...attachedTo].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, where]) => where),
  };
}

/**
 * The pods that use each claim, by `namespace/name` of the claim: pods that have ended use none. The claim of a generic ephemeral volume is
 * called after pod and volume (docs/behaviour/controllers.md).
 */
export function podsOfClaims(pods: readonly Stored<Pod>[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const { metadata, spec, status } of pods) {
    if (status?.phase === "Succeeded" || status?.phase === "Failed") continue;
    const namespace = metadata.namespace ?? "default";
    for (const volume of spec?.volumes ?? []) {
      const claim =
        volume.persistentVolumeClaim?.claimName ??
        (volume.ephemeral === undefined ? undefined : `${metadata.name}-${volume.name}`);
      if (claim === undefined) continue;
      const key = `${namespace}/${claim}`;
      found.set(key, [...(found.get(key) ?? []), `${namespace}/${metadata.name}`]);
    }
  }
  return found;
}

function pathOf(uniqueName: string): AttachPath {
  return uniqueName.startsWith(csiPrefix) ? "csi" : "in-tree";
}

function isNamed(form: VolumeForm, uniqueName: string): boolean {
  switch (form.kind) {
    case "other":
      return false;
    case "csi":
      return uniqueName === `${csiPrefix}${form.driver}^${form.handle}`;
    case "in-tree":
      if (uniqueName === `${csiPrefix}${form.driver}^${form.csiHandle}`) return true;
      // A plugin may name the volume by its whole handle or by the handle's last part.
      return uniqueName.startsWith(`${form.plugin}/`) && lastPart(uniqueName) === lastPart(form.handle);
  }
}

function lastPart(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function claimOf(pv: PersistentVolume): string {
  const claim = pv.spec?.claimRef;
  return claim === undefined ? "" : `${claim.namespace ?? "default"}/${claim.name ?? ""}`;
}
