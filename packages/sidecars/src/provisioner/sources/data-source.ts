/** What a claim wants its volume filled with (docs/behaviour/sidecars.md 2.3, point 3). Pure. */
import type { PersistentVolumeClaim } from "@longshore/kube";
import { snapshotGroup } from "@longshore/storage";
import { ProvisionError } from "../create-outcome.ts";

/** Another object whose content the new volume starts with. */
export interface DataSource {
  readonly kind: "clone" | "snapshot";
  readonly name: string;
  readonly namespace: string;
  /** It lies in another namespace than the claim: its owner must have allowed that with a ReferenceGrant. */
  readonly crossesNamespaces: boolean;
}

/** Kind of the source in the API. */
export const dataSourceKinds = { clone: "PersistentVolumeClaim", snapshot: "VolumeSnapshot" } as const;

/**
 * The source of the claim's content; undefined: an empty volume is wanted.
 * @param crossNamespace the gate CrossNamespaceVolumeDataSource. Without it such a claim is refused: to read only
 * `spec.dataSource`, as the reference does, would make it an empty volume.
 * @throws ProvisionError `Finished`; `ignored` where another component fills the volume
 */
export function dataSourceOf(claim: PersistentVolumeClaim, crossNamespace: boolean): DataSource | undefined {
  const source = claim.spec?.dataSourceRef ?? claim.spec?.dataSource;
  if (source === undefined || source === null) return undefined;
  const claimNamespace = claim.metadata?.namespace ?? "";
  const namespace = namespaceOf(source) || claimNamespace;
  const crossesNamespaces = namespace !== claimNamespace;
  const kind = sourceKindOf(source);
  if (kind === undefined) {
    throw new ProvisionError("Finished", "Assuming an external populator will provision the volume", {
      ignored: true,
    });
  }
  if (!source.name) throw refused(`the claim's data source has no name: set spec.dataSource.name`);
  if (crossesNamespaces && !crossNamespace) {
    throw refused(
      `spec.dataSourceRef.namespace is ${namespace}: volumes from another namespace need the feature gate CrossNamespaceVolumeDataSource`,
    );
  }
  return { kind, name: source.name, namespace, crossesNamespaces };
}

function sourceKindOf(source: { readonly kind: string; readonly apiGroup?: string | null }) {
  const group = source.apiGroup ?? "";
  if (source.kind === dataSourceKinds.clone && group === "") return "clone" as const;
  if (source.kind !== dataSourceKinds.snapshot) return undefined;
  if (group === snapshotGroup) return "snapshot" as const;
  throw refused(
    `spec.dataSource.apiGroup is "${group}": a VolumeSnapshot is of ${snapshotGroup}, set it to that`,
  );
}

function refused(message: string): ProvisionError {
  return new ProvisionError("Finished", message);
}

/** The claim from which this one is cloned, as `namespace/name`. For an index; never throws. */
export function cloneSourceKeyOf(claim: PersistentVolumeClaim): string | undefined {
  return sourceKeyOf(claim, dataSourceKinds.clone, "");
}

/** The snapshot this claim is restored from, as `namespace/name`. For an index; never throws. */
export function snapshotSourceKeyOf(claim: PersistentVolumeClaim): string | undefined {
  return sourceKeyOf(claim, dataSourceKinds.snapshot, snapshotGroup);
}

function sourceKeyOf(claim: PersistentVolumeClaim, kind: string, group: string): string | undefined {
  const source = claim.spec?.dataSourceRef ?? claim.spec?.dataSource;
  if (source === undefined || source === null || source.kind !== kind) return undefined;
  if ((source.apiGroup ?? "") !== group) return undefined;
  return `${namespaceOf(source) || claim.metadata?.namespace || ""}/${source.name}`;
}

/** Only the newer field can name a namespace. */
function namespaceOf(source: { readonly name: string; readonly namespace?: string }): string | undefined {
  return source.namespace;
}
