/**
 * Removes what a check or an interrupted run has made, in passes: what is in use by something else in the first
 * pass (a volume with snapshots, a call still under way) may go in the next.
 *
 * Invariant: a directory stays while a volume may be mounted there. A call that was given up goes on in the driver, and one that
 * finds its directory gone would make it again, or leave it half mounted.
 */
import { CsiCallError } from "@longshore/csi";
import type { Clock, Host } from "@longshore/runtime";
import { assertNever, errorChain } from "@longshore/runtime";
import type { ConformanceClients } from "./conformance-clients.ts";
import { type Ledger, type Made, nameOfMade } from "./ledger.ts";

/** What removing works with. */
export interface UndoEnv {
  readonly clock: Clock;
  readonly host: Host;
  readonly clients: ConformanceClients;
}

const passesMax = 5;
const pauseMs = 500;

/** Removes all that is in the ledger. Returns a sentence for each thing that is still there; never fails. */
export async function undoAll(env: UndoEnv, ledger: Ledger, signal: AbortSignal): Promise<readonly string[]> {
  let reasons = new Map<Made, string>();
  for (let pass = 0; pass < passesMax && ledger.size > 0 && !signal.aborted; pass++) {
    // An abort is no failure of the removal: what is left by then is reported.
    if (pass > 0) await env.clock.sleep(pauseMs * 2 ** (pass - 1), signal).catch(() => {});
    reasons = new Map();
    for (const made of ledger.inOrder()) {
      const reason = await reasonNotUndone(env, made, ledger);
      if (reason === undefined) ledger.remove(made);
      else reasons.set(made, reason);
    }
  }
  return ledger.inOrder().map((made) => `${nameOfMade(made)}: ${reasons.get(made) ?? "not removed in time"}`);
}

async function reasonNotUndone(env: UndoEnv, made: Made, ledger: Ledger): Promise<string | undefined> {
  if (made.kind === "directory" && ledger.mayBeMountedAt(made.path)) return "a volume may be mounted there";
  return undo(env, made).then(
    () => undefined,
    (error: unknown) => errorChain(error),
  );
}

async function undo({ clients, host }: UndoEnv, made: Made): Promise<void> {
  const { controller, groupController, node } = clients;
  switch (made.kind) {
    case "nodePublish":
      await gone(node.nodeUnpublishVolume({ volumeId: made.volumeId, targetPath: made.targetPath }));
      return;
    case "nodeStage":
      await gone(node.nodeUnstageVolume({ volumeId: made.volumeId, stagingTargetPath: made.stagingPath }));
      return;
    case "controllerPublish":
      await gone(controller.controllerUnpublishVolume({ volumeId: made.volumeId, nodeId: made.nodeId }));
      return;
    case "groupSnapshot":
      await gone(
        groupController.deleteVolumeGroupSnapshot({
          groupSnapshotId: made.groupSnapshotId,
          snapshotIds: [...made.snapshotIds],
        }),
      );
      return;
    case "snapshot":
      await gone(controller.deleteSnapshot({ snapshotId: made.snapshotId }));
      return;
    case "volume":
      await gone(controller.deleteVolume({ volumeId: made.volumeId }));
      return;
    // Repeating the call returns the id, which the ledger records: the next pass removes it.
    case "volumeOfRequest":
      await madeOrRefused(controller.createVolume(made.request));
      return;
    case "snapshotOfRequest":
      await madeOrRefused(controller.createSnapshot(made.request));
      return;
    case "groupOfRequest":
      await madeOrRefused(groupController.createVolumeGroupSnapshot(made.request));
      return;
    case "directory":
      await removePath(host, made.path);
      return;
    default:
      assertNever(made);
  }
}

/** What the driver does not know need not be removed. */
async function gone(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof CsiCallError && error.answered && error.code === "NOT_FOUND")) throw error;
  }
}

/** A create with a final refusal has created nothing. */
async function madeOrRefused(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    const isOpen =
      !(error instanceof CsiCallError) ||
      !error.answered ||
      ["ABORTED", "CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE"].includes(error.code);
    if (isOpen) throw error;
  }
}

/** Takes an empty directory away, or what a driver made in its place; data of a volume is never removed. */
async function removePath(host: Host, path: string): Promise<void> {
  const stat = await host.stat(path);
  if (stat === undefined) return;
  if (stat.kind === "directory") await host.removeDirectory(path);
  else await host.removeFile(path);
}
