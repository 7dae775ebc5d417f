/** NodeStageVolume and NodeUnstageVolume. */
import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { must, mustAnswer } from "../expect.ts";
import {
  makeStagedVolume,
  makeUsableVolume,
  otherCapabilityOf,
  type StagedVolume,
  stageRequest,
  unstage,
} from "../fixtures.ts";
import { canRestart, canUseVolumes, nodeCan } from "../needs.ts";
import { refusals } from "./refusals.ts";
import { sideBySide } from "./side-by-side.ts";

const spec = "NodeStageVolume";
const canStage = nodeCan("STAGE_UNSTAGE_VOLUME");
const needs = [canStage, canUseVolumes];
const made = ["controller.create-volume.works", "controller.publish-volume.works"];
const after = [...made, "node.stage-volume.works"];
/** Every plugin must take paths of this length (docs/behaviour/csi-spec-notes.md 2). */
const pathBytes = 128;

/** A volume that is ready to be staged, with the request to do so. */
async function stageable(context: CheckContext): Promise<StagedVolume> {
  return { ...(await makeUsableVolume(context)), stagingTargetPath: await context.stagingPath() };
}

/** The checks of NodeStageVolume. */
export const nodeStageChecks: readonly Check[] = [
  {
    id: "node.stage-volume.works",
    sentence: "NodeStageVolume of a volume that is published to this node is answered OK",
    spec,
    needs,
    after: made,
    async run(context) {
      await makeStagedVolume(context);
    },
  },
  ...refusals(
    "NodeStageVolume Errors",
    [canStage],
    [
      {
        id: "node.stage-volume.id-required",
        what: "NodeStageVolume without a volume_id",
        codes: ["INVALID_ARGUMENT"],
        needs: [canUseVolumes],
        after: made,
        async call(context) {
          const volume = await stageable(context);
          return [() => context.node.nodeStageVolume({ ...stageRequest(volume), volumeId: "" })];
        },
      },
      {
        id: "node.stage-volume.path-required",
        what: "NodeStageVolume without a staging_target_path",
        codes: ["INVALID_ARGUMENT"],
        needs: [canUseVolumes],
        after: made,
        async call(context) {
          const volume = await stageable(context);
          return [() => context.node.nodeStageVolume({ ...stageRequest(volume), stagingTargetPath: "" })];
        },
      },
      {
        id: "node.stage-volume.capability-required",
        what: "NodeStageVolume without a volume_capability",
        codes: ["INVALID_ARGUMENT"],
        needs: [canUseVolumes],
        after: made,
        async call(context) {
          const { volumeCapability: _, ...request } = stageRequest(await stageable(context));
          return [() => context.node.nodeStageVolume(request)];
        },
      },
      {
        id: "node.stage-volume.unknown-volume",
        what: "NodeStageVolume of a volume that does not exist",
        codes: ["NOT_FOUND"],
        needs: [canUseVolumes],
        after: made,
        async call(context) {
          const request = stageRequest(await stageable(context));
          return [() => context.node.nodeStageVolume({ ...request, volumeId: context.unknownId("volume") })];
        },
      },
      {
        id: "node.stage-volume.incompatible",
        what: "NodeStageVolume at the same path with another access type",
        // ALREADY_EXISTS is about the path; a plugin without the other access type refuses that first.
        codes: ["ALREADY_EXISTS", "FAILED_PRECONDITION", "INVALID_ARGUMENT"],
        needs: [canUseVolumes],
        after,
        async call(context) {
          const request = stageRequest(await makeStagedVolume(context));
          const volumeCapability = otherCapabilityOf(context);
          return [() => context.node.nodeStageVolume({ ...request, volumeCapability })];
        },
      },
      {
        id: "node.stage-volume.relative-path",
        what: "NodeStageVolume at a path that is not absolute",
        codes: ["INVALID_ARGUMENT"],
        needs: [canUseVolumes],
        after,
        async call(context) {
          const request = stageRequest(await stageable(context));
          return [
            () => context.node.nodeStageVolume({ ...request, stagingTargetPath: "longshore-check/staging" }),
          ];
        },
      },
    ],
  ),
  {
    id: "node.stage-volume.idempotent",
    sentence: "NodeStageVolume repeated is answered OK",
    spec,
    needs,
    after,
    async run(context) {
      const volume = await makeStagedVolume(context);
      for (let i = 1; i < context.options.repeats; i++) {
        await mustAnswer("NodeStageVolume repeated", context.node.nodeStageVolume(stageRequest(volume)));
      }
    },
  },
  {
    id: "node.stage-volume.long-path",
    sentence: "a staging_target_path of 128 bytes and more is taken, in any script and with spaces",
    spec: "Size Limits",
    needs,
    after,
    async run(context) {
      const volume = await makeUsableVolume(context);
      const names = [context.name("long").padEnd(pathBytes, "x"), `${context.name("path")} größe データ`];
      for (const name of names) {
        const staged = { ...volume, stagingTargetPath: await context.stagingPath(name) };
        await mustAnswer(
          `NodeStageVolume at ${staged.stagingTargetPath}`,
          context.node.nodeStageVolume(stageRequest(staged)),
        );
        await unstage(context, staged);
      }
    },
  },
  {
    id: "node.stage-volume.parallel-same-volume",
    sentence: "the same NodeStageVolume several times at once: each ends with OK or ABORTED",
    spec: "Concurrency",
    needs,
    after: [...after, "node.stage-volume.idempotent"],
    async run(context) {
      const volume = await stageable(context);
      await sideBySide(context, "NodeStageVolume", ["OK", "ABORTED"], () =>
        context.node.nodeStageVolume(stageRequest(volume)),
      );
      await mustAnswer("NodeStageVolume repeated", context.node.nodeStageVolume(stageRequest(volume)));
      await unstage(context, volume);
    },
  },
  {
    id: "node.stage-volume.parallel-different-volumes",
    sentence: "several volumes are staged at once, each as if it were alone",
    spec: "Concurrency",
    needs,
    after,
    async run(context) {
      const volumes: StagedVolume[] = [];
      for (let i = 0; i < context.options.parallel; i++) volumes.push(await stageable(context));
      await sideBySide(context, "NodeStageVolume of different volumes", ["OK"], (index) =>
        context.node.nodeStageVolume(stageRequest(volumes[index] as StagedVolume)),
      );
    },
  },
  {
    id: "node.stage-volume.after-crash",
    sentence:
      "a staged volume stays staged over a crash: the call repeated is answered OK, and it can be unstaged",
    spec,
    needs: [...needs, canRestart],
    after: [...after, "node.stage-volume.idempotent", "node.unstage-volume.idempotent"],
    async run(context) {
      const volume = await makeStagedVolume(context);
      await context.restartDriver();
      await mustAnswer(
        "NodeStageVolume repeated after a crash",
        context.node.nodeStageVolume(stageRequest(volume)),
      );
      // Once more: NodeUnstageVolume has to work without what the repeated call has put into memory.
      await context.restartDriver();
      await unstage(context, volume);
    },
  },
];

