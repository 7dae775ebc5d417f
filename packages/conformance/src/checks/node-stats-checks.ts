/** NodeGetVolumeStats and NodeExpandVolume. */
import { VolumeUsage_Unit as Unit } from "@longshore/csi";
import type { Check, Need } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { must, mustAnswer } from "../expect.ts";
import {
  capabilityOf,
  makePublishedVolume,
  makeUsable,
  makeVolume,
  type PublishedVolume,
  publish,
  stage,
} from "../fixtures.ts";
import { canUseVolumes, controllerCan, nodeCan, pluginCan } from "../needs.ts";
import { refusals } from "./refusals.ts";

const published = [
  "controller.create-volume.works",
  "controller.publish-volume.works",
  "node.stage-volume.works",
  "node.publish-volume.works",
];
const canStat = nodeCan("GET_VOLUME_STATS");
const after = [...published, "node.get-volume-stats.works"];

function stats(context: CheckContext, { volumeId, targetPath, stagingTargetPath }: PublishedVolume) {
  return context.node.nodeGetVolumeStats({ volumeId, volumePath: targetPath, stagingTargetPath });
}

/** The checks of NodeGetVolumeStats. */
export const nodeStatsChecks: readonly Check[] = [
  {
    id: "node.get-volume-stats.works",
    sentence: "NodeGetVolumeStats of a published volume gives its usage in bytes or inodes",
    spec: "NodeGetVolumeStats",
    needs: [canStat, canUseVolumes],
    after: published,
    async run(context) {
      const { usage } = await mustAnswer(
        "NodeGetVolumeStats",
        stats(context, await makePublishedVolume(context)),
      );
      must(usage.length > 0, "NodeGetVolumeStats was answered without usage; it is REQUIRED");
      for (const [index, { unit, total }] of usage.entries()) {
        must(unit === Unit.BYTES || unit === Unit.INODES, `usage[${index}] has no unit; it is REQUIRED`);
        // Of bytes only: file systems such as btrfs have no fixed number of inodes and report 0.
        must(unit !== Unit.BYTES || total > 0n, `usage[${index}] has no total; it is REQUIRED`);
      }
    },
  },
  {
    id: "node.get-volume-stats.adds-up",
    sentence: "what is used and what is available is not more than the total",
    spec: "NodeGetVolumeStats",
    needs: [canStat, canUseVolumes],
    after,
    async run(context) {
      const { usage } = await mustAnswer(
        "NodeGetVolumeStats",
        stats(context, await makePublishedVolume(context)),
      );
      for (const [index, { total, used, available }] of usage.entries()) {
        must(used <= total, `usage[${index}]: ${used} used of a total of ${total}`);
        must(available <= total, `usage[${index}]: ${available} available of a total of ${total}`);
      }
    },
  },
  {
    id: "node.get-volume-stats.condition",
    sentence: "a plugin with VOLUME_CONDITION gives the condition of the volume, and a message with it",
    spec: "NodeGetVolumeStats",
    needs: [nodeCan("VOLUME_CONDITION"), canUseVolumes],
    after: published,
    async run(context) {
      const { volumeCondition } = await mustAnswer(
        "NodeGetVolumeStats",
        stats(context, await makePublishedVolume(context)),
      );
      must(volumeCondition !== undefined, "NodeGetVolumeStats was answered without a volume_condition");
      must(volumeCondition.message !== "", "volume_condition has no message; it is REQUIRED");
    },
  },
  ...refusals(
    "NodeGetVolumeStats Errors",
    [canStat],
    [
      {
        id: "node.get-volume-stats.id-required",
        what: "NodeGetVolumeStats without a volume_id",
        codes: ["INVALID_ARGUMENT"],
        needs: [canUseVolumes],
        after: published,
        async call(context) {
          const volume = await makePublishedVolume(context);
          return [() => stats(context, { ...volume, volumeId: "" })];
        },
      },
      {
        id: "node.get-volume-stats.path-required",
        what: "NodeGetVolumeStats without a volume_path",
        codes: ["INVALID_ARGUMENT"],
        needs: [canUseVolumes],
        after: published,
        async call(context) {
          const volume = await makePublishedVolume(context);
          return [() => stats(context, { ...volume, targetPath: "" })];
        },
      },
      {
        id: "node.get-volume-stats.unknown-volume",
        what: "NodeGetVolumeStats of a volume that does not exist",
        codes: ["NOT_FOUND"],
        needs: [canUseVolumes],
        after: published,
        async call(context) {
          const volume = await makePublishedVolume(context);
          return [() => stats(context, { ...volume, volumeId: context.unknownId("volume") })];
        },
      },
      {
        id: "node.get-volume-stats.unknown-path",
        what: "NodeGetVolumeStats at a volume_path where the volume is not",
        codes: ["NOT_FOUND"],
        needs: [canUseVolumes],
        after: published,
        async call(context) {
          const volume = await makePublishedVolume(context);
          return [() => stats(context, { ...volume, targetPath: `${volume.targetPath}-elsewhere` })];
        },
      },
    ],
  ),
];

const canExpand = nodeCan("EXPAND_VOLUME");
const expanded = [...published, "node.expand-volume.works"];

function expand(context: CheckContext, volume: PublishedVolume) {
  const { volumeId, targetPath, stagingTargetPath, capability } = volume;
  return context.node.nodeExpandVolume({
    volumeId,
    volumePath: targetPath,
    stagingTargetPath,
    volumeCapability: capability,
    capacityRange: { requiredBytes: context.options.expandSizeBytes },
  });
}

/**
 * A published volume that the controller has expanded, where it has to: while it is published, or before that where the plugin expands
 * OFFLINE only (docs/behaviour/csi-spec-notes.md).
 */
