/**
 * Which parts of a snapshot hold data, and which changed since an earlier one: rules of the two streams, and refusals. The service is about
 * block volumes (CSI, Snapshot Metadata Service), so these use one whatever the other checks use, and write to its device.
 */
import { BlockMetadataType } from "@longshore/csi";
import { HostError } from "@longshore/runtime";
import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { endingOf, must, mustAnswer } from "../expect.ts";
import {
  blockCapability,
  makeReadySnapshot,
  makeUsable,
  makeVolume,
  type PublishedVolume,
  publish,
  stage,
  takeOff,
  volumeOf,
  volumeRequest,
} from "../fixtures.ts";
import { canUseVolumes, controllerCan, pluginCan } from "../needs.ts";
import { refusals } from "./refusals.ts";

const declared = pluginCan("SNAPSHOT_METADATA_SERVICE");
const needs = [declared, controllerCan("CREATE_DELETE_VOLUME"), controllerCan("CREATE_DELETE_SNAPSHOT")];
const withData = [...needs, canUseVolumes];
const served = ["identity.plugin-capabilities.snapshot-metadata-service"];
const made = [...served, "controller.create-volume.works", "controller.create-snapshot.ready"];
const after = [
  ...made,
  "controller.publish-volume.works",
  "node.stage-volume.works",
  "node.publish-volume.works",
  "node.publish-volume.makes-target",
  "node.unpublish-volume.works",
];
/** Enough for several blocks of most drivers. */
const dataBytes = 2 * 1024 * 1024;
/** More than any volume has. */
const beyondAll = 2n ** 62n;

interface Message {
  readonly blockMetadataType: BlockMetadataType;
  readonly volumeCapacityBytes: bigint;
  readonly blockMetadata: readonly Block[];
}
interface Block {
  readonly byteOffset: bigint;
  readonly sizeBytes: bigint;
}
interface Window {
  readonly startingOffset?: bigint;
  readonly maxResults?: number;
}
/** Two snapshots of a volume to which something was written before the first and between them. */
interface Snapshots {
  readonly base: string;
  readonly target: string;
}

async function snapshotsWithData(context: CheckContext): Promise<Snapshots> {
  const request = volumeRequest(context, { volumeCapabilities: [blockCapability] });
  const ending = await endingOf(context.controller.createVolume(request));
  // No capability declares block access: that a driver lacks it shows only here.
  if (ending.code === "INVALID_ARGUMENT") context.skip("the driver has no volumes for block access");
  if (ending.code !== "OK") throw ending.error;
  const volume = volumeOf(ending.answer);
  const cutAfterWriting = async (letter: string) => {
    const usable = await makeUsable(context, volume, blockCapability);
    const published = await publish(context, await stage(context, usable));
    await write(context, published, letter.repeat(dataBytes));
    // Off the node first: a snapshot need not hold what is still in the page cache.
    await takeOff(context, published);
    return (await makeReadySnapshot(context, volume.volumeId)).snapshotId;
  };
  return { base: await cutAfterWriting("a"), target: await cutAfterWriting("b") };
}

async function write(context: CheckContext, { targetPath }: PublishedVolume, text: string): Promise<void> {
  try {
    await context.host.writeDevice(targetPath, text);
  } catch (error) {
    if (!(error instanceof HostError) || error.code !== "ENOTBLK") throw error;
    context.skip("what the driver publishes for block access is no device: nothing can be written to it");
  }
}

async function blankSnapshot(context: CheckContext): Promise<string> {
  const { volumeId } = await makeVolume(context);
  return (await makeReadySnapshot(context, volumeId)).snapshotId;
}

/** One of the two calls. */
interface Stream {
  readonly rpc: "GetMetadataAllocated" | "GetMetadataDelta";
  readonly slug: "allocated" | "delta";
  /** What its ranges describe. */
  readonly shows: string;
  read(context: CheckContext, snapshots: Snapshots, window: Window): Promise<readonly Message[]>;
}

