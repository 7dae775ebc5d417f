/** NodeUnpublishVolume, and the life of a volume from beginning to end. */
import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { must, mustAnswer } from "../expect.ts";
import { makePublishedVolume, makeStagedVolume, publish, takeOff } from "../fixtures.ts";
import { canUseVolumes, hasNode } from "../needs.ts";
import { refusals } from "./refusals.ts";
import { sideBySide } from "./side-by-side.ts";

const spec = "NodeUnpublishVolume";
const needs = [canUseVolumes];
const made = ["controller.create-volume.works", "controller.publish-volume.works", "node.stage-volume.works"];
const after = [...made, "node.publish-volume.works", "node.unpublish-volume.works"];

interface At {
  readonly volumeId: string;
  readonly targetPath: string;
}

async function unpublish(context: CheckContext, { volumeId, targetPath }: At, what = "NodeUnpublishVolume") {
  await mustAnswer(what, context.node.nodeUnpublishVolume({ volumeId, targetPath }));
}

/** The checks of NodeUnpublishVolume. */
export const nodeUnpublishChecks: readonly Check[] = [
  {
    id: "node.unpublish-volume.works",
    sentence: "NodeUnpublishVolume of a published volume is answered OK",
    spec,
    needs,
    after: [...made, "node.publish-volume.works"],
    async run(context) {
      await unpublish(context, await makePublishedVolume(context));
    },
  },
  ...refusals(
    "NodeUnpublishVolume Errors",
    [hasNode],
    [
      {
        id: "node.unpublish-volume.id-required",
        what: "NodeUnpublishVolume without a volume_id",
        codes: ["INVALID_ARGUMENT"],
        async call(context) {
          const targetPath = await context.targetPath();
          return [() => context.node.nodeUnpublishVolume({ targetPath })];
        },
      },
      {
        id: "node.unpublish-volume.target-path-required",
        what: "NodeUnpublishVolume without a target_path",
        codes: ["INVALID_ARGUMENT"],
        needs,
        after: made,
        async call(context) {
          const { volumeId } = await makeStagedVolume(context);
          return [() => context.node.nodeUnpublishVolume({ volumeId })];
        },
      },
      {
        id: "node.unpublish-volume.unknown-volume",
        what: "NodeUnpublishVolume of a volume that does not exist",
        codes: ["OK", "NOT_FOUND"],
        async call(context) {
          const targetPath = await context.targetPath();
          const volumeId = context.unknownId("volume");
          return [() => context.node.nodeUnpublishVolume({ volumeId, targetPath })];
        },
      },
    ],
  ),
  {
    id: "node.unpublish-volume.removes-target",
    sentence: "the target_path is gone after NodeUnpublishVolume",
    spec,
    needs,
    after,
    async run(context) {
      const volume = await makePublishedVolume(context);
      await unpublish(context, volume);
      must(
        (await context.host.stat(volume.targetPath)) === undefined,
        `${volume.targetPath} is there after NodeUnpublishVolume; the plugin must delete it`,
      );
    },
  },
  {
    id: "node.unpublish-volume.removes-empty-target",
    sentence: "the target_path is removed also where nothing is mounted on it",
    spec,
    needs,
    after: [...after, "node.unpublish-volume.removes-target"],
    async run(context) {
      const { volumeId } = await makeStagedVolume(context);
      const targetPath = await context.targetPath();
      // As a crash leaves it between the making of the directory and the mount.
      await context.host.makeDirectory(targetPath);
      const what = "NodeUnpublishVolume of a target_path that is a directory with nothing mounted on it";
      await unpublish(context, { volumeId, targetPath }, what);
      must(
        (await context.host.stat(targetPath)) === undefined,
        `the empty directory ${targetPath} is there after NodeUnpublishVolume; the plugin must delete it`,
      );
    },
  },
  {
    id: "node.unpublish-volume.not-published",
    sentence: "NodeUnpublishVolume of a volume that is not published is answered OK",
    spec,
    needs,
    after: made,
    async run(context) {
      const { volumeId } = await makeStagedVolume(context);
      const targetPath = await context.targetPath();
      await unpublish(context, { volumeId, targetPath }, "NodeUnpublishVolume of what is not published");
    },
  },
  {
    id: "node.unpublish-volume.idempotent",
    sentence: "NodeUnpublishVolume repeated is answered OK",
    spec,
    needs,
    after,
    async run(context) {
      const volume = await makePublishedVolume(context);
      for (let i = 0; i < context.options.repeats; i++) {
        await unpublish(context, volume, i === 0 ? "NodeUnpublishVolume" : "NodeUnpublishVolume repeated");
      }
    },
  },
  {
    id: "node.unpublish-volume.other-target-stays",
    sentence: "NodeUnpublishVolume at one target_path leaves the volume at another",
    spec,
    needs,
    after: [...after, "node.publish-volume.second-target"],
    async run(context) {
      const first = await makePublishedVolume(context);
      const targetPath = await context.targetPath();
      // A plugin may refuse the second path for SINGLE_NODE_WRITER (decision 0014).
      const second = await publish(context, first, { targetPath }).catch(() => undefined);
      if (second === undefined) context.skip("the driver publishes a volume at one path only");
      await unpublish(context, first);
      must(
        (await context.host.stat(targetPath)) !== undefined,
        `${targetPath} is gone after NodeUnpublishVolume at ${first.targetPath}`,
      );
    },
  },
  {
    id: "node.unpublish-volume.parallel",
    sentence: "the same NodeUnpublishVolume several times at once: each ends with OK or ABORTED",
    spec: "Concurrency",
    needs,
    after: [...after, "node.unpublish-volume.idempotent"],
    async run(context) {
      const volume = await makePublishedVolume(context);
      const { volumeId, targetPath } = volume;
      await sideBySide(context, "NodeUnpublishVolume", ["OK", "ABORTED"], () =>
        context.node.nodeUnpublishVolume({ volumeId, targetPath }),
      );
      await unpublish(context, volume, "NodeUnpublishVolume repeated");
    },
  },
  {
    id: "node.lifecycle.whole",
    sentence:
      "a volume is made, published, staged, published on the node, and all of it is undone, twice over",
    spec: "Volume Lifecycle",
    needs,
    after,
    async run(context) {
      const volume = await makePublishedVolume(context);
      await takeOff(context, volume);
      await mustAnswer("DeleteVolume", context.controller.deleteVolume({ volumeId: volume.volumeId }));
      const again = await makePublishedVolume(context);
      await takeOff(context, again);
      await mustAnswer("DeleteVolume", context.controller.deleteVolume({ volumeId: again.volumeId }));
    },
  },
];
