/** The calls to a driver about group snapshots. */
import type { CsiCallOptions } from "@longshore/csi";
import type { KubeClient, SecretReference } from "@longshore/kube";
import {
  groupSnapshotSecretNameAnnotation,
  groupSnapshotSecretNamespaceAnnotation,
  snapshotName,
  snapshotSecretReference,
  stripSnapshotParameters,
  type VolumeGroupSnapshotClass,
  type VolumeGroupSnapshotContent,
} from "@longshore/storage";
import type { Driver } from "../common/env.ts";
import { secretValues } from "../common/secret-values.ts";
import { annotatedSecret, SnapshotCallError, secretsForDeletion } from "./driver-snapshots.ts";
import type { GroupHandles } from "./group-content-step.ts";
import { type GroupState, groupStateOf } from "./group-state.ts";

/** What calls about group snapshots need. */
export interface GroupCalls {
  readonly kube: KubeClient;
  readonly driver: Driver;
  /** Deadline of each call, in milliseconds. */
  readonly timeoutMs: number;
  readonly groupSnapshotNamePrefix: string;
  readonly groupSnapshotNameUuidLength: number;
  readonly extraCreateMetadata: boolean;
  readonly classOf: (name: string) => VolumeGroupSnapshotClass | undefined;
}

/** Everything that CreateVolumeGroupSnapshot is asked with. @throws SnapshotCallError, ParameterError, SecretMissingError */
export async function createGroupRequest(
  calls: GroupCalls,
  content: VolumeGroupSnapshotContent,
  signal: AbortSignal,
) {
  const { spec } = content;
  const contentName = content.metadata?.name ?? "";
  const { uid, name = "", namespace = "" } = spec.volumeGroupSnapshotRef;
  if (!uid) throw new SnapshotCallError(`content "${contentName}" is bound to no VolumeGroupSnapshot`);
  const className = spec.volumeGroupSnapshotClassName;
  if (className === undefined) {
    throw new SnapshotCallError(`content "${contentName}" names no VolumeGroupSnapshotClass`);
  }
  const parameters = stripSnapshotParameters(classNamed(calls, className).parameters ?? {});
  const metadata = {
    "csi.storage.k8s.io/volumegroupsnapshot/name": name,
    "csi.storage.k8s.io/volumegroupsnapshot/namespace": namespace,
    "csi.storage.k8s.io/volumegroupsnapshotcontent/name": contentName,
  };
  return {
    name: snapshotName(calls.groupSnapshotNamePrefix, uid, calls.groupSnapshotNameUuidLength),
    sourceVolumeIds: spec.source.volumeHandles ?? [],
    secrets: await secretValues(calls.kube, secretOf(content), signal),
    parameters: calls.extraCreateMetadata ? { ...parameters, ...metadata } : parameters,
  };
}

/** Asks for the group; the same request returns the same group, however often it is made. */
export async function createGroup(
  calls: GroupCalls,
  request: Awaited<ReturnType<typeof createGroupRequest>>,
  signal: AbortSignal,
): Promise<GroupState> {
  const { groupController } = calls.driver.csi;
  const answer = await groupController.createVolumeGroupSnapshot(request, callOptions(calls, signal));
  const group = answer.groupSnapshot;
  if (group === undefined || group.groupSnapshotId === "" || group.snapshots.length === 0) {
    throw new SnapshotCallError("CreateVolumeGroupSnapshot gave no group: the driver must be mended");
  }
  return groupStateOf(group);
}

/** How a group is that exists. */
export async function lookAtGroup(
  calls: GroupCalls,
  content: VolumeGroupSnapshotContent,
  { groupHandle, snapshotHandles }: GroupHandles,
  signal: AbortSignal,
): Promise<GroupState> {
  const secrets = await secretValues(calls.kube, lookSecretOf(calls, content), signal);
  const request = { groupSnapshotId: groupHandle, snapshotIds: [...snapshotHandles], secrets };
  const { groupController } = calls.driver.csi;
  const answer = await groupController.getVolumeGroupSnapshot(request, callOptions(calls, signal));
  if (answer.groupSnapshot === undefined) {
    throw new SnapshotCallError("GetVolumeGroupSnapshot gave no group: the driver must be mended");
  }
  return groupStateOf(answer.groupSnapshot);
}

/** Deletes the group with all its snapshots. That it is gone already is no error to the driver. */
export async function deleteGroup(
  calls: GroupCalls,
  content: VolumeGroupSnapshotContent,
  { groupHandle, snapshotHandles }: GroupHandles,
  signal: AbortSignal,
): Promise<void> {
  const secrets = await secretsForDeletion(calls.kube, secretOf(content), signal);
  const request = { groupSnapshotId: groupHandle, snapshotIds: [...snapshotHandles], secrets };
  const { groupController } = calls.driver.csi;
  await groupController.deleteVolumeGroupSnapshot(request, callOptions(calls, signal));
}

function secretOf(content: VolumeGroupSnapshotContent): SecretReference | undefined {
  const { annotations } = content.metadata ?? {};
  return annotatedSecret(
    annotations,
    groupSnapshotSecretNameAnnotation,
    groupSnapshotSecretNamespaceAnnotation,
  );
}

function lookSecretOf(calls: GroupCalls, content: VolumeGroupSnapshotContent): SecretReference | undefined {
  const className = content.spec.volumeGroupSnapshotClassName;
  if (className === undefined) return undefined;
  const { parameters = {} } = classNamed(calls, className);
  return snapshotSecretReference("group-snapshotter-get", parameters, {
    contentName: content.metadata?.name ?? "",
  });
}

function classNamed(calls: GroupCalls, name: string): VolumeGroupSnapshotClass {
  const found = calls.classOf(name);
  if (found === undefined) throw new SnapshotCallError(`VolumeGroupSnapshotClass "${name}" not found`);
  return found;
}

function callOptions(calls: GroupCalls, signal: AbortSignal): CsiCallOptions {
  return { signal, timeoutMs: calls.timeoutMs };
}
