/**
 * The controller half of the CSI plugin: attaching and detaching by VolumeAttachment objects, which
 * the driver's attacher serves. Source: docs/behaviour/csi-plugin.md 4-7.
 *
 * Invariants
 *  - Existence of the object is the intent, deletion is the detach; an existing object is never changed.
 *  - `status.attached` of an object that is being deleted is not trusted.
 */
import {
  isAlreadyExists,
  isExpired,
  type KubeClient,
  resources,
  type Stored,
  type VolumeAttachment,
} from "@longshore/kube";
import { DeadlineError, type RuntimeEnv, withDeadline } from "@longshore/runtime";
import { attachmentName } from "@longshore/storage";
import type { VolumeHost } from "../../framework/volume-host.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import { type AttachmentVerdict, attachVerdict, detachVerdict } from "./attachment-status.ts";
import { csiSourceOf, isAttachmentName, parseCsiVolumeName } from "./csi-names.ts";

/** Deadline of attach and of detach, in milliseconds. */
export const attachTimeoutMs = 120_000;
/** Pause before a watch that the server ended is opened again, in milliseconds. */
const rewatchPauseMs = 100;

/** An attach or detach through a VolumeAttachment did not succeed. */
export class AttachmentError extends Error {
  override readonly name = "AttachmentError";
}

/** Attaches and detaches; `host` returns the host that the plugin was initialised with. */
export class CsiAttacher {
  readonly #host: () => VolumeHost;
  readonly #skipAttach: (driver: string, signal: AbortSignal) => Promise<boolean>;

  /** @param skipAttach whether the driver needs no attach (`CSIDriver.spec.attachRequired: false`) */
  constructor(host: () => VolumeHost, skipAttach: (driver: string, signal: AbortSignal) => Promise<boolean>) {
    this.#host = host;
    this.#skipAttach = skipAttach;
  }

  /** Makes the VolumeAttachment and waits until it is attached. The device path is always empty. */
  async attach(spec: VolumeSpec, nodeName: string, signal: AbortSignal): Promise<string> {
    const host = this.#host();
    const { driver, volumeHandle } = csiSourceOf(spec);
    const attachment = attachmentFor(spec, nodeName);
    const name = attachment.metadata?.name ?? "";
    await withTimeout(host, volumeHandle, attachTimeoutMs, signal, async (within) => {
      try {
        await host.kube.create(resources.volumeAttachments, attachment, { signal: within });
      } catch (error) {
        // The object of an earlier try serves as well: its existence is the intent (docs/behaviour/csi-plugin.md 4).
        if (!isAlreadyExists(error)) {
          throw new AttachmentError(`VolumeAttachment ${name} of driver ${driver} was not created`, {
            cause: error,
          });
        }
      }
      await waitForVerdict(host, volumeHandle, name, within, attachVerdict);
    });
    return "";
  }

  /** Deletes the VolumeAttachment and waits until it is detached. */
  async detach(volumeName: string, nodeName: string, signal: AbortSignal): Promise<void> {
    const host = this.#host();
    const name = attachmentOfVolume(volumeName, nodeName);
    await withTimeout(host, volumeName, attachTimeoutMs, signal, async (within) => {
      const found = await host.kube.delete(resources.volumeAttachments, { name }, { signal: within });
      if (!found) return;
      let seenAttached = false;
      let first = true;
      await waitForVerdict(host, volumeName, name, within, (attachment) => {
        // Only a change seen after our DELETE says that this detach is done.
        if (attachment?.status?.attached === true) seenAttached = true;
        const verdict = detachVerdict(attachment, seenAttached);
        // An error from before our DELETE is not the answer to it: wait for the attacher's next result.
        const stale = first && verdict.kind === "failed";
        first = false;
        return stale ? { kind: "wait" } : verdict;
      });
    });
  }

