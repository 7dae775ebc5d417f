/** The calls of in-tree plugins, which run in the background. A failure is an outcome. Source: docs/behaviour/controllers.md A7. */
import { errorChain, withDeadline } from "@longshore/runtime";
import { DanglingAttachError } from "../../../framework/controller-errors.ts";
import { type InTreeAttacher, isInTreeAttachable } from "../../../framework/volume-plugin.ts";
import type { Attachment } from "../actual-state.ts";
import type { AttachDetachContext } from "../attach-detach-context.ts";
import type { DesiredVolume } from "../desired-state.ts";
import type { OperationOutcome } from "../disk-operations.ts";

/** Longest time of one call to a provider, in milliseconds: a plugin's own two minutes and the calls around it. */
export const operationTimeoutMs = 180_000;

/** Attaches. A failure of the plugin before anything was asked of its provider is an outcome of its own. */
export async function attachInTree(
  context: AttachDetachContext,
  volume: DesiredVolume,
  signal: AbortSignal,
): Promise<OperationOutcome> {
  const { spec, nodeName } = volume;
  let attacher: InTreeAttacher;
  try {
    const plugin = await context.plugins.findAttachablePluginBySpec(spec);
    if (plugin === undefined || !isInTreeAttachable(plugin)) {
      throw new Error(`volume plugin ${volume.pluginName} no longer attaches this volume`);
    }
    attacher = plugin.newAttacher();
  } catch (error) {
    return { kind: "not-asked", message: errorChain(error) };
  }
  try {
    const devicePath = await withDeadline(context.env.clock, operationTimeoutMs, signal, (within) =>
      attacher.attach(spec, nodeName, within),
    );
    return { kind: "done", devicePath };
  } catch (error) {
    const message = errorChain(error);
    if (!(error instanceof DanglingAttachError)) return { kind: "failed", message };
    const { currentNode, devicePath } = error;
    return { kind: "dangling", message, currentNode, devicePath };
  }
}

/** Detaches. */
export async function detachInTree(
  context: AttachDetachContext,
  { pluginName, volumeName, nodeName }: Attachment,
  signal: AbortSignal,
): Promise<OperationOutcome> {
  try {
    const plugin = context.plugins.findAttachablePluginByName(pluginName);
    if (plugin === undefined || !isInTreeAttachable(plugin)) {
      throw new Error(`volume plugin ${pluginName} cannot detach`);
    }
    await withDeadline(context.env.clock, operationTimeoutMs, signal, (within) =>
      plugin.newDetacher().detach(volumeName, nodeName, within),
    );
    return { kind: "done", devicePath: "" };
  } catch (error) {
    return { kind: "failed", message: errorChain(error) };
  }
}
