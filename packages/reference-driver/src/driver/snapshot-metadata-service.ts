/**
 * The snapshot metadata service: which blocks of a snapshot hold data, and which changed since an earlier one. The
 * cloud is asked page by page, as the caller takes what came before.
 */
import {
  BlockMetadataType,
  type CsiServices,
  CsiStatusError,
  checkRequest,
  GetMetadataAllocatedRequestSchema,
  GetMetadataDeltaRequestSchema,
} from "@longshore/csi";
import { type ProviderCloud, snapshotBlockBytes } from "../disk-cloud/index.ts";
import { answering } from "./statuses.ts";

/** Tuples of a message when the caller does not say. */
const defaultResults = 1000;

/** What is asked of either call. */
interface Range {
  readonly startingOffset: bigint;
  readonly maxResults: number;
}

/** Builds the service. */
export function snapshotMetadataService(
  cloud: ProviderCloud,
): Required<NonNullable<CsiServices["snapshotMetadata"]>> {
  return {
    async *getMetadataAllocated(request, signal) {
      checkRequest(GetMetadataAllocatedRequestSchema, request, ["snapshot_id"]);
      const { snapshotId } = request;
      yield* metadataOf(cloud, { snapshotId }, request, signal);
    },
    async *getMetadataDelta(request, signal) {
      checkRequest(GetMetadataDeltaRequestSchema, request, ["base_snapshot_id", "target_snapshot_id"]);
      const { baseSnapshotId, targetSnapshotId: snapshotId } = request;
      yield* metadataOf(cloud, { snapshotId, baseSnapshotId }, request, signal);
    },
  };
}

/** The blocks from the one that holds `startingOffset` on. A stream without blocks still has type and capacity. */
async function* metadataOf(
  cloud: ProviderCloud,
  wanted: { readonly snapshotId: string; readonly baseSnapshotId?: string },
  { startingOffset, maxResults }: Range,
  signal: AbortSignal,
) {
  const volumeCapacityBytes = await capacityOf(cloud, wanted.snapshotId, signal);
  if (startingOffset > volumeCapacityBytes) {
    throw new CsiStatusError(
      "OUT_OF_RANGE",
      `starting_offset ${startingOffset} is beyond the ${volumeCapacityBytes} bytes of snapshot ${wanted.snapshotId}`,
    );
  }
  const max = maxResults || defaultResults;
  let from: number | undefined = Number(startingOffset / BigInt(snapshotBlockBytes));
  for (let isFirst = true; from !== undefined; ) {
    const request: Parameters<ProviderCloud["snapshotBlocks"]>[0] = { ...wanted, from, max };
    const { blocks, next } = await answering(() => cloud.snapshotBlocks(request, signal));
    from = next;
    // Type and capacity travel in messages: a stream without any block still needs one.
    if (blocks.length === 0 && !(isFirst && next === undefined)) continue;
    isFirst = false;
    const blockMetadata = blocks.map((block) => rangeOf(block, volumeCapacityBytes));
    yield { blockMetadataType: BlockMetadataType.FIXED_LENGTH, volumeCapacityBytes, blockMetadata };
  }
}

async function capacityOf(cloud: ProviderCloud, snapshotId: string, signal: AbortSignal): Promise<bigint> {
  const snapshots = await answering(() => cloud.listSnapshots(signal));
  const snapshot = snapshots.find(({ id }) => id === snapshotId);
  if (snapshot === undefined) {
    throw new CsiStatusError("NOT_FOUND", `snapshot ${snapshotId} does not exist`);
  }
  return snapshot.sizeBytes;
}

/** A block as a range of bytes, which ends with the volume at the latest. */
function rangeOf(block: number, capacityBytes: bigint) {
  const byteOffset = BigInt(block) * BigInt(snapshotBlockBytes);
  const restBytes = capacityBytes - byteOffset;
  const sizeBytes = restBytes < snapshotBlockBytes ? restBytes : BigInt(snapshotBlockBytes);
  return { byteOffset, sizeBytes };
}
