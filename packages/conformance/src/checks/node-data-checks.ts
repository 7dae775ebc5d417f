/** What is written to a volume: it stays, is where it belongs, and cannot be written where it may only be read. */
import type { MessageInitShape, VolumeContentSourceSchema } from "@longshore/csi";
import { HostError } from "@longshore/runtime";
import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { must, mustAnswer } from "../expect.ts";
import {
  makePublishedVolume,
  makeReadySnapshot,
  makeStagedVolume,
  makeUsable,
  makeVolume,
  type PublishedVolume,
  publish,
  stage,
  takeOff,
  unstage,
} from "../fixtures.ts";
import { canUseVolumes, controllerCan, mounted, nodeCan } from "../needs.ts";

const needs = [canUseVolumes, mounted];
const after = [
  "controller.create-volume.works",
  "controller.publish-volume.works",
  "node.stage-volume.works",
  "node.publish-volume.works",
  "node.unpublish-volume.works",
  "node.publish-volume.makes-target",
];
const fileName = "longshore-check";

/** Writes to the volume. */
async function write(context: CheckContext, { targetPath }: PublishedVolume, text: string): Promise<void> {
  await context.host.writeFileAtomic(`${targetPath}/${fileName}`, text);
}

const read = (context: CheckContext, { targetPath }: PublishedVolume) =>
  context.host.readFile(`${targetPath}/${fileName}`);

async function unpublish(context: CheckContext, { volumeId, targetPath }: PublishedVolume): Promise<void> {
  await mustAnswer("NodeUnpublishVolume", context.node.nodeUnpublishVolume({ volumeId, targetPath }));
}

/** Writes a file to a new volume, then unpublishes the volume, so that the whole file is on it. */
async function volumeWithFile(context: CheckContext, text: string): Promise<string> {
  const volume = await makePublishedVolume(context);
  await write(context, volume, text);
  await takeOff(context, volume);
  return volume.volumeId;
}

async function mustHold(
  context: CheckContext,
  source: MessageInitShape<typeof VolumeContentSourceSchema>,
  text: string,
): Promise<void> {
  const volume = await makeVolume(context, { volumeContentSource: source });
  const copy = await publish(context, await stage(context, await makeUsable(context, volume)));
  const found = await read(context, copy);
  must(
    found === text,
    `the source held "${text}", the volume made from it holds ${found === undefined ? "no such file" : `"${found}"`}`,
  );
}

/** The checks of what volumes hold. */
export const nodeDataChecks: readonly Check[] = [
  {
    id: "node.data.kept-over-unpublish",
    sentence: "what was written is there when the volume is published again",
    spec: "NodeUnpublishVolume",
    needs,
    after,
    async run(context) {
      const staged = await makeStagedVolume(context);
      const first = await publish(context, staged);
      await write(context, first, "kept");
      await unpublish(context, first);
      const second = await publish(context, staged);
      must(
        (await read(context, second)) === "kept",
        "a file that was written is gone after NodeUnpublishVolume and NodePublishVolume",
      );
    },
  },
  {
    id: "node.data.kept-over-unstage",
    sentence: "what was written is there when the volume is staged again",
    spec: "NodeUnstageVolume",
    needs: [...needs, nodeCan("STAGE_UNSTAGE_VOLUME")],
    after: [...after, "node.data.kept-over-unpublish"],
    async run(context) {
      const first = await makePublishedVolume(context);
      await write(context, first, "kept");
      await unpublish(context, first);
      await unstage(context, first);
      const second = await publish(context, await stage(context, first));
      must(
        (await read(context, second)) === "kept",
        "a file that was written is gone after NodeUnstageVolume and NodeStageVolume",
      );
    },
  },
  {
    id: "node.data.of-one-volume",
    sentence: "what is written to one volume is not seen on another",
    spec: "NodePublishVolume",
    needs,
    after,
    async run(context) {
      const [first, second] = [await makePublishedVolume(context), await makePublishedVolume(context)];
      await write(context, first, "first");
      const seen = await read(context, second);
      must(seen === undefined, `a file of volume ${first.volumeId} is seen on volume ${second.volumeId}`);
    },
  },
  {
    id: "node.data.new-volume-empty",
    sentence: "a new volume does not hold the data of one that was deleted",
    spec: "CreateVolume",
    needs,
    after: [...after, "controller.delete-volume.works"],
    async run(context) {
      const volumeId = await volumeWithFile(context, "old");
      await mustAnswer("DeleteVolume", context.controller.deleteVolume({ volumeId }));
      const fresh = await makePublishedVolume(context);
      must((await read(context, fresh)) === undefined, "a new volume holds a file of a deleted one");
    },
  },
  {
    id: "node.data.readonly",
    sentence: "nothing can be written to a volume that is published with readonly",
    spec: "NodePublishVolume",
    needs,
    after,
    async run(context) {
      const writable = await makePublishedVolume(context);
      await write(context, writable, "before");
      await unpublish(context, writable);
      const readOnly = await publish(context, writable, {
        readonly: true,
        targetPath: await context.targetPath(),
      });
      if (!(await context.host.isMountPoint(readOnly.targetPath))) {
        context.skip("the driver mounts nothing at the target_path: that it is read-only cannot be seen");
      }
      const refused = await context.host.writeFileAtomic(`${readOnly.targetPath}/${fileName}`, "after").then(
        () => false,
        (error: unknown) => error instanceof HostError,
      );
      must(refused, `a file was written below ${readOnly.targetPath}, which is published with readonly`);
    },
  },
  {
    id: "node.data.from-snapshot",
    sentence: "a volume that is made from a snapshot holds what the volume held",
    spec: "CreateVolume",
    needs: [...needs, controllerCan("CREATE_DELETE_SNAPSHOT")],
    after: [...after, "controller.create-volume.from-snapshot", "node.data.kept-over-unpublish"],
    async run(context) {
      const volumeId = await volumeWithFile(context, "snapshot me");
      const { snapshotId } = await makeReadySnapshot(context, volumeId);
      await mustHold(context, { type: { case: "snapshot", value: { snapshotId } } }, "snapshot me");
    },
  },
  {
    id: "node.data.snapshot-unchanged",
    sentence: "a snapshot does not change when its volume does",
    spec: "CreateSnapshot",
    needs: [...needs, controllerCan("CREATE_DELETE_SNAPSHOT")],
    after: [...after, "node.data.from-snapshot"],
    async run(context) {
      const first = await makePublishedVolume(context);
      await write(context, first, "at the cut");
      // Off the node first: a snapshot need not hold what is still in the page cache.
      await takeOff(context, first);
      const { snapshotId } = await makeReadySnapshot(context, first.volumeId);
      const { volumeId, volumeContext } = first;
      const usable = await makeUsable(context, { volumeId, volumeContext } as Parameters<
        typeof makeUsable
      >[1]);
      const again = await publish(context, await stage(context, usable));
      await write(context, again, "after it");
      await takeOff(context, again);
      await mustHold(context, { type: { case: "snapshot", value: { snapshotId } } }, "at the cut");
    },
  },
  {
    id: "node.data.cloned",
    sentence: "a clone holds what the volume held",
    spec: "CreateVolume",
    needs: [...needs, controllerCan("CLONE_VOLUME")],
    after: [...after, "controller.create-volume.from-clone", "node.data.kept-over-unpublish"],
    async run(context) {
      const volumeId = await volumeWithFile(context, "clone me");
      await mustHold(context, { type: { case: "volume", value: { volumeId } } }, "clone me");
    },
  },
];
