/** ListSnapshots. */
import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { must, mustAnswer } from "../expect.ts";
import { makeReadySnapshot, makeVolume } from "../fixtures.ts";
import { controllerCan } from "../needs.ts";
import { walk } from "./pages.ts";
import { refusals } from "./refusals.ts";

const spec = "ListSnapshots";
const canList = controllerCan("LIST_SNAPSHOTS");
const needs = [canList, controllerCan("CREATE_DELETE_SNAPSHOT"), controllerCan("CREATE_DELETE_VOLUME")];
const after = [
  "controller.create-volume.works",
  "controller.create-snapshot.works",
  "controller.list-snapshots.works",
];

interface Filter {
  readonly snapshotId?: string;
  readonly sourceVolumeId?: string;
}

/** The ids that the filter lets through, page by page. */
function idsOf(context: CheckContext, filter: Filter = {}, maxEntries = 0): Promise<readonly string[]> {
  return walk("ListSnapshots", maxEntries, async (max, startingToken) => {
    const { entries, nextToken } = await mustAnswer(
      "ListSnapshots",
      context.controller.listSnapshots({ ...filter, maxEntries: max, startingToken }),
    );
    return { ids: entries.map(({ snapshot }) => snapshot?.snapshotId ?? ""), nextToken };
  });
}

/** The checks of ListSnapshots. */
export const listSnapshotsChecks: readonly Check[] = [
  {
    id: "controller.list-snapshots.works",
    sentence: "ListSnapshots without arguments lists snapshots with their ids",
    spec,
    needs: [canList],
    async run(context) {
      const ids = await idsOf(context);
      must(!ids.includes(""), "ListSnapshots gave an entry without a snapshot_id");
    },
  },
  {
    id: "controller.list-snapshots.shows-created",
    sentence: "a snapshot that was made is listed, and no longer once it is deleted",
    spec,
    needs,
    after,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const { snapshotId } = await makeReadySnapshot(context, volumeId);
      must((await idsOf(context)).includes(snapshotId), `snapshot ${snapshotId} was made and is not listed`);
      await mustAnswer("DeleteSnapshot", context.controller.deleteSnapshot({ snapshotId }));
      must(!(await idsOf(context)).includes(snapshotId), `the deleted snapshot ${snapshotId} is listed`);
    },
  },
  {
    id: "controller.list-snapshots.by-id",
    sentence: "ListSnapshots with a snapshot_id gives that snapshot only",
    spec,
    needs,
    after,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const { snapshotId } = await makeReadySnapshot(context, volumeId);
      await makeReadySnapshot(context, volumeId);
      const ids = await idsOf(context, { snapshotId });
      must(
        ids.length === 1 && ids[0] === snapshotId,
        `asked for snapshot ${snapshotId}, got ${ids.join(", ") || "none"}`,
      );
    },
  },
  {
    id: "controller.list-snapshots.by-source",
    sentence: "ListSnapshots with a source_volume_id gives the snapshots of that volume only",
    spec,
    needs,
    after,
    async run(context) {
      const [first, second] = [await makeVolume(context), await makeVolume(context)];
      const own = [
        (await makeReadySnapshot(context, first.volumeId)).snapshotId,
        (await makeReadySnapshot(context, first.volumeId)).snapshotId,
      ].sort();
      await makeReadySnapshot(context, second.volumeId);
      const ids = [...(await idsOf(context, { sourceVolumeId: first.volumeId }))].sort();
      must(
        ids.join() === own.join(),
        `volume ${first.volumeId} has the snapshots ${own.join(", ")}, listed are ${ids.join(", ") || "none"}`,
      );
    },
  },
  {
    id: "controller.list-snapshots.unknown",
    sentence: "ListSnapshots with an unknown snapshot_id or source_volume_id is answered with an empty list",
    spec,
    needs: [canList],
    async run(context) {
      const filters = [
        { snapshotId: context.unknownId("snapshot") },
        { sourceVolumeId: context.unknownId("volume") },
      ];
      for (const filter of filters) {
        const ids = await idsOf(context, filter);
        must(ids.length === 0, `asked for ${JSON.stringify(filter)}, got ${ids.join(", ")}`);
      }
    },
  },
  {
    id: "controller.list-snapshots.paging",
    sentence: "pages of max_entries have no more than that, and together hold every snapshot once",
    spec,
    needs,
    after,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const own: string[] = [];
      for (let i = 0; i < 3; i++) own.push((await makeReadySnapshot(context, volumeId)).snapshotId);
      for (const maxEntries of [1, 2]) {
        const ids = await idsOf(context, {}, maxEntries);
        for (const id of own) {
          const times = ids.filter((other) => other === id).length;
          must(times === 1, `snapshot ${id} is ${times} times on the pages of ${maxEntries}`);
        }
      }
    },
  },
  ...refusals(
    "ListSnapshots Errors",
    [canList],
    [
      {
        id: "controller.list-snapshots.invalid-token",
        what: "ListSnapshots with a starting_token that was never given",
        codes: ["ABORTED"],
        call: ({ controller }) => [
          () => controller.listSnapshots({ startingToken: "longshore-no-such-token" }),
        ],
      },
      {
        id: "controller.list-snapshots.negative-max-entries",
        what: "ListSnapshots with negative max_entries",
        codes: ["INVALID_ARGUMENT"],
        call: ({ controller }) => [() => controller.listSnapshots({ maxEntries: -1 })],
      },
    ],
  ),
];
