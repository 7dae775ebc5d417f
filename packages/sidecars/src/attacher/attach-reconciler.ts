/**
 * Brings one VolumeAttachment to the state that its spec asks for.
 *
 *     created ─► PV finalizer ─► VA finalizer + node id ─► ControllerPublishVolume ─► attached
 *     deleted ─► ControllerUnpublishVolume ─► VA finalizer off ─► gone, or not attached for who else holds it
 *
 * Invariants
 *  - Our finalizers are stored before ControllerPublishVolume is first called, so that a crash between
 *    the two can repeat a call but cannot lose track of a volume.
 *  - Whatever ControllerPublishVolume answered, the finalizer stays: every failure may have attached.
 *  - The finalizer goes before the status is cleared; the other way round a crash would unpublish twice.
 *  - A pass may stop at any `await` and begin again; a second pass changes nothing more.
 */
import { CsiCallError, type CsiCallOptions, grpcCodes } from "@longshore/csi";
import {
  type CSINode,
  type EventRecorder,
  type Informer,
  involvedObject,
  isConflict,
  isDeleting,
  isNotFound,
  type PersistentVolume,
  type ReconcileResult,
  resources,
  type Stored,
  settled,
  type VolumeAttachment,
} from "@longshore/kube";
import { assertNever, errorChain } from "@longshore/runtime";
import { attachCapability, nodeIdAnnotation } from "@longshore/storage";
import { apiTime, type Driver, type SidecarEnv } from "../common/env.ts";
import { addFinalizerPatch } from "../common/finalizers.ts";
import { secretValues } from "../common/secret-values.ts";
import { decideAttachStep } from "./attach-step.ts";
import {
  type AttachedVolume,
  AttachmentError,
  nodeIdFor,
  sourceOf,
  volumeOfPv,
  volumeOfSpec,
} from "./attached-volume.ts";

/** What the reconciler works with. */
export interface AttachContext {
  readonly env: SidecarEnv;
  readonly driver: Driver;
  readonly events: Pick<EventRecorder, "event">;
  readonly attachments: Pick<Informer<VolumeAttachment>, "get">;
  readonly volumes: Pick<Informer<PersistentVolume>, "get">;
  readonly csiNodes: Pick<Informer<CSINode>, "get">;
  /** The deprecated annotation of a node without a CSINode; left out: as the reference, nothing is asked. */
  readonly announcedNodeId?: (nodeName: string, signal: AbortSignal) => Promise<string | undefined>;
  /** Names of attachments that the driver's own list contradicts; cleared when put right. */
  readonly forced: Set<string>;
  /** Deadline of a CSI call, in milliseconds. */
  readonly timeoutMs: number;
  /** File system of a volume that names none. */
  readonly defaultFsType: string;
  /** The finalizer that the attacher of this driver adds to attachments and volumes. */
  readonly finalizer: string;
}

type Attachment = Stored<VolumeAttachment>;

/** One pass over the attachment of this name. Failures are written to its status and thrown, to be retried. */
export async function reconcileAttachment(
  context: AttachContext,
  name: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const va = context.attachments.get(name);
  if (va === undefined || va.spec?.attacher !== context.driver.name) {
    context.forced.delete(name);
    return settled;
  }
  const step = decideAttachStep(va, context.finalizer, context.forced.has(name));
  switch (step.kind) {
    case "none":
      return settled;
    case "attach":
      await reporting(context, va, "attachError", signal, () => attach(context, va, signal));
      break;
    case "detach":
      await reporting(context, va, "detachError", signal, () => detach(context, va, signal));
      break;
    default:
      assertNever(step);
  }
  context.forced.delete(name);
  return settled;
}