const streams: readonly Stream[] = [
  {
    rpc: "GetMetadataAllocated",
    slug: "allocated",
    shows: "what was written to the volume before the snapshot was cut",
    read: ({ snapshotMetadata }, { target: snapshotId }, window) =>
      snapshotMetadata.getMetadataAllocated({ snapshotId, ...window }),
  },
  {
    rpc: "GetMetadataDelta",
    slug: "delta",
    shows: "what was written to the volume between the two snapshots",
    async read(context, { base: baseSnapshotId, target: targetSnapshotId }, window) {
      const request = { baseSnapshotId, targetSnapshotId, ...window };
      const ending = await endingOf(context.snapshotMetadata.getMetadataDelta(request));
      if (ending.code === "OK") return ending.answer;
      if (ending.code === "FAILED_PRECONDITION") context.skip("the driver keeps no track of changes");
      throw ending.error;
    },
  },
];

const blocksOf = (messages: readonly Message[]) => messages.flatMap(({ blockMetadata }) => blockMetadata);
const endOf = ({ byteOffset, sizeBytes }: Block) => byteOffset + sizeBytes;
const shown = (block: Block) => `${block.byteOffset} to ${endOf(block)}`;

/** The bytes from `from` on that the ranges cover, neighbours joined. */
function covered(blocks: readonly Block[], from = 0n): string {
  const parts: [bigint, bigint][] = [];
  for (const block of [...blocks].sort((a, b) => (a.byteOffset < b.byteOffset ? -1 : 1))) {
    const [begin, end] = [block.byteOffset < from ? from : block.byteOffset, endOf(block)];
    const last = parts.at(-1);
    if (end <= begin) continue;
    if (last === undefined || begin > last[1]) parts.push([begin, end]);
    else if (end > last[1]) last[1] = end;
  }
  return parts.map(([begin, end]) => `${begin} to ${end}`).join(", ") || "nothing";
}

