/** The calls to a driver about single snapshots. */
import type { CsiCallOptions } from "@longshore/csi";
import type { KubeClient, SecretReference } from "@longshore/kube";
import {
  snapshotName,
  snapshotSecretNameAnnotation,
  snapshotSecretNamespaceAnnotation,
  snapshotSecretReference,
  stripSnapshotParameters,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import type { Driver } from "../common/env.ts";
import { SecretMissingError, secretValues } from "../common/secret-values.ts";
import { type SnapshotState, snapshotStateOf } from "./snapshot-state.ts";

/** A snapshot cannot be made, looked at or deleted as things are. The text is shown to users. */
export class SnapshotCallError extends Error {
  override readonly name = "SnapshotCallError";
}

/** What calls about snapshots need. */
export interface SnapshotCalls {
  readonly kube: KubeClient;
  readonly driver: Driver;
  /** Deadline of each call, in milliseconds. */
  readonly timeoutMs: number;
  readonly snapshotNamePrefix: string;
  readonly snapshotNameUuidLength: number;
  /** CreateSnapshot receives the names of the VolumeSnapshot and its content. */
  readonly extraCreateMetadata: boolean;
  readonly classOf: (name: string) => VolumeSnapshotClass | undefined;
}

/** Everything that CreateSnapshot is asked with. @throws SnapshotCallError, ParameterError, SecretMissingError */
export async function createRequest(
  calls: SnapshotCalls,
  content: VolumeSnapshotContent,
  signal: AbortSignal,
) {
  const { spec } = content;
  const contentName = content.metadata?.name ?? "";
  const { uid, name = "", namespace = "" } = spec.volumeSnapshotRef;
  if (!uid) throw new SnapshotCallError(`content "${contentName}" is bound to no VolumeSnapshot`);
  const className = spec.volumeSnapshotClassName;
  if (className === undefined) {
    throw new SnapshotCallError(`content "${contentName}" names no VolumeSnapshotClass`);
  }
  const parameters = stripSnapshotParameters(classNamed(calls, className).parameters ?? {});
  const metadata = {
    "csi.storage.k8s.io/volumesnapshot/name": name,
    "csi.storage.k8s.io/volumesnapshot/namespace": namespace,
    "csi.storage.k8s.io/volumesnapshotcontent/name": contentName,
  };
  return {
    sourceVolumeId: spec.source.volumeHandle ?? "",
    name: snapshotName(calls.snapshotNamePrefix, uid, calls.snapshotNameUuidLength),
    secrets: await secretValues(calls.kube, secretOf(content), signal),
    parameters: calls.extraCreateMetadata ? { ...parameters, ...metadata } : parameters,
  };
}

/**
 * Asks for the snapshot; the same request returns the same snapshot, however often it is made (CSI, CreateSnapshot).
 */
export async function createSnapshot(
  calls: SnapshotCalls,
  request: Awaited<ReturnType<typeof createRequest>>,
  signal: AbortSignal,
): Promise<SnapshotState> {
  const { snapshot } = await calls.driver.csi.controller.createSnapshot(request, callOptions(calls, signal));
  if (snapshot === undefined || snapshot.snapshotId === "") {
    throw new SnapshotCallError("CreateSnapshot gave no snapshot: the driver must be mended");
  }
  // One that was asked for alone is deleted alone, whatever else the driver says of it.
  return { ...snapshotStateOf(snapshot), groupHandle: "" };
}

/** Whether the driver can be asked how a snapshot is. */
export function canLook({ capabilities: { controller } }: Driver): boolean {
  return controller.has("LIST_SNAPSHOTS") || controller.has("GET_SNAPSHOT");
}

/**
 * How a snapshot is that exists. A driver that cannot be asked is taken at its word: the snapshot is ready.
 * @throws SnapshotCallError when the driver does not know it
 */
export async function lookAtSnapshot(
  calls: SnapshotCalls,
  content: VolumeSnapshotContent,
  snapshotId: string,
  signal: AbortSignal,
): Promise<SnapshotState> {
  const { controller } = calls.driver.capabilities;
  const options = callOptions(calls, signal);
  if (controller.has("LIST_SNAPSHOTS")) {
    const secrets = await secretValues(calls.kube, listSecretOf(calls, content), signal);
    const { entries } = await calls.driver.csi.controller.listSnapshots({ snapshotId, secrets }, options);
    const snapshot = entries[0]?.snapshot;
    if (snapshot === undefined) {
      throw new SnapshotCallError(`the driver knows no snapshot "${snapshotId}"`);
    }
    return snapshotStateOf(snapshot);
  }
  if (controller.has("GET_SNAPSHOT")) {
    const secrets = await secretValues(calls.kube, listSecretOf(calls, content), signal);
    const { snapshot } = await calls.driver.csi.controller.getSnapshot({ snapshotId, secrets }, options);
    if (snapshot !== undefined) return snapshotStateOf(snapshot);
  }
  return { handle: snapshotId, ready: true, creationTime: undefined, sizeBytes: 0, groupHandle: "" };
}

/** Deletes the snapshot. That it is gone already is no error to the driver (CSI, DeleteSnapshot). */
export async function deleteSnapshot(
  calls: SnapshotCalls,
  content: VolumeSnapshotContent,
  snapshotId: string,
  signal: AbortSignal,
): Promise<void> {
  const secrets = await secretsForDeletion(calls.kube, secretOf(content), signal);
  await calls.driver.csi.controller.deleteSnapshot({ snapshotId, secrets }, callOptions(calls, signal));
}

/** The secret, if it is still there: a namespace that is being removed takes it first, and the driver may do without. */
export async function secretsForDeletion(
  kube: KubeClient,
  reference: SecretReference | undefined,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  try {
    return await secretValues(kube, reference, signal);
  } catch (error) {
    if (error instanceof SecretMissingError) return {};
    throw error;
  }
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

function secretOf(content: VolumeSnapshotContent): SecretReference | undefined {
  const { annotations } = content.metadata ?? {};
  return annotatedSecret(annotations, snapshotSecretNameAnnotation, snapshotSecretNamespaceAnnotation);
}

/** A content of a group has no class: it is looked at with the secret that it was made with. */
function listSecretOf(calls: SnapshotCalls, content: VolumeSnapshotContent): SecretReference | undefined {
  if (content.status?.volumeGroupSnapshotHandle !== undefined) return secretOf(content);
  const className = content.spec.volumeSnapshotClassName;
  if (className === undefined) return undefined;
  const { parameters = {} } = classNamed(calls, className);
  return snapshotSecretReference("snapshotter-list", parameters, {
    contentName: content.metadata?.name ?? "",
  });
}

function classNamed(calls: SnapshotCalls, name: string): VolumeSnapshotClass {
  const found = calls.classOf(name);
  if (found === undefined) throw new SnapshotCallError(`VolumeSnapshotClass "${name}" not found`);
  return found;
}

function callOptions(calls: SnapshotCalls, signal: AbortSignal): CsiCallOptions {
  return { signal, timeoutMs: calls.timeoutMs };
}
