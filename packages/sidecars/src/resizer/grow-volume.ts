/** The call that makes a volume larger. */
import { formatBytes, type KubeClient, type PersistentVolume, parseQuantity } from "@longshore/kube";
import { attachCapability } from "@longshore/storage";
import type { Driver } from "../common/env.ts";
import { secretValues } from "../common/secret-values.ts";
import { csiSpecOf } from "./volume-to-resize.ts";

/** What growing works with. */
export interface GrowContext {
  readonly kube: KubeClient;
  readonly driver: Driver;
  /** The driver expands on nodes only. */
  readonly trivial: boolean;
  /** Deadline of a CSI call, in milliseconds. */
  readonly timeoutMs: number;
}

/** A volume that has grown. */
export interface Grown {
  /** What it has now, as a quantity. */
  readonly capacity: string;
  readonly nodeExpansionRequired: boolean;
}

/** The driver's answer cannot be true. */
export class ResizeAnswerError extends Error {
  override readonly name = "ResizeAnswerError";
}

/**
 * Has the driver give the volume `size` at least. Idempotent.
 * @throws CsiCallError from the driver, SecretMissingError, TranslationError, ResizeAnswerError
 */
export async function growVolume(
  context: GrowContext,
  volume: PersistentVolume,
  size: string,
  signal: AbortSignal,
): Promise<Grown> {
  const { driver, kube, timeoutMs } = context;
  const requiredBytes = parseQuantity(size).toBytes();
  if (context.trivial) return { capacity: formatBytes(requiredBytes), nodeExpansionRequired: true };
  const { spec, migrated } = csiSpecOf(volume);
  const singleNodeMultiWriter = driver.capabilities.controller.has("SINGLE_NODE_MULTI_WRITER");
  const request = {
    volumeId: spec.csi?.volumeHandle ?? "",
    capacityRange: { requiredBytes },
    secrets: await secretValues(kube, spec.csi?.controllerExpandSecretRef ?? undefined, signal),
    volumeCapability: attachCapability(spec, { singleNodeMultiWriter }),
  };
  const answer = await driver.csi.controller.controllerExpandVolume(request, { signal, timeoutMs, migrated });
  // Nothing said means what was asked for, as with CreateVolume.
  const bytes = answer.capacityBytes === 0n ? requiredBytes : answer.capacityBytes;
  if (bytes < requiredBytes) {
    throw new ResizeAnswerError(
      `ControllerExpandVolume succeeded with ${bytes} bytes where ${requiredBytes} were required: the driver must be mended`,
    );
  }
  const has = parseQuantity(volume.spec?.capacity?.storage ?? "0").toBytes();
  return {
    // What was larger already is never made to look smaller.
    capacity: formatBytes(bytes > has ? bytes : has),
    nodeExpansionRequired: answer.nodeExpansionRequired,
  };
}
