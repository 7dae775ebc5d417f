/**
 * From a claim's data source to what CreateVolume is to copy: the checks of docs/behaviour/sidecars.md 2.3, point 8, on the objects
 * as they are now, and the finalizer that keeps the source until the copy is made.
 */
import type { MessageInitShape, VolumeContentSourceSchema } from "@longshore/csi";
import {
  type Informer,
  type KubeClient,
  type KubeObject,
  type PersistentVolumeClaim,
  type Resource,
  resources,
  type Stored,
} from "@longshore/kube";
import { snapshotGroup, snapshotResources } from "@longshore/storage";
import type { Driver } from "../../common/sidecar-env.ts";
import { ProvisionError } from "../create-outcome.ts";
import { checkCloneClaims, cloneHandle, DataSourceError } from "./clone-source.ts";
import { type DataSource, dataSourceKinds } from "./data-source.ts";
import { contentNameOf, snapshotHandle } from "./snapshot-source.ts";

/** What a source is resolved with. */
export interface SourceContext {
  readonly kube: KubeClient;
  readonly driver: Driver;
  readonly claims: Pick<Informer<PersistentVolumeClaim>, "get">;
  readonly preventModeConversion: boolean;
}

/** The source as CreateVolume takes it. */
export type ContentSource = MessageInitShape<typeof VolumeContentSourceSchema>;

/**
 * Finds what to copy. Reads only: the caller protects the source before it asks the driver.
 * @throws ProvisionError `NoChange`: the source may become fit
 */
export async function resolveSource(
  context: SourceContext,
  claim: Stored<PersistentVolumeClaim>,
  source: DataSource,
  signal: AbortSignal,
): Promise<ContentSource> {
  try {
    if (source.crossesNamespaces) await checkGrant(context, claim, source, signal);
    return source.kind === "clone"
      ? await cloneOf(context, claim, source, signal)
      : await restoreOf(context, claim, source, signal);
  } catch (cause) {
    if (signal.aborted) throw cause;
    const what = `${dataSourceKinds[source.kind]} ${source.namespace}/${source.name}`;
    throw new ProvisionError("NoChange", `the data source ${what} cannot be used`, { cause });
  }
}

async function cloneOf(
  { kube, driver, claims }: SourceContext,
  claim: Stored<PersistentVolumeClaim>,
  { name, namespace }: DataSource,
  signal: AbortSignal,
): Promise<ContentSource> {
  const source = claims.get(`${namespace}/${name}`);
  if (source === undefined) throw new DataSourceError(`there is no PVC ${namespace}/${name}`);
  checkCloneClaims(claim, source);
  const volume = await kube.get(
    resources.persistentVolumes,
    { name: source.spec?.volumeName ?? "" },
    { signal },
  );
  return { type: { case: "volume", value: { volumeId: cloneHandle(driver.name, claim, source, volume) } } };
}

async function restoreOf(
  { kube, driver, preventModeConversion }: SourceContext,
  claim: Stored<PersistentVolumeClaim>,
  { name, namespace }: DataSource,
  signal: AbortSignal,
): Promise<ContentSource> {
  const snapshot = await kube.get(snapshotResources.volumeSnapshots, { name, namespace }, { signal });
  if (snapshot === undefined) throw new DataSourceError(`there is no VolumeSnapshot ${namespace}/${name}`);
  const content = await kube.get(
    snapshotResources.volumeSnapshotContents,
    { name: contentNameOf(claim, snapshot) },
    { signal },
  );
  const question = { driverName: driver.name, claim, preventModeConversion };
  return { type: { case: "snapshot", value: { snapshotId: snapshotHandle(question, snapshot, content) } } };
}

/** A namespace's leave for objects of other namespaces to name its own (gateway.networking.k8s.io). */
interface ReferenceGrant extends KubeObject {
  readonly spec?: {
    readonly from?: readonly { readonly group: string; readonly kind: string; readonly namespace: string }[];
    readonly to?: readonly { readonly group: string; readonly kind: string; readonly name?: string }[];
  };
}

const referenceGrants: Resource<ReferenceGrant> = {
  group: "gateway.networking.k8s.io",
  versions: ["v1beta1"],
  plural: "referencegrants",
  kind: "ReferenceGrant",
  namespaced: true,
};

async function checkGrant(
  { kube }: SourceContext,
  claim: Stored<PersistentVolumeClaim>,
  source: DataSource,
  signal: AbortSignal,
): Promise<void> {
  const { namespace } = source;
  const { items } = await kube.list(referenceGrants, { namespace, signal });
  const from = claim.metadata.namespace ?? "";
  if (items.some((grant) => isGranted(grant, from, source))) return;
  throw new DataSourceError(
    `no ReferenceGrant in namespace ${namespace} lets claims of ${from} use it: its owner can make one`,
  );
}

/** Whether the grant lets claims of the namespace `from` use the source. */
export function isGranted(
  { spec }: ReferenceGrant,
  from: string,
  { kind, name }: Pick<DataSource, "kind" | "name">,
): boolean {
  const group = kind === "snapshot" ? snapshotGroup : "";
  return (
    (spec?.from ?? []).some(
      (entry) => entry.group === "" && entry.kind === "PersistentVolumeClaim" && entry.namespace === from,
    ) &&
    (spec?.to ?? []).some(
      (entry) =>
        entry.group === group &&
        entry.kind === dataSourceKinds[kind] &&
        (entry.name === undefined || entry.name === "" || entry.name === name),
    )
  );
}