async function expandable(context: CheckContext): Promise<PublishedVolume> {
  const { controller, plugin } = context.target;
  if (!controller.has("EXPAND_VOLUME")) return makePublishedVolume(context);
  if (plugin.has("VOLUME_EXPANSION_ONLINE")) {
    const volume = await makePublishedVolume(context);
    await controllerExpand(context, volume.volumeId, volume.capability, "a published volume");
    return volume;
  }
  const volume = await makeVolume(context);
  await controllerExpand(context, volume.volumeId, capabilityOf(context), "a volume that is not published");
  return publish(context, await stage(context, await makeUsable(context, volume)));
}

async function controllerExpand(
  context: CheckContext,
  volumeId: string,
  volumeCapability: PublishedVolume["capability"],
  what: string,
): Promise<void> {
  const capacityRange = { requiredBytes: context.options.expandSizeBytes };
  await mustAnswer(
    `ControllerExpandVolume of ${what}`,
    context.controller.controllerExpandVolume({ volumeId, capacityRange, volumeCapability }),
  );
}

/** The plugin says when volumes are expanded: without that, a call of the node alone means nothing. */
const saysWhen: Need = ({ plugin }) =>
  plugin.has("VOLUME_EXPANSION_ONLINE") || plugin.has("VOLUME_EXPANSION_OFFLINE")
    ? undefined
    : "the driver declares neither VOLUME_EXPANSION_ONLINE nor VOLUME_EXPANSION_OFFLINE (GetPluginCapabilities)";
const expands = [canExpand, canUseVolumes, saysWhen];
const online = [...expands, pluginCan("VOLUME_EXPANSION_ONLINE")];

/** The checks of NodeExpandVolume. */
export const nodeExpandChecks: readonly Check[] = [
  {
    id: "node.expand-volume.works",
    sentence: "NodeExpandVolume of a published volume that the controller has expanded is answered OK",
    spec: "NodeExpandVolume",
    needs: expands,
    after: [...published, "controller.expand-volume.works"],
    async run(context) {
      const { capacityBytes } = await mustAnswer(
        "NodeExpandVolume",
        expand(context, await expandable(context)),
      );
      const { expandSizeBytes } = context.options;
      // capacity_bytes is OPTIONAL in this answer.
      must(
        capacityBytes === 0n || capacityBytes >= expandSizeBytes,
        `asked for ${expandSizeBytes} bytes, NodeExpandVolume gave ${capacityBytes}`,
      );
    },
  },
  {
    id: "node.expand-volume.idempotent",
    sentence: "NodeExpandVolume repeated is answered OK",
    spec: "NodeExpandVolume",
    needs: expands,
    after: expanded,
    async run(context) {
      const volume = await expandable(context);
      for (let i = 0; i < context.options.repeats; i++) {
        await mustAnswer(i === 0 ? "NodeExpandVolume" : "NodeExpandVolume repeated", expand(context, volume));
      }
    },
  },
  {
    id: "node.expand-volume.seen",
    sentence: "the volume is larger for those who use it once the node has expanded it",
    spec: "NodeExpandVolume",
    needs: [...online, canStat, controllerCan("EXPAND_VOLUME")],
    after: [...expanded, "node.get-volume-stats.works"],
    async run(context) {
      const volume = await makePublishedVolume(context);
      const totalOf = async () => {
        const { usage } = await mustAnswer("NodeGetVolumeStats", stats(context, volume));
        return usage.find(({ unit }) => unit === Unit.BYTES)?.total ?? 0n;
      };
      const before = await totalOf();
      const { volumeSizeBytes, expandSizeBytes } = context.options;
      // A plugin that shows a part of a shared file system shows that one's size.
      if (before > volumeSizeBytes * 2n)
        context.skip("the usage that is given is not that of the volume alone");
      await mustAnswer(
        "ControllerExpandVolume",
        context.controller.controllerExpandVolume({
          volumeId: volume.volumeId,
          capacityRange: { requiredBytes: expandSizeBytes },
          volumeCapability: volume.capability,
        }),
      );
      await mustAnswer("NodeExpandVolume", expand(context, volume));
      const total = await totalOf();
      must(total > before, `the total was ${before} bytes before the expansion and is ${total} after it`);
    },
  },
  ...refusals(
    "NodeExpandVolume Errors",
    [canExpand, canUseVolumes],
    [
      {
        id: "node.expand-volume.id-required",
        what: "NodeExpandVolume without a volume_id",
        codes: ["INVALID_ARGUMENT"],
        after: published,
        async call(context) {
          const volume = await makePublishedVolume(context);
          return [() => expand(context, { ...volume, volumeId: "" })];
        },
      },
      {
        id: "node.expand-volume.path-required",
        what: "NodeExpandVolume without a volume_path",
        codes: ["INVALID_ARGUMENT"],
        after: published,
        async call(context) {
          const volume = await makePublishedVolume(context);
          return [() => expand(context, { ...volume, targetPath: "" })];
        },
      },
      {
        id: "node.expand-volume.unknown-volume",
        what: "NodeExpandVolume of a volume that does not exist",
        codes: ["NOT_FOUND"],
        after: published,
        async call(context) {
          const volume = await makePublishedVolume(context);
          return [() => expand(context, { ...volume, volumeId: context.unknownId("volume") })];
        },
      },
      {
        id: "node.expand-volume.unknown-path",
        what: "NodeExpandVolume at a volume_path where the volume is not",
        codes: ["NOT_FOUND"],
        after: published,
        async call(context) {
          const volume = await makePublishedVolume(context);
          // Not sent either: a plugin could find the volume by it.
          const stagingTargetPath = "";
          return [
            () =>
              expand(context, { ...volume, stagingTargetPath, targetPath: `${volume.targetPath}-elsewhere` }),
          ];
        },
      },
    ],
  ),
];