/** The rules that both streams keep. */
function streamChecks({ rpc, slug, shows, read }: Stream): Check[] {
  const id = (rule: string) => `snapshot-metadata.${slug}.${rule}` as const;
  const common = { spec: rpc, needs: withData };
  const works = [...after, id("works")];
  const all = async (context: CheckContext, window: Window = {}) => {
    const snapshots = await snapshotsWithData(context);
    return { snapshots, messages: await mustAnswer(rpc, read(context, snapshots, window)) };
  };
  /** An offset within the last range. */
  const middle = (context: CheckContext, messages: readonly Message[]) => {
    const last = blocksOf(messages).at(-1);
    if (last === undefined || last.sizeBytes < 2n) context.skip("the driver reports no range");
    // Not at its edge: CSI asks for the range that the offset lies in, too.
    return last.byteOffset + 1n;
  };
  return [
    {
      ...common,
      id: id("works"),
      sentence: `${rpc} reports the type of its ranges and the capacity of the volume`,
      after,
      async run(context) {
        const { messages } = await all(context);
        for (const { blockMetadataType, volumeCapacityBytes } of messages) {
          must(
            blockMetadataType !== BlockMetadataType.UNKNOWN,
            "block_metadata_type is UNKNOWN; it is REQUIRED",
          );
          must(volumeCapacityBytes > 0n, `volume_capacity_bytes is ${volumeCapacityBytes}; it is REQUIRED`);
        }
      },
    },
    {
      ...common,
      id: id("shows-data"),
      sentence: `${rpc} shows ${shows}`,
      after: works,
      async run(context) {
        const { messages } = await all(context);
        must(blocksOf(messages).length > 0, `${rpc} gave no range, though there is ${shows}`);
      },
    },
    {
      ...common,
      id: id("ordered"),
      sentence: `the ranges of ${rpc} ascend and do not overlap, over the whole stream`,
      after: works,
      async run(context) {
        // Small messages, so that the order from one message to the next is seen as well.
        const blocks = blocksOf((await all(context, { maxResults: 3 })).messages);
        for (const [index, block] of blocks.entries()) {
          must(block.sizeBytes > 0n, `the range at ${block.byteOffset} has ${block.sizeBytes} bytes`);
          const before = blocks[index - 1];
          must(
            before === undefined || endOf(before) <= block.byteOffset,
            `the range ${shown(block)} comes after ${before === undefined ? "" : shown(before)}`,
          );
        }
      },
    },
    {
      ...common,
      id: id("within-capacity"),
      sentence: `the ranges of ${rpc} lie within the capacity of the volume`,
      after: works,
      async run(context) {
        for (const { blockMetadata, volumeCapacityBytes } of (await all(context)).messages) {
          const outside = blockMetadata.find((block) => endOf(block) > volumeCapacityBytes);
          must(
            outside === undefined,
            `the range ${outside === undefined ? "" : shown(outside)} is beyond the capacity of ${volumeCapacityBytes} bytes`,
          );
        }
      },
    },
    {
      ...common,
      id: id("constant"),
      sentence: `type and capacity are the same in all messages of ${rpc}`,
      after: works,
      async run(context) {
        // One range a message, so that there are several messages to compare.
        const { messages } = await all(context, { maxResults: 1 });
        const formats = new Set(messages.map((m) => `${m.blockMetadataType} ${m.volumeCapacityBytes}`));
        must(formats.size <= 1, `type and capacity change within the stream: ${[...formats].join(", ")}`);
      },
    },
    {
      ...common,
      id: id("fixed-length"),
      sentence: `ranges of FIXED_LENGTH are of one length in ${rpc}, but for the volume's end`,
      after: works,
      async run(context: CheckContext) {
        const { messages } = await all(context);
        const [first] = messages;
        if (first?.blockMetadataType !== BlockMetadataType.FIXED_LENGTH) {
          context.skip("the driver's ranges are of VARIABLE_LENGTH");
        }
        const blocks = blocksOf(messages).filter((block) => endOf(block) < first.volumeCapacityBytes);
        const lengths = new Set(blocks.map(({ sizeBytes }) => sizeBytes));
        must(lengths.size <= 1, `the type is FIXED_LENGTH, and ranges have ${[...lengths].join(", ")} bytes`);
      },
    },
    {
      ...common,
      id: id("max-results"),
      sentence: `no message of ${rpc} has more ranges than max_results, and none is lost by it`,
      after: works,
      async run(context) {
        const { snapshots, messages } = await all(context, { maxResults: 1 });
        const longest = Math.max(0, ...messages.map(({ blockMetadata }) => blockMetadata.length));
        must(longest <= 1, `${rpc} with max_results 1 gave a message with ${longest} ranges`);
        // Compared by the bytes covered: a plugin may cut its ranges differently for smaller messages.
        const whole = covered(blocksOf(await mustAnswer(rpc, read(context, snapshots, {}))));
        const found = covered(blocksOf(messages));
        must(found === whole, `${rpc} with max_results 1 covers ${found}, and without ${whole}`);
      },
    },
    {
      ...common,
      id: id("starting-offset"),
      sentence: `${rpc} gives no range that ends before starting_offset`,
      after: works,
      async run(context) {
        const { snapshots, messages } = await all(context);
        const startingOffset = middle(context, messages);
        const rest = blocksOf(await mustAnswer(rpc, read(context, snapshots, { startingOffset })));
        const early = rest.find((block) => endOf(block) <= startingOffset);
        must(
          early === undefined,
          `${rpc} from ${startingOffset} on gave the range ${early === undefined ? "" : shown(early)}`,
        );
      },
    },
    {
      ...common,
      id: id("resumed"),
      sentence: `a stream of ${rpc} that begins at a starting_offset has all that the whole one has from there on`,
      after: [...works, id("starting-offset")],
      async run(context) {
        const { snapshots, messages } = await all(context);
        const startingOffset = middle(context, messages);
        const rest = blocksOf(await mustAnswer(rpc, read(context, snapshots, { startingOffset })));
        const [whole, found] = [covered(blocksOf(messages), startingOffset), covered(rest, startingOffset)];
        must(
          found === whole,
          `${rpc} from ${startingOffset} on covers ${found}, and the whole stream ${whole}`,
        );
      },
    },
  ];
}

