/**
 * Asks the plugins from time to time whether what is recorded as attached still is; what is not, is uncertain
 * from then on: attached again, or detached to be sure. Source: docs/behaviour/controllers.md A7, "Verify sync".
 */
import { errorChain, withDeadline } from "@longshore/runtime";
import { isAttachable } from "../../framework/volume-plugin.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import type { Attachment } from "./actual-state.ts";
import type { AttachDetachContext } from "./attach-detach-context.ts";
import { scopeOf } from "./operation-scope.ts";

/** Deadline of the question about one node's volumes of one plugin, in milliseconds. */
const verifyTimeoutMs = 30_000;

/** One round over all confirmed attachments with a spec. A failed question changes nothing. */
export async function verifyAttached(context: AttachDetachContext, signal: AbortSignal): Promise<void> {
  const groups = new Map<string, Attachment[]>();
  for (const attachment of context.actual.all()) {
    if (!attachment.confirmed || attachment.spec === undefined || isBusy(context, attachment)) continue;
    const group = `${attachment.nodeName}\n${attachment.pluginName}`;
    const attachments = groups.get(group);
    if (attachments === undefined) groups.set(group, [attachment]);
    else attachments.push(attachment);
  }
  for (const attachments of groups.values()) {
    try {
      await withDeadline(context.env.clock, verifyTimeoutMs, signal, (within) =>
        verifyGroup(context, attachments, within),
      );
    } catch (error) {
      if (signal.aborted) throw error;
      context.env.logger.warn("attachments not verified", {
        node: attachments[0]?.nodeName,
        error: errorChain(error),
      });
    }
  }
}

async function verifyGroup(
  context: AttachDetachContext,
  attachments: readonly Attachment[],
  signal: AbortSignal,
): Promise<void> {
  const [first] = attachments;
  if (first === undefined) return;
  const plugin = context.plugins.findPluginByName(first.pluginName);
  if (!isAttachable(plugin)) return;
  const specs = attachments.map(({ spec }) => spec as VolumeSpec);
  const answers = await plugin.newAttacher().volumesAreAttached(specs, first.nodeName, signal);
  for (const [index, attachment] of attachments.entries()) {
    // Asked before, answered now: an operation of meanwhile knows better.
    if (answers.get(specs[index] as VolumeSpec) !== false || isBusy(context, attachment)) continue;
    if (context.actual.get(attachment.nodeName, attachment.uniqueName) !== attachment) continue;
    context.env.logger.warn("volume is no longer attached", {
      volume: attachment.uniqueName,
      node: attachment.nodeName,
    });
    // Uncertain rather than forgotten: the answer may be older than the attach.
    context.actual.doubt(attachment);
    context.wakeDisk(attachment.identity);
  }
}

function isBusy(context: AttachDetachContext, attachment: Attachment): boolean {
  return context.operations.isPending(scopeOf(attachment));
}
