/** Faults of the snapshot metadata service, of both of its streams alike. */
import {
  BlockMetadataType,
  type CsiServices,
  CsiStatusError,
  create,
  GetPluginCapabilitiesResponseSchema,
  PluginCapability_Service_Type as Plugin,
} from "@longshore/csi";
import { changes, type Fault } from "./fault.ts";
import type { FaultName } from "./fault-descriptions.ts";

interface Block {
  readonly byteOffset: bigint;
  readonly sizeBytes: bigint;
}
interface Message {
  readonly blockMetadataType: BlockMetadataType;
  readonly volumeCapacityBytes: bigint;
  readonly blockMetadata: readonly Block[];
}
/** A request of either call. */
interface Request {
  readonly snapshotId?: string;
  readonly baseSnapshotId?: string;
  readonly targetSnapshotId?: string;
  readonly startingOffset: bigint;
  readonly maxResults: number;
}
interface StreamCall {
  readonly request: Request;
  /** All messages of the driver's own stream. */
  readonly next: (request?: Request) => Promise<readonly Message[]>;
}
type Handler = (request: Request, signal: AbortSignal) => AsyncIterable<Message>;

/** Puts `faulty` around both streams. A driver without them is left as it is. */
function streams(faulty: (call: StreamCall) => Promise<readonly Message[]>): Fault {
  return (services) => {
    if (services.snapshotMetadata === undefined) return services;
    const wrapped: Record<string, Handler> = {};
    for (const [rpc, own] of Object.entries(services.snapshotMetadata)) {
      const handler = own as unknown as Handler;
      wrapped[rpc] = async function* (request, signal) {
        const next = async (other = request) => {
          const messages: Message[] = [];
          for await (const message of handler(other, signal)) messages.push(message);
          return messages;
        };
        yield* await faulty({ request, next });
      };
    }
    return { ...services, snapshotMetadata: wrapped as unknown as CsiServices["snapshotMetadata"] & object };
  };
}

/** Changes the messages. */
const answersStreams = (change: (messages: readonly Message[], request: Request) => readonly Message[]) =>
  streams(async ({ request, next }) => change(await next(), request));

/** Changes each message by itself. */
const eachMessage = (change: (message: Message, index: number) => Partial<Message>) =>
  answersStreams((messages) => messages.map((message, index) => ({ ...message, ...change(message, index) })));

/** All ranges in the first message. */
function inOne(messages: readonly Message[], change: (blocks: readonly Block[]) => readonly Block[]) {
  const [first] = messages;
  return first === undefined
    ? []
    : [{ ...first, blockMetadata: change(messages.flatMap(({ blockMetadata }) => blockMetadata)) }];
}

const nothing: Message = {
  blockMetadataType: BlockMetadataType.FIXED_LENGTH,
  volumeCapacityBytes: 1024n ** 3n,
  blockMetadata: [],
};
/** More than any volume has, and less than a check may ask for that looks for a refusal. */
const anyVolumeBytes = 2n ** 50n;
const resumes = ({ startingOffset }: Request) => startingOffset > 0n && startingOffset < anyVolumeBytes;
const lacksId = ({ snapshotId, baseSnapshotId, targetSnapshotId }: Request) =>
  [snapshotId, baseSnapshotId, targetSnapshotId].includes("");

/** By name. */
export const metadataFaults = {
  "metadata-service-not-declared": changes("identity", "getPluginCapabilities", (answer) => {
    const message = create(GetPluginCapabilitiesResponseSchema, answer);
    const capabilities = message.capabilities.filter(
      ({ type }) => type.case !== "service" || type.value.type !== Plugin.SNAPSHOT_METADATA_SERVICE,
    );
    return { capabilities };
  }),
  "metadata-service-not-served": ({ snapshotMetadata: _, ...services }) => services,
  "metadata-without-id-accepted": streams(async ({ request, next }) =>
    lacksId(request) ? [nothing] : next(),
  ),
  "metadata-unknown-snapshot-accepted": streams(async ({ next }) =>
    next().catch((error: unknown) => {
      if (!(error instanceof CsiStatusError) || error.code !== "NOT_FOUND") throw error;
      return [nothing];
    }),
  ),
  "metadata-offset-beyond-end-accepted": streams(async ({ request, next }) =>
    request.startingOffset >= anyVolumeBytes ? [nothing] : next(),
  ),
  "metadata-type-unknown": eachMessage(() => ({ blockMetadataType: BlockMetadataType.UNKNOWN })),
  "metadata-shows-nothing": eachMessage(() => ({ blockMetadata: [] })),
  "metadata-unordered": eachMessage(({ blockMetadata }) => ({
    blockMetadata: [...blockMetadata].reverse(),
  })),
  "metadata-beyond-capacity": eachMessage(() => ({ volumeCapacityBytes: 1n })),
  "metadata-capacity-changes": eachMessage(({ volumeCapacityBytes }, index) => ({
    volumeCapacityBytes: volumeCapacityBytes + BigInt(index),
  })),
  "metadata-lengths-differ": answersStreams((messages, { startingOffset, maxResults }) => {
    if (startingOffset > 0n || maxResults > 0) return messages;
    const halved = (block: Block, index: number) =>
      index === 0 ? { ...block, sizeBytes: block.sizeBytes / 2n } : block;
    return inOne(messages, (blocks) => blocks.map(halved));
  }),
  "metadata-ignores-max-results": answersStreams((messages, { maxResults }) =>
    maxResults > 0 ? inOne(messages, (blocks) => blocks) : messages,
  ),
  "metadata-ignores-starting-offset": streams(async ({ request, next }) =>
    next(resumes(request) ? { ...request, startingOffset: 0n } : request),
  ),
  "metadata-resumed-short": answersStreams((messages, request) =>
    resumes(request) ? inOne(messages, (blocks) => blocks.slice(0, -1)) : messages,
  ),
  "metadata-differs-from-itself": streams(async ({ request, next }) =>
    request.baseSnapshotId !== undefined && request.baseSnapshotId === request.targetSnapshotId
      ? next({ ...request, startingOffset: 0n }).then((messages) =>
          inOne(messages, () => [{ byteOffset: 0n, sizeBytes: 512n * 1024n }]),
        )
      : next(),
  ),
} as const satisfies Partial<Record<FaultName, Fault>>;
