/**
 * Attaches and detaches: key is the identity of a disk. Source: docs/behaviour/controllers.md A7.
 *
 * Invariants
 *  - A disk has one pass at a time, and only its passes change what is known of its attachments and operations: two
 *    workers never act on one disk, under whatever name and on whatever node.
 *  - An event costs in proportion to what it touches: it wakes the disks that it names, never all.
 */
import {
  type Controller,
  type Node,
  type QueueEnv,
  type Source,
  type Stored,
  source,
  startController,
} from "@longshore/kube";
import type { AttachDetachContext } from "../attach-detach-context.ts";
import { managedNodeAnnotation } from "../attach-detach-context.ts";
import { onLaterChange } from "../caches.ts";
import { isOutOfService, isReady } from "../detach-guards.ts";
import { recoverRecorded } from "../recover-actual-state.ts";
import { adoptOn } from "../recover-unreported.ts";
import { identitiesOfVolume, provisionalIdentity, type VolumeIdentity } from "../volume-identity.ts";
import { decideDisk } from "./decide-disk.ts";
import { diskActions } from "./disk-actions.ts";
import type { DiskStep } from "./disk-step.ts";
import { type ObservedDisk, observeDisk } from "./observe-disk.ts";

/** Disks are decided by this many at a time; a pass waits for the API server at most, never for a provider. */
const workers = 32;
/** A disk that may be on many nodes takes a few steps for each of them. */
const stepsMax = 5_000;

/** Starts it; the caches have synced, the actual state is recovered, and every pod is marked pending. */
export function startDiskController(env: QueueEnv, context: AttachDetachContext): Controller {
  return startController<ObservedDisk, DiskStep>(env, {
    name: "attach_detach_disks",
    workers,
    stepsMax,
    sources: diskSources(context),
    observe: (identity) => observeDisk(context, identity),
    decide: decideDisk,
    actions: diskActions(context),
  });
}

function diskSources(context: AttachDetachContext): readonly Source[] {
  const { nodes, attachments, volumes } = context.caches;
  const wakeOperation = (name: string) => {
    const identity = context.operations.diskOf(name);
    if (identity !== undefined) context.wakeDisk(identity);
  };
  const wakeOwned = (pv: Parameters<typeof identitiesOfVolume>[1]) => {
    for (const identity of identitiesOfVolume(context.migration, pv)) context.wakeDisk(identity);
  };
  return [
    source(() =>
      onLaterChange(nodes, {
        added: (node) => {
          // Before any disk is decided there: CSI must not take what the in-tree code has attached.
          adoptOn(context, node.metadata.name);
          // Before the Node's record is written over.
          recoverRecorded(context, node);
          wakeNode(context, node.metadata.name);
        },
        updated: (before, after) => onNode(context, before, after),
        deleted: ({ metadata }) => {
          context.missingNodes.deleted(metadata.name);
          wakeNode(context, metadata.name);
        },
      }),
    ),
    source(() =>
      onLaterChange(attachments, {
        added: ({ metadata }) => wakeOperation(metadata.name),
        updated: (_before, { metadata }) => wakeOperation(metadata.name),
        deleted: ({ metadata }) => wakeOperation(metadata.name),
      }),
    ),
    // Whose a disk is decides whether it could be a volume that cannot be named.
    source(() =>
      onLaterChange(volumes, {
        added: wakeOwned,
        updated: (_before, pv) => wakeOwned(pv),
        deleted: wakeOwned,
      }),
    ),
  ];
}

/** The disks of the names that the change touches; all of the node's, where it changes what the node is. */
function onNode(context: AttachDetachContext, before: Stored<Node>, after: Stored<Node>): void {
  if (kindOf(before) !== kindOf(after)) wakeNode(context, after.metadata.name);
  const names = new Set<string>();
  collectChanges(before.status?.volumesInUse ?? [], after.status?.volumesInUse ?? [], names);
  collectChanges(listedOn(before), listedOn(after), names);
  for (const name of names) {
    wakeDiskOn(context, after.metadata.name, context.identityOfName(name));
    // What a pod brought may have said more than the name.
    const attachment = context.actual.get(after.metadata.name, name);
    if (attachment !== undefined) context.wakeDisk(attachment.identity);
  }
}

/** The disk; also where it is known on the node by its VolumeAttachment alone. */
function wakeDiskOn(context: AttachDetachContext, nodeName: string, identity: VolumeIdentity): void {
  context.wakeDisk(identity);
  const provisional = provisionalIdentity(identity, nodeName);
  if (provisional !== undefined && context.actual.get(nodeName, provisional) !== undefined)
    context.wakeDisk(provisional);
}

function listedOn(node: Stored<Node>): readonly string[] {
  return (node.status?.volumesAttached ?? []).map(({ name }) => name);
}

/** What is in one of the two only. */
function collectChanges(before: readonly string[], after: readonly string[], into: Set<string>): void {
  if (before.length === after.length && before.every((name, index) => name === after[index])) return;
  const was = new Set(before);
  for (const name of after) if (!was.delete(name)) into.add(name);
  for (const name of was) into.add(name);
}

function kindOf(node: Stored<Node>): string {
  return `${node.metadata.annotations?.[managedNodeAnnotation] !== undefined} ${isOutOfService(node)} ${isReady(node)}`;
}

function wakeNode(context: AttachDetachContext, nodeName: string): void {
  for (const { identity } of context.actual.on(nodeName)) context.wakeDisk(identity);
  for (const { identity } of context.desired.on(nodeName)) context.wakeDisk(identity);
}
