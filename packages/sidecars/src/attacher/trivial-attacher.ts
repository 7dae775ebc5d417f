/** For a driver that attaches nothing: its attachments are reported attached at once, with no finalizer and no call. */
import { isDeleting, type ReconcileResult, resources, settled } from "@longshore/kube";
import type { AttachContext } from "./attach-reconciler.ts";

/** One pass over the attachment of this name. */
export async function reconcileTrivially(
  context: Pick<AttachContext, "env" | "driver" | "attachments">,
  name: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const va = context.attachments.get(name);
  if (va?.spec?.attacher !== context.driver.name || isDeleting(va) || va.status?.attached === true)
    return settled;
  const body = { status: { attached: true } };
  const options = { signal, subresource: "status" } as const;
  await context.env.kube.patch(resources.volumeAttachments, { name }, { type: "merge", body }, options);
  return settled;
}
