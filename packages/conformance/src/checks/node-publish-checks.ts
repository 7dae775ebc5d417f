/** NodePublishVolume. What is written through it is in `node-data-checks.ts`. */
import { VolumeCapability_AccessMode_Mode as Mode } from "@longshore/csi";
import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { endingOf, must, mustAnswer } from "../expect.ts";
import {
  blockCapability,
  capabilityOf,
  makePublishedVolume,
  makeStagedVolume,
  makeUsable,
  makeUsableVolume,
  nodePublishRequest,
  type PublishedVolume,
  publish,
  stage,
  volumeOf,
  volumeRequest,
} from "../fixtures.ts";
import { canRestart, canUseVolumes, nodeCan } from "../needs.ts";
import { refusals } from "./refusals.ts";
import { sideBySide } from "./side-by-side.ts";

const spec = "NodePublishVolume";
const needs = [canUseVolumes];
const made = ["controller.create-volume.works", "controller.publish-volume.works", "node.stage-volume.works"];
const after = [...made, "node.publish-volume.works"];
const pathBytes = 128;

/** A volume that is ready to be published. */
async function publishable(
  context: CheckContext,
  mode?: Parameters<typeof capabilityOf>[1],
): Promise<PublishedVolume> {
  const volume = await makeStagedVolume(context, capabilityOf(context, mode));
  return { ...volume, targetPath: await context.targetPath() };
}

