/** The call that makes a volume larger: what the driver is asked, and what its answer means. Pure. */
import { formatBytes, type PersistentVolume, parseQuantity } from "@longshore/kube";
import { attachCapability, type CapabilityInit } from "@longshore/storage";
import { csiSpecOf } from "./volume-to-resize.ts";

/** The request of ControllerExpandVolume but for the secret, which only the observation holds. */
export interface ExpandParameters {
  readonly volumeId: string;
  readonly capacityRange: { readonly requiredBytes: bigint };
  readonly volumeCapability: CapabilityInit;
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
 * What the driver is asked, so that the volume has `size` at least.
 * @param singleNodeMultiWriter the driver has SINGLE_NODE_MULTI_WRITER
 * @throws TranslationError, AccessModeError
 */
export function expandParameters(
  volume: PersistentVolume,
  size: string,
  singleNodeMultiWriter: boolean,
): ExpandParameters {
  const { spec } = csiSpecOf(volume);
  return {
    volumeId: spec.csi?.volumeHandle ?? "",
    capacityRange: { requiredBytes: parseQuantity(size).toBytes() },
    volumeCapability: attachCapability(spec, { singleNodeMultiWriter }),
  };
}

/** What a volume has grown to where the driver expands on nodes only: there is nothing to ask its controller. */
export function grownOnNode(size: string): Grown {
  return { capacity: formatBytes(parseQuantity(size).toBytes()), nodeExpansionRequired: true };
}

/** What the answer of the driver means. @throws ResizeAnswerError when it is less than was requested */
export function grownBy(
  volume: PersistentVolume,
  requiredBytes: bigint,
  answer: { readonly capacityBytes: bigint; readonly nodeExpansionRequired: boolean },
): Grown {
  // Nothing said means what was requested, as with CreateVolume.
  const bytes = answer.capacityBytes === 0n ? requiredBytes : answer.capacityBytes;
  if (bytes < requiredBytes) {
    throw new ResizeAnswerError(
      `driver bug: ControllerExpandVolume succeeded with ${bytes} bytes, ${requiredBytes} were required`,
    );
  }
  const has = parseQuantity(volume.spec?.capacity?.storage ?? "0").toBytes();
  return {
    // What was larger already is never made to look smaller.
    capacity: formatBytes(bytes > has ? bytes : has),
    nodeExpansionRequired: answer.nodeExpansionRequired,
  };
}