/** The checks of NodeUnstageVolume. */
export const nodeUnstageChecks: readonly Check[] = [
  ...refusals(
    "NodeUnstageVolume Errors",
    [canStage],
    [
      {
        id: "node.unstage-volume.id-required",
        what: "NodeUnstageVolume without a volume_id",
        codes: ["INVALID_ARGUMENT"],
        async call(context) {
          const stagingTargetPath = await context.stagingPath();
          return [() => context.node.nodeUnstageVolume({ stagingTargetPath })];
        },
      },
      {
        id: "node.unstage-volume.path-required",
        what: "NodeUnstageVolume without a staging_target_path",
        codes: ["INVALID_ARGUMENT"],
        needs: [canUseVolumes],
        after: made,
        async call(context) {
          const { volumeId } = await makeUsableVolume(context);
          return [() => context.node.nodeUnstageVolume({ volumeId })];
        },
      },
      {
        id: "node.unstage-volume.unknown-volume",
        what: "NodeUnstageVolume of a volume that does not exist",
        codes: ["OK", "NOT_FOUND"],
        async call(context) {
          const stagingTargetPath = await context.stagingPath();
          const volumeId = context.unknownId("volume");
          return [() => context.node.nodeUnstageVolume({ volumeId, stagingTargetPath })];
        },
      },
    ],
  ),
  {
    id: "node.unstage-volume.not-staged",
    sentence: "NodeUnstageVolume of a volume that is not staged is answered OK",
    spec: "NodeUnstageVolume",
    needs,
    after: made,
    async run(context) {
      await unstage(context, await stageable(context));
    },
  },
  {
    id: "node.unstage-volume.idempotent",
    sentence: "NodeUnstageVolume is answered OK, and repeated likewise",
    spec: "NodeUnstageVolume",
    needs,
    after,
    async run(context) {
      const volume = await makeStagedVolume(context);
      for (let i = 0; i < context.options.repeats; i++) await unstage(context, volume);
    },
  },
  {
    id: "node.unstage-volume.leaves-the-directory",
    sentence: "what NodeUnstageVolume leaves at the staging path is empty: the directory is the CO's",
    spec: "NodeUnstageVolume",
    needs,
    after: [...after, "node.unstage-volume.idempotent"],
    async run(context) {
      const volume = await makeStagedVolume(context);
      await unstage(context, volume);
      const { stagingTargetPath } = volume;
      const stat = await context.host.stat(stagingTargetPath);
      if (stat === undefined) return; // A plugin may remove it.
      must(
        stat.kind === "directory",
        `a ${stat.kind} is left at ${stagingTargetPath}, where there was a directory`,
      );
      const names = (await context.host.readDirectory(stagingTargetPath)) ?? [];
      must(names.length === 0, `NodeUnstageVolume left ${names.join(", ")} in ${stagingTargetPath}`);
    },
  },
  {
    id: "node.unstage-volume.parallel",
    sentence: "the same NodeUnstageVolume several times at once: each ends with OK or ABORTED",
    spec: "Concurrency",
    needs,
    after: [...after, "node.unstage-volume.idempotent"],
    async run(context) {
      const volume = await makeStagedVolume(context);
      const { volumeId, stagingTargetPath } = volume;
      await sideBySide(context, "NodeUnstageVolume", ["OK", "ABORTED"], () =>
        context.node.nodeUnstageVolume({ volumeId, stagingTargetPath }),
      );
      await unstage(context, volume);
    },
  },
];