async function attach(context: AttachContext, va: Attachment, signal: AbortSignal): Promise<void> {
  const { driver, env } = context;
  const volume = await volumeToAttach(context, va, signal);
  const { controller } = driver.capabilities;
  const support = { singleNodeMultiWriter: controller.has("SINGLE_NODE_MULTI_WRITER") };
  const volumeCapability = attachCapability(volume.spec, support, context.defaultFsType);
  const secrets = await secretValues(env.kube, volume.csi.controllerPublishSecretRef ?? undefined, signal);
  const nodeId = await nodeIdOfAttachment(context, va, undefined, signal);
  const request = {
    volumeId: volume.csi.volumeHandle,
    nodeId,
    volumeCapability,
    readonly: volume.csi.readOnly === true && controller.has("PUBLISH_READONLY"),
    secrets,
    volumeContext: volume.csi.volumeAttributes ?? {},
  };
  await storeIntent(context, va, nodeId, signal);
  const { publishContext } = await driver.csi.controller.controllerPublishVolume(request, {
    ...callOptions(context, signal),
    migrated: volume.migrated,
  });
  const attachmentMetadata = replacing(va.status?.attachmentMetadata, publishContext);
  await patchStatus(context, va, { attached: true, attachError: null, ...attachmentMetadata }, signal);
}

async function detach(context: AttachContext, va: Attachment, signal: AbortSignal): Promise<void> {
  const { driver, env } = context;
  const source = sourceOf(va);
  const volume =
    "inline" in source ? volumeOfSpec(source.inline) : volumeOfPv(knownVolume(context, source.pvName));
  const secrets = await secretValues(env.kube, volume.csi.controllerPublishSecretRef ?? undefined, signal);
  const nodeId = await nodeIdOfAttachment(context, va, va, signal);
  const request = { volumeId: volume.csi.volumeHandle, nodeId, secrets };
  await driver.csi.controller.controllerUnpublishVolume(request, {
    ...callOptions(context, signal),
    migrated: volume.migrated,
  });
  await dropFinalizer(context, va, signal);
}

/** @param remembered the attachment, when its own annotation may name the node's id: for detaching only */
async function nodeIdOfAttachment(
  { csiNodes, driver, announcedNodeId }: AttachContext,
  va: Attachment,
  remembered: Attachment | undefined,
  signal: AbortSignal,
): Promise<string> {
  const { nodeName } = va.spec;
  const csiNode = csiNodes.get(nodeName);
  try {
    return nodeIdFor(csiNode, driver.name, nodeName, remembered);
  } catch (error) {
    // A kubelet that writes CSINodes takes its annotation away with the entry: there is nothing else to learn.
    const announced = csiNode === undefined ? await announcedNodeId?.(nodeName, signal) : undefined;
    if (announced === undefined) throw error;
    return announced;
  }
}

/** What of `attachmentMetadata` a merge patch must say so that nothing of what was there before stays. */
function replacing(
  before: Readonly<Record<string, string>> | null | undefined,
  after: Readonly<Record<string, string>>,
): { readonly attachmentMetadata?: Readonly<Record<string, string | null>> | null } {
  const stale = Object.keys(before ?? {}).filter((key) => !Object.hasOwn(after, key));
  if (Object.keys(after).length === 0) return stale.length === 0 ? {} : { attachmentMetadata: null };
  return { attachmentMetadata: { ...Object.fromEntries(stale.map((key) => [key, null])), ...after } };
}

/** The volume to attach, made sure of with our finalizer so that it can still be detached when it is deleted. */
async function volumeToAttach(
  context: AttachContext,
  va: Attachment,
  signal: AbortSignal,
): Promise<AttachedVolume> {
  const source = sourceOf(va);
  if ("inline" in source) return volumeOfSpec(source.inline);
  const pv = knownVolume(context, source.pvName);
  if (isDeleting(pv)) throw new AttachmentError(`PersistentVolume "${source.pvName}" is marked for deletion`);
  const { finalizer } = context;
  const { finalizers } = pv.metadata;
  if (!(finalizers ?? []).includes(finalizer)) {
    const body = addFinalizerPatch(finalizers, finalizer);
    const ref = { name: source.pvName };
    await context.env.kube.patch(resources.persistentVolumes, ref, { type: "json", body }, { signal });
  }
  return volumeOfPv(pv);
}