/** The checks of NodePublishVolume. */
export const nodePublishChecks: readonly Check[] = [
  {
    id: "node.publish-volume.works",
    sentence: "NodePublishVolume of a volume that is ready for it is answered OK",
    spec,
    needs,
    after: made,
    async run(context) {
      await makePublishedVolume(context);
    },
  },
  {
    id: "node.publish-volume.makes-target",
    sentence: "the plugin makes the target_path, whose parent the CO has made",
    spec,
    needs,
    after,
    async run(context) {
      const { targetPath } = await makePublishedVolume(context);
      must(
        (await context.host.stat(targetPath)) !== undefined,
        `there is nothing at ${targetPath} after NodePublishVolume; does the driver see the same directories as this command?`,
      );
    },
  },
  ...refusals("NodePublishVolume Errors", needs, [
    {
      id: "node.publish-volume.id-required",
      what: "NodePublishVolume without a volume_id",
      codes: ["INVALID_ARGUMENT"],
      after: made,
      async call(context) {
        const request = nodePublishRequest(await publishable(context));
        return [() => context.node.nodePublishVolume({ ...request, volumeId: "" })];
      },
    },
    {
      id: "node.publish-volume.target-path-required",
      what: "NodePublishVolume without a target_path",
      codes: ["INVALID_ARGUMENT"],
      after: made,
      async call(context) {
        const request = nodePublishRequest(await publishable(context));
        return [() => context.node.nodePublishVolume({ ...request, targetPath: "" })];
      },
    },
    {
      id: "node.publish-volume.capability-required",
      what: "NodePublishVolume without a volume_capability",
      codes: ["INVALID_ARGUMENT"],
      after: made,
      async call(context) {
        const { volumeCapability: _, ...request } = nodePublishRequest(await publishable(context));
        return [() => context.node.nodePublishVolume(request)];
      },
    },
    {
      id: "node.publish-volume.unknown-volume",
      what: "NodePublishVolume of a volume that does not exist",
      codes: ["NOT_FOUND"],
      after: made,
      async call(context) {
        const request = nodePublishRequest(await publishable(context));
        return [() => context.node.nodePublishVolume({ ...request, volumeId: context.unknownId("volume") })];
      },
    },
    {
      id: "node.publish-volume.staging-path-required",
      what: "NodePublishVolume without a staging_target_path, of a plugin with STAGE_UNSTAGE_VOLUME,",
      codes: ["FAILED_PRECONDITION"],
      needs: [nodeCan("STAGE_UNSTAGE_VOLUME")],
      after: made,
      async call(context) {
        const request = nodePublishRequest(await publishable(context));
        return [() => context.node.nodePublishVolume({ ...request, stagingTargetPath: "" })];
      },
    },
    {
      id: "node.publish-volume.relative-path",
      what: "NodePublishVolume at a path that is not absolute",
      codes: ["INVALID_ARGUMENT"],
      after: made,
      async call(context) {
        const request = nodePublishRequest(await publishable(context));
        return [() => context.node.nodePublishVolume({ ...request, targetPath: "longshore-check/target" })];
      },
    },
    {
      id: "node.publish-volume.different-readonly",
      what: "NodePublishVolume at the same target_path with another readonly",
      codes: ["ALREADY_EXISTS"],
      after,
      async call(context) {
        const volume = await makePublishedVolume(context);
        return [() => context.node.nodePublishVolume(nodePublishRequest(volume, true))];
      },
    },
    {
      id: "node.publish-volume.single-writer",
      what: "NodePublishVolume at a second target_path with SINGLE_NODE_SINGLE_WRITER",
      codes: ["FAILED_PRECONDITION"],
      needs: [nodeCan("SINGLE_NODE_MULTI_WRITER")],
      after,
      async call(context) {
        const mode = Mode.SINGLE_NODE_SINGLE_WRITER;
        const volume = await makePublishedVolume(context, capabilityOf(context, mode));
        const targetPath = await context.targetPath();
        return [() => context.node.nodePublishVolume(nodePublishRequest({ ...volume, targetPath }))];
      },
    },
    {
      id: "node.publish-volume.multi-writer",
      what: "NodePublishVolume at a second target_path with SINGLE_NODE_MULTI_WRITER",
      codes: ["OK"],
      needs: [nodeCan("SINGLE_NODE_MULTI_WRITER")],
      after,
      async call(context) {
        const mode = Mode.SINGLE_NODE_MULTI_WRITER;
        const volume = await makePublishedVolume(context, capabilityOf(context, mode));
        const targetPath = await context.targetPath();
        return [() => context.node.nodePublishVolume(nodePublishRequest({ ...volume, targetPath }))];
      },
    },
    {
      id: "node.publish-volume.second-target",
      what: "NodePublishVolume at a second target_path with SINGLE_NODE_WRITER",
      // CSI's table says FAILED_PRECONDITION, and Kubernetes relies on OK (decision 0014).
      codes: ["OK", "FAILED_PRECONDITION"],
      after,
      async call(context) {
        const volume = await makePublishedVolume(context);
        const targetPath = await context.targetPath();
        return [() => context.node.nodePublishVolume(nodePublishRequest({ ...volume, targetPath }))];
      },
    },
  ]),
  {
    id: "node.publish-volume.idempotent",
    sentence: "NodePublishVolume repeated is answered OK",
    spec,
    needs,
    after,
    async run(context) {
      const volume = await makePublishedVolume(context);
      for (let i = 1; i < context.options.repeats; i++) {
        const call = context.node.nodePublishVolume(nodePublishRequest(volume));
        await mustAnswer("NodePublishVolume repeated", call);
      }
    },
  },
  {
    id: "node.publish-volume.not-staged",
    sentence: "a volume that is not staged at the staging_target_path is not published from it",
    spec: "Volume Lifecycle",
    needs: [...needs, nodeCan("STAGE_UNSTAGE_VOLUME")],
    after,
    async run(context) {
      const usable = await makeUsableVolume(context);
      const stagingTargetPath = await context.stagingPath();
      const targetPath = await context.targetPath();
      const request = nodePublishRequest({ ...usable, stagingTargetPath, targetPath });
      const { code } = await endingOf(context.node.nodePublishVolume(request));
      // Any refusal will do: that staging comes first is the orchestrator's duty (decision 0014).
      must(
        code !== "OK",
        "NodePublishVolume of a volume that was not staged was answered OK: what is published?",
      );
    },
  },
  {
    id: "node.publish-volume.once-undone",
    sentence: "a volume that was published several times at one path is taken off by one NodeUnpublishVolume",
    spec: "NodeUnpublishVolume",
    needs,
    after: [...after, "node.publish-volume.idempotent", "node.unpublish-volume.removes-target"],
    async run(context) {
      const volume = await makePublishedVolume(context);
      await mustAnswer(
        "NodePublishVolume repeated",
        context.node.nodePublishVolume(nodePublishRequest(volume)),
      );
      const { volumeId, targetPath } = volume;
      await mustAnswer("NodeUnpublishVolume", context.node.nodeUnpublishVolume({ volumeId, targetPath }));
      must(
        (await context.host.stat(targetPath)) === undefined,
        `${targetPath} is there after NodeUnpublishVolume of a volume that was published twice`,
      );
    },
  },
  {
    id: "node.publish-volume.long-path",
    sentence: "a target_path of 128 bytes and more is taken, in any script and with spaces",
    spec: "Size Limits",
    needs,
    after: [...after, "node.unpublish-volume.works"],
    async run(context) {
      const volume = await makeStagedVolume(context);
      const { volumeId } = volume;
      const names = [context.name("long").padEnd(pathBytes, "x"), `${context.name("path")} größe データ`];
      for (const name of names) {
        const targetPath = await context.targetPath(name);
        await publish(context, volume, { targetPath });
        await mustAnswer("NodeUnpublishVolume", context.node.nodeUnpublishVolume({ volumeId, targetPath }));
      }
    },
  },
  {
    id: "node.publish-volume.block",
    sentence: "a volume for block access is published as a device or a file, and taken off again",
    spec,
    needs: [
      ...needs,
      ({ options }) =>
        options.accessType === "block" ? "all volumes are checked as block devices" : undefined,
    ],
    after: [...after, "node.unpublish-volume.works"],
    async run(context) {
      const capability = blockCapability;
      const request = volumeRequest(context, { volumeCapabilities: [capability] });
      const ending = await endingOf(context.controller.createVolume(request));
      // No capability declares block access: that a driver lacks it shows only here.
      if (ending.code === "INVALID_ARGUMENT") context.skip("the driver has no volumes for block access");
      must(ending.code === "OK", `CreateVolume for block access ended with ${ending.code}`);
      const usable = await makeUsable(context, volumeOf(ending.answer), capability);
      const { volumeId, targetPath } = await publish(context, await stage(context, usable));
      const kind = (await context.host.stat(targetPath))?.kind;
      must(kind !== undefined, `there is nothing at ${targetPath} after NodePublishVolume`);
      must(kind !== "directory", `${targetPath} is a directory; a block volume is published as a device`);
      await mustAnswer("NodeUnpublishVolume", context.node.nodeUnpublishVolume({ volumeId, targetPath }));
      must(
        (await context.host.stat(targetPath)) === undefined,
        `${targetPath} is there after NodeUnpublishVolume`,
      );
    },
  },
  {
    id: "node.publish-volume.parallel-same-target",
    sentence: "the same NodePublishVolume several times at once: each ends with OK or ABORTED",
    spec: "Concurrency",
    needs,
    after: [...after, "node.publish-volume.idempotent", "node.unpublish-volume.removes-target"],
    async run(context) {
      const volume = await publishable(context);
      await sideBySide(context, "NodePublishVolume", ["OK", "ABORTED"], () =>
        context.node.nodePublishVolume(nodePublishRequest(volume)),
      );
      await mustAnswer(
        "NodePublishVolume repeated",
        context.node.nodePublishVolume(nodePublishRequest(volume)),
      );
      // Mounts that calls at once have stacked would outlast a single unpublish.
      const { volumeId, targetPath } = volume;
      await mustAnswer("NodeUnpublishVolume", context.node.nodeUnpublishVolume({ volumeId, targetPath }));
      must(
        (await context.host.stat(targetPath)) === undefined,
        `${targetPath} is there after one NodeUnpublishVolume: it was published more than once`,
      );
    },
  },
  {
    id: "node.publish-volume.parallel-different-volumes",
    sentence: "several volumes are published at once, each as if it were alone",
    spec: "Concurrency",
    needs,
    after,
    async run(context) {
      const volumes: PublishedVolume[] = [];
      for (let i = 0; i < context.options.parallel; i++) volumes.push(await publishable(context));
      await sideBySide(context, "NodePublishVolume of different volumes", ["OK"], (index) =>
        context.node.nodePublishVolume(nodePublishRequest(volumes[index] as PublishedVolume)),
      );
    },
  },
  {
    id: "node.publish-volume.after-crash",
    sentence: "a staged volume is published, and a published one taken off, after a crash of the driver",
    spec,
    needs: [...needs, canRestart],
    after: [...after, "node.publish-volume.idempotent", "node.unpublish-volume.removes-target"],
    async run(context) {
      const volume = await publishable(context);
      await context.restartDriver();
      const publishIt = () => context.node.nodePublishVolume(nodePublishRequest(volume));
      await mustAnswer("NodePublishVolume after a crash", publishIt());
      await context.restartDriver();
      await mustAnswer("NodePublishVolume repeated after a crash", publishIt());
      const { volumeId, targetPath } = volume;
      await mustAnswer(
        "NodeUnpublishVolume after a crash",
        context.node.nodeUnpublishVolume({ volumeId, targetPath }),
      );
      must(
        (await context.host.stat(targetPath)) === undefined,
        `${targetPath} is there after NodeUnpublishVolume that followed a crash`,
      );
    },
  },
];
