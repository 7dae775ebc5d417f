/** The calls to a driver about group snapshots. */
import type { SecretReference } from "@longshore/kube";
import {
  groupSnapshotSecretNameAnnotation,
  groupSnapshotSecretNamespaceAnnotation,
  snapshotName,
  snapshotSecretReference,
  stripSnapshotParameters,
  type VolumeGroupSnapshotClass,
  type VolumeGroupSnapshotContent,
} from "@longshore/storage";
import type { Secrets } from "./content-rules.ts";
import type { GroupHandles } from "./decide-group-content-step.ts";
import { annotatedSecret, type DriverCalls, SnapshotCallError } from "./driver-snapshots.ts";
import { type GroupState, groupStateOf } from "./group-state.ts";

/** How groups are named and described to a driver. */
export interface GroupNaming {
  readonly groupSnapshotNamePrefix: string;
  readonly groupSnapshotNameUuidLength: number;
  readonly extraCreateMetadata: boolean;
}

/** What CreateVolumeGroupSnapshot is asked with, but for the secret. */
export interface GroupRequest {
  readonly name: string;
  readonly sourceVolumeIds: string[];
  readonly parameters: Record<string, string>;
}

/** The request for a content. @throws SnapshotCallError, ParameterError */
export function createGroupRequest(
  naming: GroupNaming,
  content: VolumeGroupSnapshotContent,
  contentClass: VolumeGroupSnapshotClass | undefined,
): GroupRequest {
  const { spec } = content;
  const contentName = content.metadata?.name ?? "";
  const { uid, name = "", namespace = "" } = spec.volumeGroupSnapshotRef;
  if (!uid) throw new SnapshotCallError(`content "${contentName}" is bound to no VolumeGroupSnapshot`);
  const className = spec.volumeGroupSnapshotClassName;
  if (className === undefined) {
    throw new SnapshotCallError(`content "${contentName}" names no VolumeGroupSnapshotClass`);
  }
  const parameters = stripSnapshotParameters(existing(contentClass, className).parameters ?? {});
  const metadata = {
    "csi.storage.k8s.io/volumegroupsnapshot/name": name,
    "csi.storage.k8s.io/volumegroupsnapshot/namespace": namespace,
    "csi.storage.k8s.io/volumegroupsnapshotcontent/name": contentName,
  };
  return {
    name: snapshotName(naming.groupSnapshotNamePrefix, uid, naming.groupSnapshotNameUuidLength),
    sourceVolumeIds: [...(spec.source.volumeHandles ?? [])],
    parameters: naming.extraCreateMetadata ? { ...parameters, ...metadata } : parameters,
  };
}

/** Asks for the group; the same request returns the same group, however often it is made. */
export async function createGroup(
  { driver, timeoutMs }: DriverCalls,
  request: GroupRequest,
  secrets: Secrets,
  signal: AbortSignal,
): Promise<GroupState> {
  const { groupController } = driver.csi;
  const options = { signal, timeoutMs };
  const answer = await groupController.createVolumeGroupSnapshot({ ...request, secrets }, options);
  const group = answer.groupSnapshot;
  if (group === undefined || group.groupSnapshotId === "" || group.snapshots.length === 0) {
    throw new SnapshotCallError("driver bug: CreateVolumeGroupSnapshot returned no group");
  }
  return groupStateOf(group);
}

/** How a group is that exists. */
export async function lookAtGroup(
  { driver, timeoutMs }: DriverCalls,
  { groupHandle, snapshotHandles }: GroupHandles,
  secrets: Secrets,
  signal: AbortSignal,
): Promise<GroupState> {
  const request = { groupSnapshotId: groupHandle, snapshotIds: [...snapshotHandles], secrets };
  const { groupController } = driver.csi;
  const answer = await groupController.getVolumeGroupSnapshot(request, { signal, timeoutMs });
  if (answer.groupSnapshot === undefined) {
    throw new SnapshotCallError("driver bug: GetVolumeGroupSnapshot returned no group");
  }
  return groupStateOf(answer.groupSnapshot);
}

/** Deletes the group with all its snapshots. That it is gone already is no error to the driver. */
export async function deleteGroup(
  { driver, timeoutMs }: DriverCalls,
  { groupHandle, snapshotHandles }: GroupHandles,
  secrets: Secrets,
  signal: AbortSignal,
): Promise<void> {
  const request = { groupSnapshotId: groupHandle, snapshotIds: [...snapshotHandles], secrets };
  await driver.csi.groupController.deleteVolumeGroupSnapshot(request, { signal, timeoutMs });
}

/** The secret for calls that create and delete. @throws SnapshotCallError */
export function groupSecretOf(content: VolumeGroupSnapshotContent): SecretReference | undefined {
  const { annotations } = content.metadata ?? {};
  return annotatedSecret(
    annotations,
    groupSnapshotSecretNameAnnotation,
    groupSnapshotSecretNamespaceAnnotation,
  );
}

/** The secret for a look. @throws SnapshotCallError */
export function groupLookSecretOf(
  content: VolumeGroupSnapshotContent,
  contentClass: VolumeGroupSnapshotClass | undefined,
): SecretReference | undefined {
  const className = content.spec.volumeGroupSnapshotClassName;
  if (className === undefined) return undefined;
  const { parameters = {} } = existing(contentClass, className);
  return snapshotSecretReference("group-snapshotter-get", parameters, {
    contentName: content.metadata?.name ?? "",
  });
}

function existing(
  contentClass: VolumeGroupSnapshotClass | undefined,
  name: string,
): VolumeGroupSnapshotClass {
  if (contentClass === undefined) throw new SnapshotCallError(`VolumeGroupSnapshotClass "${name}" not found`);
  return contentClass;
}
