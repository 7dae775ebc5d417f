/** The group controller: snapshots of several volumes at one point in time. */
import { GroupControllerServiceCapability_RPC_Type as Rpc } from "@longshore/csi";
import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { must, mustAnswer, mustEnd } from "../expect.ts";
import { groupSnapshotOf, makeGroup, makeVolume } from "../fixtures.ts";
import { controllerCan, groupsCan, pluginCan } from "../needs.ts";
import { refusals } from "./refusals.ts";

const canGroup = groupsCan("CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT");
const needs = [canGroup, controllerCan("CREATE_DELETE_VOLUME")];
const made = ["controller.create-volume.works"];
const after = [...made, "group-controller.create-group-snapshot.works"];

const idsIn = (group: { readonly snapshots: readonly { readonly snapshotId: string }[] }) =>
  group.snapshots.map(({ snapshotId }) => snapshotId);

async function deleteGroup(
  context: CheckContext,
  groupSnapshotId: string,
  snapshotIds: string[],
  what: string,
) {
  await mustAnswer(what, context.groupController.deleteVolumeGroupSnapshot({ groupSnapshotId, snapshotIds }));
}

/** The checks of the group controller service. */
export const groupSnapshotChecks: readonly Check[] = [
  {
    id: "group-controller.capabilities.known",
    sentence: "GroupControllerGetCapabilities declares no capability without a type, or of type UNKNOWN",
    spec: "GroupControllerGetCapabilities",
    needs: [pluginCan("GROUP_CONTROLLER_SERVICE")],
    async run({ groupController }) {
      const { capabilities } = await mustAnswer(
        "GroupControllerGetCapabilities",
        groupController.groupControllerGetCapabilities({}),
      );
      for (const [index, { type }] of capabilities.entries()) {
        must(type.case === "rpc", `capabilities[${index}] has no type`);
        must(type.value.type !== Rpc.UNKNOWN, `capabilities[${index}] is UNKNOWN`);
      }
    },
  },
  {
    id: "group-controller.create-group-snapshot.works",
    sentence:
      "CreateVolumeGroupSnapshot gives a group with one snapshot of each volume, each naming its group",
    spec: "CreateVolumeGroupSnapshot",
    needs,
    after: made,
    async run(context) {
      const { group, request } = await makeGroup(context);
      // CSI gives the snapshots of a group no order.
      const sources = group.snapshots.map(({ sourceVolumeId }) => sourceVolumeId).sort();
      must(
        sources.join() === [...request.sourceVolumeIds].sort().join(),
        `the group is of ${request.sourceVolumeIds.join(", ")} and holds snapshots of ${sources.join(", ") || "nothing"}`,
      );
      must(group.creationTime !== undefined, "the group has no creation_time; it is REQUIRED");
      for (const { snapshotId, groupSnapshotId } of group.snapshots) {
        must(
          groupSnapshotId === group.groupSnapshotId,
          `snapshot ${snapshotId} says its group is "${groupSnapshotId}" and not ${group.groupSnapshotId}`,
        );
      }
    },
  },
  {
    id: "group-controller.create-group-snapshot.ready",
    sentence: "a group is ready to use only when all of its snapshots are, and becomes so",
    spec: "CreateVolumeGroupSnapshot",
    needs,
    after,
    async run(context) {
      const { request } = await makeGroup(context);
      await context.eventually("the group snapshot was ready to use", async () => {
        const group = groupSnapshotOf(
          await mustAnswer(
            "CreateVolumeGroupSnapshot",
            context.groupController.createVolumeGroupSnapshot(request),
          ),
        );
        if (!group.readyToUse) return undefined;
        const unready = group.snapshots.filter(({ readyToUse }) => !readyToUse);
        must(
          unready.length === 0,
          `the group is ready to use, and its snapshots ${unready.map((s) => s.snapshotId).join(", ")} are not`,
        );
        return group;
      });
    },
  },
  ...refusals("CreateVolumeGroupSnapshot Errors", needs, [
    {
      id: "group-controller.create-group-snapshot.name-required",
      what: "CreateVolumeGroupSnapshot without a name",
      codes: ["INVALID_ARGUMENT"],
      after: made,
      async call(context) {
        const sourceVolumeIds = [(await makeVolume(context)).volumeId];
        return [() => context.groupController.createVolumeGroupSnapshot({ sourceVolumeIds })];
      },
    },
    {
      id: "group-controller.create-group-snapshot.sources-required",
      what: "CreateVolumeGroupSnapshot without source_volume_ids",
      codes: ["INVALID_ARGUMENT"],
      call: (context) => [
        () => context.groupController.createVolumeGroupSnapshot({ name: context.name("group") }),
      ],
    },
    {
      id: "group-controller.create-group-snapshot.unknown-source",
      what: "CreateVolumeGroupSnapshot of a volume that does not exist",
      codes: ["NOT_FOUND", "FAILED_PRECONDITION"],
      call: (context) => [
        () =>
          context.groupController.createVolumeGroupSnapshot({
            name: context.name("group"),
            sourceVolumeIds: [context.unknownId("volume")],
          }),
      ],
    },
    {
      id: "group-controller.create-group-snapshot.different-sources",
      what: "CreateVolumeGroupSnapshot with a name that is taken by a group of other volumes",
      codes: ["ALREADY_EXISTS"],
      after,
      async call(context) {
        const { request } = await makeGroup(context);
        const sourceVolumeIds = [(await makeVolume(context)).volumeId];
        return [() => context.groupController.createVolumeGroupSnapshot({ ...request, sourceVolumeIds })];
      },
    },
  ]),
  {
    id: "group-controller.create-group-snapshot.idempotent",
    sentence: "CreateVolumeGroupSnapshot repeated gives the same group with the same snapshots",
    spec: "CreateVolumeGroupSnapshot",
    needs,
    after,
    async run(context) {
      const { group, request } = await makeGroup(context);
      const again = groupSnapshotOf(
        await mustAnswer(
          "CreateVolumeGroupSnapshot repeated",
          context.groupController.createVolumeGroupSnapshot(request),
        ),
      );
      must(
        again.groupSnapshotId === group.groupSnapshotId,
        `CreateVolumeGroupSnapshot repeated gave group ${again.groupSnapshotId} instead of ${group.groupSnapshotId}`,
      );
      must(
        idsIn(again).sort().join() === idsIn(group).sort().join(),
        "CreateVolumeGroupSnapshot repeated gave other snapshots",
      );
    },
  },
  {
    id: "group-controller.delete-group-snapshot.idempotent",
    sentence: "DeleteVolumeGroupSnapshot is answered OK, and repeated likewise",
    spec: "DeleteVolumeGroupSnapshot",
    needs,
    after,
    async run(context) {
      const { group } = await makeGroup(context);
      for (let i = 0; i < context.options.repeats; i++) {
        const what = i === 0 ? "DeleteVolumeGroupSnapshot" : "DeleteVolumeGroupSnapshot repeated";
        await deleteGroup(context, group.groupSnapshotId, idsIn(group), what);
      }
    },
  },
  {
    id: "group-controller.delete-group-snapshot.unknown",
    sentence: "DeleteVolumeGroupSnapshot of a group that does not exist is answered OK",
    spec: "DeleteVolumeGroupSnapshot",
    needs: [canGroup],
    async run(context) {
      const what = "DeleteVolumeGroupSnapshot of an unknown group";
      await deleteGroup(context, context.unknownId("group"), [], what);
    },
  },
  ...refusals(
    "DeleteVolumeGroupSnapshot Errors",
    [canGroup],
    [
      {
        id: "group-controller.delete-group-snapshot.id-required",
        what: "DeleteVolumeGroupSnapshot without a group_snapshot_id",
        codes: ["INVALID_ARGUMENT"],
        call: ({ groupController }) => [() => groupController.deleteVolumeGroupSnapshot({})],
      },
      {
        id: "group-controller.delete-group-snapshot.different-snapshots",
        what: "DeleteVolumeGroupSnapshot with snapshot_ids that are not those of the group",
        codes: ["INVALID_ARGUMENT"],
        needs,
        after,
        async call(context) {
          const { group } = await makeGroup(context);
          const { groupSnapshotId } = group;
          const snapshotIds = [context.unknownId("snapshot")];
          return [() => context.groupController.deleteVolumeGroupSnapshot({ groupSnapshotId, snapshotIds })];
        },
      },
    ],
  ),
  {
    id: "group-controller.delete-group-snapshot.members",
    sentence: "DeleteSnapshot of a snapshot that belongs to a group ends with INVALID_ARGUMENT",
    spec: "DeleteSnapshot Errors",
    needs: [...needs, controllerCan("CREATE_DELETE_SNAPSHOT")],
    after,
    async run(context) {
      const { group } = await makeGroup(context);
      const snapshotId = idsIn(group)[0] ?? "";
      await mustEnd(
        "DeleteSnapshot of a snapshot that belongs to a group",
        context.controller.deleteSnapshot({ snapshotId }),
        "INVALID_ARGUMENT",
      );
    },
  },
  {
    id: "group-controller.get-group-snapshot.works",
    sentence: "GetVolumeGroupSnapshot gives the group that was made, with its snapshots",
    spec: "GetVolumeGroupSnapshot",
    needs,
    after,
    async run(context) {
      const { group } = await makeGroup(context);
      const got = groupSnapshotOf(
        await mustAnswer(
          "GetVolumeGroupSnapshot",
          context.groupController.getVolumeGroupSnapshot({
            groupSnapshotId: group.groupSnapshotId,
            snapshotIds: idsIn(group),
          }),
        ),
      );
      must(
        got.groupSnapshotId === group.groupSnapshotId &&
          idsIn(got).sort().join() === idsIn(group).sort().join(),
        `asked for group ${group.groupSnapshotId}, got ${got.groupSnapshotId} with ${idsIn(got).join(", ") || "no snapshots"}`,
      );
    },
  },
  ...refusals(
    "GetVolumeGroupSnapshot Errors",
    [canGroup],
    [
      {
        id: "group-controller.get-group-snapshot.id-required",
        what: "GetVolumeGroupSnapshot without a group_snapshot_id",
        codes: ["INVALID_ARGUMENT"],
        call: ({ groupController }) => [() => groupController.getVolumeGroupSnapshot({})],
      },
      {
        id: "group-controller.get-group-snapshot.unknown",
        what: "GetVolumeGroupSnapshot of a group that does not exist",
        codes: ["NOT_FOUND"],
        call: (context) => [
          () =>
            context.groupController.getVolumeGroupSnapshot({ groupSnapshotId: context.unknownId("group") }),
        ],
      },
      {
        id: "group-controller.get-group-snapshot.different-snapshots",
        what: "GetVolumeGroupSnapshot with snapshot_ids that are not those of the group",
        codes: ["INVALID_ARGUMENT"],
        needs,
        after,
        async call(context) {
          const { group } = await makeGroup(context);
          const { groupSnapshotId } = group;
          const snapshotIds = [context.unknownId("snapshot")];
          return [() => context.groupController.getVolumeGroupSnapshot({ groupSnapshotId, snapshotIds })];
        },
      },
    ],
  ),
];
