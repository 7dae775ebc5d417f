/** The calls to a driver about single snapshots. */
import type { SecretReference } from "@longshore/kube";
import {
  snapshotName,
  snapshotSecretNameAnnotation,
  snapshotSecretNamespaceAnnotation,
  snapshotSecretReference,
  stripSnapshotParameters,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import type { Driver } from "../common/sidecar-env.ts";
import type { Secrets } from "./content-rules.ts";
import { type SnapshotState, snapshotStateOf } from "./snapshot-state.ts";

/** A snapshot cannot be made, looked at or deleted as things are. The text is shown to users. */
export class SnapshotCallError extends Error {
  override readonly name = "SnapshotCallError";
}

/** What calls to a driver need. */
export interface DriverCalls {
  readonly driver: Driver;
  /** Deadline of each call, in milliseconds. */
  readonly timeoutMs: number;
}

/** How snapshots are named and described to a driver. */
export interface SnapshotNaming {
  readonly snapshotNamePrefix: string;
  readonly snapshotNameUuidLength: number;
  /** CreateSnapshot receives the names of the VolumeSnapshot and its content. */
  readonly extraCreateMetadata: boolean;
}

/** What CreateSnapshot is asked with, but for the secret. */
export interface SnapshotRequest {
  readonly sourceVolumeId: string;
  readonly name: string;
  readonly parameters: Record<string, string>;
}

/** The request for a content. @throws SnapshotCallError, ParameterError */
export function createRequest(
  calls: SnapshotNaming,
  content: VolumeSnapshotContent,
  contentClass: VolumeSnapshotClass | undefined,
): SnapshotRequest {
  const { spec } = content;
  const contentName = content.metadata?.name ?? "";
  const { uid, name = "", namespace = "" } = spec.volumeSnapshotRef;
  if (!uid) throw new SnapshotCallError(`content "${contentName}" is bound to no VolumeSnapshot`);
  const className = spec.volumeSnapshotClassName;
  if (className === undefined) {
    throw new SnapshotCallError(`content "${contentName}" names no VolumeSnapshotClass`);
  }
  const parameters = stripSnapshotParameters(existing(contentClass, className).parameters ?? {});
  const metadata = {
    "csi.storage.k8s.io/volumesnapshot/name": name,
    "csi.storage.k8s.io/volumesnapshot/namespace": namespace,
    "csi.storage.k8s.io/volumesnapshotcontent/name": contentName,
  };
  return {
    sourceVolumeId: spec.source.volumeHandle ?? "",
    name: snapshotName(calls.snapshotNamePrefix, uid, calls.snapshotNameUuidLength),
    parameters: calls.extraCreateMetadata ? { ...parameters, ...metadata } : parameters,
  };
}

/**
 * Asks for the snapshot; the same request returns the same snapshot, however often it is made (CSI, CreateSnapshot).
 */
export async function createSnapshot(
  { driver, timeoutMs }: DriverCalls,
  request: SnapshotRequest,
  secrets: Secrets,
  signal: AbortSignal,
): Promise<SnapshotState> {
  const options = { signal, timeoutMs };
  const { snapshot } = await driver.csi.controller.createSnapshot({ ...request, secrets }, options);
  if (snapshot === undefined || snapshot.snapshotId === "") {
    throw new SnapshotCallError("driver bug: CreateSnapshot returned no snapshot");
  }
  // One that was requested alone is deleted alone, whatever else the driver says of it.
  return { ...snapshotStateOf(snapshot), groupHandle: "" };
}

/** Whether the driver can be asked how a snapshot is. */
export function canLook({ capabilities: { controller } }: Driver): boolean {
  return controller.has("LIST_SNAPSHOTS") || controller.has("GET_SNAPSHOT");
}

/** How a snapshot is that exists. @throws SnapshotCallError when the driver does not know it */
export async function lookAtSnapshot(
  { driver, timeoutMs }: DriverCalls,
  snapshotId: string,
  secrets: Secrets,
  signal: AbortSignal,
): Promise<SnapshotState> {
  const { controller } = driver.csi;
  const options = { signal, timeoutMs };
  if (driver.capabilities.controller.has("LIST_SNAPSHOTS")) {
    const { entries } = await controller.listSnapshots({ snapshotId, secrets }, options);
    const snapshot = entries[0]?.snapshot;
    if (snapshot === undefined) {
      throw new SnapshotCallError(`the driver knows no snapshot "${snapshotId}"`);
    }
    return snapshotStateOf(snapshot);
  }
  const { snapshot } = await controller.getSnapshot({ snapshotId, secrets }, options);
  return snapshot === undefined ? readySnapshot(snapshotId) : snapshotStateOf(snapshot);
}

/** The state of a snapshot at a driver that cannot be asked, and is taken at its word. */
export function readySnapshot(handle: string): SnapshotState {
  return { handle, ready: true, creationTime: undefined, sizeBytes: 0, groupHandle: "" };
}

/** Deletes the snapshot. That it is gone already is no error to the driver (CSI, DeleteSnapshot). */
export async function deleteSnapshot(
  { driver, timeoutMs }: DriverCalls,
  snapshotId: string,
  secrets: Secrets,
  signal: AbortSignal,
): Promise<void> {
  await driver.csi.controller.deleteSnapshot({ snapshotId, secrets }, { signal, timeoutMs });
}

/** The secret that annotations name. @throws SnapshotCallError when they name half of one */
export function annotatedSecret(
  annotations: Readonly<Record<string, string>> | undefined,
  nameAnnotation: string,
  namespaceAnnotation: string,
): SecretReference | undefined {
  const name = annotations?.[nameAnnotation];
  const namespace = annotations?.[namespaceAnnotation];
  if (name === undefined || namespace === undefined) return undefined;
  if (name === "" || namespace === "") {
    throw new SnapshotCallError(`annotations ${nameAnnotation} and …-namespace: neither may be empty`);
  }
  return { name, namespace };
}

/** The secret for CreateSnapshot and DeleteSnapshot. @throws SnapshotCallError */
export function secretOf(content: VolumeSnapshotContent): SecretReference | undefined {
  const { annotations } = content.metadata ?? {};
  return annotatedSecret(annotations, snapshotSecretNameAnnotation, snapshotSecretNamespaceAnnotation);
}

/**
 * The secret for a look. A content of a group has no class: it is looked at with the secret that it was made with.
 * @throws SnapshotCallError
 */
export function lookSecretOf(
  content: VolumeSnapshotContent,
  contentClass: VolumeSnapshotClass | undefined,
): SecretReference | undefined {
  if (content.status?.volumeGroupSnapshotHandle !== undefined) return secretOf(content);
  const className = content.spec.volumeSnapshotClassName;
  if (className === undefined) return undefined;
  const { parameters = {} } = existing(contentClass, className);
  return snapshotSecretReference("snapshotter-list", parameters, {
    contentName: content.metadata?.name ?? "",
  });
}

function existing(contentClass: VolumeSnapshotClass | undefined, name: string): VolumeSnapshotClass {
  if (contentClass === undefined) throw new SnapshotCallError(`VolumeSnapshotClass "${name}" not found`);
  return contentClass;
}