function knownVolume(context: AttachContext, pvName: string): Stored<PersistentVolume> {
  const pv = context.volumes.get(pvName);
  if (pv === undefined) throw new AttachmentError(`PersistentVolume "${pvName}" not found`);
  return pv;
}

/** Finalizer and node id on the attachment, in one write, unless both are there. */
async function storeIntent(
  context: AttachContext,
  va: Attachment,
  nodeId: string,
  signal: AbortSignal,
): Promise<void> {
  const { finalizer } = context;
  const { finalizers = [], annotations, resourceVersion } = va.metadata;
  const isHeld = finalizers.includes(finalizer);
  const isAnnotated = annotations?.[nodeIdAnnotation] === nodeId;
  if (isHeld && isAnnotated) return;
  const metadata = {
    // With it the patch fails on an attachment that changed, so no finalizer of others is dropped.
    resourceVersion,
    ...(isHeld ? {} : { finalizers: [...finalizers, finalizer] }),
    ...(isAnnotated ? {} : { annotations: { [nodeIdAnnotation]: nodeId } }),
  };
  const ref = { name: va.metadata.name };
  await context.env.kube.patch(
    resources.volumeAttachments,
    ref,
    { type: "merge", body: { metadata } },
    { signal },
  );
}

async function dropFinalizer(context: AttachContext, va: Attachment, signal: AbortSignal): Promise<void> {
  const { finalizer } = context;
  const { finalizers = [], resourceVersion, name } = va.metadata;
  const rest = finalizers.filter((f) => f !== finalizer);
  try {
    if (rest.length !== finalizers.length) {
      const metadata = { resourceVersion, finalizers: rest.length === 0 ? null : rest };
      const left = await context.env.kube.patch(
        resources.volumeAttachments,
        { name },
        { type: "merge", body: { metadata } },
        { signal },
      );
      // Nothing held it but us, so it is gone, and there is no status to write to.
      if (isDeleting(left) && (left.metadata.finalizers ?? []).length === 0) return;
    }
    await patchStatus(context, va, { attached: false, detachError: null, attachmentMetadata: null }, signal);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** Runs `work`; reports a failure in the status and in an event, then throws it again so that the queue backs off. */
async function reporting(
  context: AttachContext,
  va: Attachment,
  field: "attachError" | "detachError",
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    // Conflict: not a failure; retry with the current state.
    if (signal.aborted || isConflict(error)) throw error;
    const message = errorChain(error);
    const reason = field === "attachError" ? "FailedAttachVolume" : "FailedDetachVolume";
    context.events.event(involvedObject(resources.volumeAttachments, va), "Warning", reason, message);
    try {
      // A server that does not know the code drops it (Kubernetes before 1.33).
      const errorCode = error instanceof CsiCallError ? grpcCodes.indexOf(error.code) : null;
      const time = apiTime(context.env.clock);
      await patchStatus(context, va, { [field]: { message, time, errorCode } }, signal);
    } catch (statusError) {
      if (!isNotFound(statusError))
        context.env.logger.warn("cannot report a failed attachment", { error: statusError });
    }
    throw error;
  }
}

async function patchStatus(
  context: AttachContext,
  va: Attachment,
  status: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<void> {
  // The API demands `attached` in every status, also in the first.
  const attached = va.status?.attached ?? false;
  await context.env.kube.patch(
    resources.volumeAttachments,
    { name: va.metadata.name },
    { type: "merge", body: { status: { attached, ...status } } },
    { signal, subresource: "status" },
  );
}

function callOptions(context: AttachContext, signal: AbortSignal): CsiCallOptions {
  return { signal, timeoutMs: context.timeoutMs };
}