/** The checks of the snapshot metadata service. */
export const snapshotMetadataChecks: readonly Check[] = [
  ...streams.flatMap(streamChecks),
  {
    id: "snapshot-metadata.delta.of-itself",
    sentence: "GetMetadataDelta of a snapshot with itself shows no change, or is refused",
    spec: "GetMetadataDelta",
    needs: withData,
    after: [...after, "snapshot-metadata.delta.works"],
    async run(context) {
      const { target } = await snapshotsWithData(context);
      const request = { baseSnapshotId: target, targetSnapshotId: target };
      const ending = await endingOf(context.snapshotMetadata.getMetadataDelta(request));
      const blocks = ending.code === "OK" ? blocksOf(ending.answer) : [];
      must(blocks.length === 0, `snapshot ${target} is said to differ from itself: ${covered(blocks)}`);
    },
  },
  ...refusals("GetMetadataAllocated Errors", needs, [
    {
      id: "snapshot-metadata.allocated.id-required",
      what: "GetMetadataAllocated without a snapshot_id",
      codes: ["INVALID_ARGUMENT"],
      after: served,
      call: ({ snapshotMetadata }) => [() => snapshotMetadata.getMetadataAllocated({})],
    },
    {
      id: "snapshot-metadata.allocated.unknown",
      what: "GetMetadataAllocated of a snapshot that does not exist",
      codes: ["NOT_FOUND"],
      after: served,
      call: (context) => {
        const snapshotId = context.unknownId("snapshot");
        return [() => context.snapshotMetadata.getMetadataAllocated({ snapshotId })];
      },
    },
    {
      id: "snapshot-metadata.allocated.beyond-end",
      what: "GetMetadataAllocated with a starting_offset beyond the end of the volume",
      codes: ["OUT_OF_RANGE"],
      after: made,
      async call(context) {
        const request = { snapshotId: await blankSnapshot(context), startingOffset: beyondAll };
        return [() => context.snapshotMetadata.getMetadataAllocated(request)];
      },
    },
  ]),
  ...refusals("GetMetadataDelta Errors", needs, [
    {
      id: "snapshot-metadata.delta.base-required",
      what: "GetMetadataDelta without a base_snapshot_id",
      codes: ["INVALID_ARGUMENT"],
      after: made,
      async call(context) {
        const targetSnapshotId = await blankSnapshot(context);
        return [() => context.snapshotMetadata.getMetadataDelta({ targetSnapshotId })];
      },
    },
    {
      id: "snapshot-metadata.delta.target-required",
      what: "GetMetadataDelta without a target_snapshot_id",
      codes: ["INVALID_ARGUMENT"],
      after: made,
      async call(context) {
        const baseSnapshotId = await blankSnapshot(context);
        return [() => context.snapshotMetadata.getMetadataDelta({ baseSnapshotId })];
      },
    },
    {
      id: "snapshot-metadata.delta.unknown",
      what: "GetMetadataDelta with a snapshot that does not exist at either end",
      codes: ["NOT_FOUND"],
      after: made,
      async call(context) {
        const [known, unknown] = [await blankSnapshot(context), context.unknownId("snapshot")];
        const delta = (baseSnapshotId: string, targetSnapshotId: string) => () =>
          context.snapshotMetadata.getMetadataDelta({ baseSnapshotId, targetSnapshotId });
        return [delta(unknown, known), delta(known, unknown)];
      },
    },
    {
      id: "snapshot-metadata.delta.beyond-end",
      what: "GetMetadataDelta with a starting_offset beyond the end of the volume",
      // A plugin that keeps no track of changes may say that first.
      codes: ["OUT_OF_RANGE", "FAILED_PRECONDITION"],
      after: made,
      async call(context) {
        const { volumeId } = await makeVolume(context);
        const baseSnapshotId = (await makeReadySnapshot(context, volumeId)).snapshotId;
        const targetSnapshotId = (await makeReadySnapshot(context, volumeId)).snapshotId;
        const request = { baseSnapshotId, targetSnapshotId, startingOffset: beyondAll };
        return [() => context.snapshotMetadata.getMetadataDelta(request)];
      },
    },
  ]),
];
