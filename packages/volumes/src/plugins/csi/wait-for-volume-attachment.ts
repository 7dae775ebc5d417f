/**
 * The node's wait for a VolumeAttachment. It polls with single GETs: the node authorizer allows a
 * kubelet nothing else on VolumeAttachments. Source: docs/behaviour/csi-plugin.md 5.
 */
import { type CSIPersistentVolumeSource, resources } from "@longshore/kube";
import { backoffMs } from "@longshore/runtime";
import { attachmentName } from "@longshore/storage";
import { attachVerdict } from "./attachment-status.ts";
import type { CsiNodeContext } from "./csi-node-context.ts";

/** The volume is not attached and waiting any longer is no use. */
export class NotAttachedError extends Error {
  override readonly name = "NotAttachedError";
}

/** Waits until the volume is attached to this node; returns the attachment's name. @throws NotAttachedError */
export async function waitForVolumeAttachment(
  context: CsiNodeContext,
  source: CSIPersistentVolumeSource,
  signal: AbortSignal,
): Promise<string> {
  const { kube, clock } = context.volumeHost;
  const name = attachmentName(source.volumeHandle, source.driver, context.kubelet.nodeName);
  for (let attempt = 1; ; attempt++) {
    const attachment = await kube.get(resources.volumeAttachments, { name }, { signal });
    const verdict = attachVerdict(attachment);
    if (verdict.kind === "done") return name;
    if (verdict.kind === "failed") {
      throw new NotAttachedError(
        `volume ${source.volumeHandle} (VolumeAttachment ${name}): ${verdict.message}`,
      );
    }
    await clock.sleep(backoffMs({ initialMs: 100, maximumMs: 2000 }, attempt), signal);
  }
}