  /** For each spec whether its VolumeAttachment says attached; from the controller's cache where there is one. */
  async volumesAreAttached(
    specs: readonly VolumeSpec[],
    nodeName: string,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<VolumeSpec, boolean>> {
    const answers = new Map<VolumeSpec, boolean>();
    for (const spec of specs) answers.set(spec, await this.#isAttached(spec, nodeName, signal));
    return answers;
  }

  async #isAttached(spec: VolumeSpec, nodeName: string, signal: AbortSignal): Promise<boolean> {
    const host = this.#host();
    const source = spec.persistentVolume?.spec?.csi;
    if (source == null) return false;
    if (await this.#skipAttach(source.driver, signal)) return true;
    const name = attachmentName(source.volumeHandle, source.driver, nodeName);
    const cached = host.attachDetach?.volumeAttachment(name);
    if (cached !== undefined) return cached.status?.attached ?? false;
    const live = await host.kube.get(resources.volumeAttachments, { name }, { signal });
    return live?.status?.attached ?? false;
  }
}

/** The VolumeAttachment that attaches the volume to the node: by PV name, or for a migrated inline volume by its spec. */
export function attachmentFor(spec: VolumeSpec, nodeName: string): VolumeAttachment {
  const { driver, volumeHandle } = csiSourceOf(spec);
  const pv = spec.persistentVolume;
  const source =
    spec.inlineVolumeSpecForCsiMigration && pv?.spec !== undefined
      ? { inlineVolumeSpec: pv.spec }
      : { persistentVolumeName: pv?.metadata?.name ?? "" };
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "VolumeAttachment",
    metadata: { name: attachmentName(volumeHandle, driver, nodeName) },
    spec: { attacher: driver, nodeName, source },
  };
}

/** Waits until `judge` comes to a verdict: looks once, then watches. @throws AttachmentError */
async function waitForVerdict(
  env: Pick<RuntimeEnv, "clock"> & { readonly kube: KubeClient },
  volume: string,
  name: string,
  signal: AbortSignal,
  judge: (attachment: Stored<VolumeAttachment> | undefined) => AttachmentVerdict,
): Promise<void> {
  for (;;) {
    const current = await env.kube.get(resources.volumeAttachments, { name }, { signal });
    if (settle(judge(current), volume, name)) return;
    if (current !== undefined && (await watchForVerdict(env.kube, volume, name, current, signal, judge)))
      return;
    await env.clock.sleep(rewatchPauseMs, signal);
  }
}

/** True when the verdict is done; false when the watch ended without one. */
async function watchForVerdict(
  kube: KubeClient,
  volume: string,
  name: string,
  from: Stored<VolumeAttachment>,
  signal: AbortSignal,
  judge: (attachment: Stored<VolumeAttachment> | undefined) => AttachmentVerdict,
): Promise<boolean> {
  const events = kube.watch(resources.volumeAttachments, {
    fieldSelector: `metadata.name=${name}`,
    resourceVersion: from.metadata.resourceVersion,
    signal,
  });
  try {
    for await (const event of events) {
      if (event.type === "BOOKMARK") continue;
      if (settle(judge(event.type === "DELETED" ? undefined : event.object), volume, name)) return true;
    }
  } catch (error) {
    // The version is too old to watch from: the caller reads the object again.
    if (!isExpired(error)) throw error;
  }
  return false;
}

function settle(verdict: AttachmentVerdict, volume: string, name: string): boolean {
  if (verdict.kind !== "failed") return verdict.kind === "done";
  throw new AttachmentError(`volume ${volume}, VolumeAttachment ${name}: ${verdict.message}`);
}

async function withTimeout<T>(
  env: Pick<RuntimeEnv, "clock">,
  volume: string,
  timeoutMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  try {
    return await withDeadline(env.clock, timeoutMs, signal, work);
  } catch (error) {
    if (!(error instanceof DeadlineError)) throw error;
    throw new AttachmentError(`attachdetachment timeout for volume ${volume}`, { cause: error });
  }
}

/**
 * Name of the VolumeAttachment of a volume on a node. @param volumeName the plugin's name of it, or the name itself
 * @throws CsiVolumeError for anything else
 */
export function attachmentOfVolume(volumeName: string, nodeName: string): string {
  if (isAttachmentName(volumeName)) return volumeName;
  const { driver, volumeHandle } = parseCsiVolumeName(volumeName);
  return attachmentName(volumeHandle, driver, nodeName);
}
