/** CreateSnapshot, DeleteSnapshot and GetSnapshot. */
import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { must, mustAnswer, mustEnd } from "../expect.ts";
import {
  isKnown,
  makeReadySnapshot,
  makeSnapshot,
  makeVolume,
  snapshotOf,
  snapshotRequest,
} from "../fixtures.ts";
import { canRestart, controllerCan } from "../needs.ts";
import { refusals } from "./refusals.ts";
import { sideBySide } from "./side-by-side.ts";

const spec = "CreateSnapshot";
const canSnapshot = controllerCan("CREATE_DELETE_SNAPSHOT");
const needs = [canSnapshot, controllerCan("CREATE_DELETE_VOLUME")];
const made = ["controller.create-volume.works"];
const after = [...made, "controller.create-snapshot.works"];
const nameBytes = 128;

/** Repeats until the call is no longer under way. */
async function settledSnapshot(context: CheckContext, request: ReturnType<typeof snapshotRequest>) {
  return context.eventually("CreateSnapshot was answered", async () => {
    const call = context.controller.createSnapshot(request);
    const ending = await mustEnd("CreateSnapshot repeated", call, "OK", "ABORTED");
    return ending.code === "OK" ? snapshotOf(ending.answer) : undefined;
  });
}

/** The checks of CreateSnapshot. */
export const createSnapshotChecks: readonly Check[] = [
  {
    id: "controller.create-snapshot.works",
    sentence: "CreateSnapshot gives a snapshot with an id, its source and the time of its creation",
    spec,
    needs,
    after: made,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const snapshot = await makeSnapshot(context, volumeId);
      must(
        snapshot.sourceVolumeId === volumeId,
        `the snapshot is of ${volumeId} and its source_volume_id is "${snapshot.sourceVolumeId}"`,
      );
      must(snapshot.creationTime !== undefined, "the snapshot has no creation_time; it is REQUIRED");
    },
  },
  ...refusals(
    "CreateSnapshot Errors",
    [canSnapshot],
    [
      {
        id: "controller.create-snapshot.name-required",
        what: "CreateSnapshot without a name",
        codes: ["INVALID_ARGUMENT"],
        needs,
        after: made,
        async call(context) {
          const { volumeId } = await makeVolume(context);
          return [() => context.controller.createSnapshot(snapshotRequest(context, volumeId, { name: "" }))];
        },
      },
      {
        id: "controller.create-snapshot.source-required",
        what: "CreateSnapshot without a source_volume_id",
        codes: ["INVALID_ARGUMENT"],
        call: (context) => [() => context.controller.createSnapshot(snapshotRequest(context, ""))],
      },
      {
        id: "controller.create-snapshot.unknown-source",
        what: "CreateSnapshot of a volume that does not exist",
        codes: ["NOT_FOUND"],
        call: (context) => [
          () => context.controller.createSnapshot(snapshotRequest(context, context.unknownId("volume"))),
        ],
      },
    ],
  ),
  {
    id: "controller.create-snapshot.ready",
    sentence: "a snapshot becomes ready to use, which a repeated CreateSnapshot reports",
    spec,
    needs,
    after,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      await makeReadySnapshot(context, volumeId);
    },
  },
  {
    id: "controller.create-snapshot.idempotent",
    sentence: "CreateSnapshot repeated with the same name and source gives the same snapshot",
    spec,
    needs,
    after,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const request = snapshotRequest(context, volumeId);
      const first = snapshotOf(
        await mustAnswer("CreateSnapshot", context.controller.createSnapshot(request)),
      );
      for (let i = 1; i < context.options.repeats; i++) {
        const again = snapshotOf(
          await mustAnswer("CreateSnapshot repeated", context.controller.createSnapshot(request)),
        );
        must(
          again.snapshotId === first.snapshotId,
          `CreateSnapshot repeated gave snapshot ${again.snapshotId} instead of ${first.snapshotId}`,
        );
      }
    },
  },
  {
    id: "controller.create-snapshot.same-time",
    sentence: "the creation time of a snapshot does not change: CreateSnapshot repeated gives the same",
    spec,
    needs,
    after: [...after, "controller.create-snapshot.idempotent"],
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const request = snapshotRequest(context, volumeId);
      const timeOf = async () => {
        const { creationTime } = snapshotOf(
          await mustAnswer("CreateSnapshot", context.controller.createSnapshot(request)),
        );
        return `${creationTime?.seconds}.${creationTime?.nanos}`;
      };
      const first = await timeOf();
      // Detects a driver that returns the current time, even with a clock of whole seconds.
      await context.clock.sleep(1100, context.signal);
      const again = await timeOf();
      must(first === again, `creation_time was ${first} s, and ${again} s when CreateSnapshot was repeated`);
    },
  },
  {
    id: "controller.create-snapshot.different-source",
    sentence:
      "CreateSnapshot with a name that is taken by a snapshot of another volume ends with ALREADY_EXISTS",
    spec: "CreateSnapshot Errors",
    needs,
    after,
    async run(context) {
      const [first, second] = [await makeVolume(context), await makeVolume(context)];
      const request = snapshotRequest(context, first.volumeId);
      await mustAnswer("CreateSnapshot", context.controller.createSnapshot(request));
      await mustEnd(
        "CreateSnapshot with the same name and another source",
        context.controller.createSnapshot({ ...request, sourceVolumeId: second.volumeId }),
        "ALREADY_EXISTS",
      );
    },
  },
  {
    id: "controller.create-snapshot.names",
    sentence: "names of 128 bytes and in any script are taken, and different ones name different snapshots",
    spec: "Size Limits",
    needs,
    after,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const base = context.name("snapshot");
      const long = base.padEnd(nameBytes - 1, "x");
      const names = [`${long}1`, `${long}2`, `${base}-データ`, `${base}-🚢`, `../${base}`, base];
      const ids = new Set<string>();
      for (const name of names) ids.add((await makeSnapshot(context, volumeId, { name })).snapshotId);
      must(ids.size === names.length, `${names.length} names gave ${ids.size} snapshots`);
    },
  },
  {
    id: "controller.create-snapshot.parallel",
    sentence: "the same CreateSnapshot several times at once makes one snapshot; a call may end with ABORTED",
    spec: "Concurrency",
    needs,
    after: [...after, "controller.create-snapshot.idempotent"],
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const request = snapshotRequest(context, volumeId);
      const answers = await sideBySide(context, "CreateSnapshot", ["OK", "ABORTED"], () =>
        context.controller.createSnapshot(request),
      );
      const settled = await settledSnapshot(context, request);
      const ids = new Set([settled.snapshotId, ...answers.map((answer) => snapshotOf(answer).snapshotId)]);
      must(ids.size === 1, `one name gave the snapshots ${[...ids].join(", ")}`);
    },
  },
  {
    id: "controller.create-snapshot.after-crash",
    sentence: "CreateSnapshot repeated after a crash of the driver gives the same snapshot",
    spec,
    needs: [...needs, canRestart],
    after: [...after, "controller.create-snapshot.idempotent"],
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const request = snapshotRequest(context, volumeId);
      const first = snapshotOf(
        await mustAnswer("CreateSnapshot", context.controller.createSnapshot(request)),
      );
      await context.restartDriver();
      const again = snapshotOf(
        await mustAnswer("CreateSnapshot after a crash", context.controller.createSnapshot(request)),
      );
      must(
        again.snapshotId === first.snapshotId,
        `after a crash CreateSnapshot gave snapshot ${again.snapshotId} instead of ${first.snapshotId}`,
      );
    },
  },
];

/** The checks of DeleteSnapshot. */
export const deleteSnapshotChecks: readonly Check[] = [
  ...refusals(
    "DeleteSnapshot Errors",
    [canSnapshot],
    [
      {
        id: "controller.delete-snapshot.id-required",
        what: "DeleteSnapshot without a snapshot_id",
        codes: ["INVALID_ARGUMENT"],
        call: ({ controller }) => [() => controller.deleteSnapshot({})],
      },
    ],
  ),
  {
    id: "controller.delete-snapshot.unknown",
    sentence: "DeleteSnapshot of a snapshot that does not exist is answered OK",
    spec: "DeleteSnapshot",
    needs: [canSnapshot],
    async run(context) {
      const snapshotId = context.unknownId("snapshot");
      await mustAnswer(
        "DeleteSnapshot of an unknown snapshot",
        context.controller.deleteSnapshot({ snapshotId }),
      );
    },
  },
  {
    id: "controller.delete-snapshot.idempotent",
    sentence: "DeleteSnapshot is answered OK, and repeated likewise",
    spec: "DeleteSnapshot",
    needs,
    after,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const { snapshotId } = await makeReadySnapshot(context, volumeId);
      for (let i = 0; i < context.options.repeats; i++) {
        await mustAnswer(
          i === 0 ? "DeleteSnapshot" : "DeleteSnapshot repeated",
          context.controller.deleteSnapshot({ snapshotId }),
        );
      }
    },
  },
  {
    id: "controller.delete-snapshot.source-stays",
    sentence: "DeleteSnapshot leaves the volume that the snapshot is of",
    spec: "DeleteSnapshot",
    needs,
    after: [...after, "controller.delete-snapshot.idempotent"],
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const { snapshotId } = await makeReadySnapshot(context, volumeId);
      await mustAnswer("DeleteSnapshot", context.controller.deleteSnapshot({ snapshotId }));
      must(await isKnown(context, volumeId), `volume ${volumeId} is gone with its snapshot`);
    },
  },
  {
    id: "controller.delete-snapshot.parallel",
    sentence: "the same DeleteSnapshot several times at once: each ends with OK or ABORTED",
    spec: "Concurrency",
    needs,
    after: [...after, "controller.delete-snapshot.idempotent"],
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const { snapshotId } = await makeReadySnapshot(context, volumeId);
      await sideBySide(context, "DeleteSnapshot", ["OK", "ABORTED"], () =>
        context.controller.deleteSnapshot({ snapshotId }),
      );
    },
  },
  {
    id: "controller.delete-volume.with-snapshots",
    sentence:
      "DeleteVolume of a volume with a snapshot leaves the snapshot, or ends with FAILED_PRECONDITION",
    spec: "DeleteVolume",
    needs: [...needs, controllerCan("LIST_SNAPSHOTS")],
    after: [...after, "controller.delete-volume.works", "controller.list-snapshots.by-id"],
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const { snapshotId } = await makeReadySnapshot(context, volumeId);
      const ending = await mustEnd(
        "DeleteVolume of a volume with a snapshot",
        context.controller.deleteVolume({ volumeId }),
        "OK",
        "FAILED_PRECONDITION",
      );
      const { entries } = await mustAnswer("ListSnapshots", context.controller.listSnapshots({ snapshotId }));
      must(
        entries.some(({ snapshot }) => snapshot?.snapshotId === snapshotId),
        `snapshot ${snapshotId} is gone after DeleteVolume of its source ended with ${ending.code}`,
      );
      must(
        ending.code === "OK" || (await isKnown(context, volumeId)),
        `volume ${volumeId} is gone although its deletion was refused`,
      );
    },
  },
];

const canGet = controllerCan("GET_SNAPSHOT");

/** The checks of GetSnapshot. */
export const getSnapshotChecks: readonly Check[] = [
  ...refusals(
    "GetSnapshot Errors",
    [canGet],
    [
      {
        id: "controller.get-snapshot.id-required",
        what: "GetSnapshot without a snapshot_id",
        codes: ["INVALID_ARGUMENT"],
        call: ({ controller }) => [() => controller.getSnapshot({})],
      },
      {
        id: "controller.get-snapshot.unknown",
        what: "GetSnapshot of a snapshot that does not exist",
        codes: ["NOT_FOUND"],
        call: (context) => [
          () => context.controller.getSnapshot({ snapshotId: context.unknownId("snapshot") }),
        ],
      },
    ],
  ),
  {
    id: "controller.get-snapshot.works",
    sentence: "GetSnapshot gives the snapshot that was made",
    spec: "GetSnapshot",
    needs: [...needs, canGet],
    after,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const { snapshotId } = await makeReadySnapshot(context, volumeId);
      const { snapshot } = await mustAnswer("GetSnapshot", context.controller.getSnapshot({ snapshotId }));
      must(
        snapshot?.snapshotId === snapshotId && snapshot.sourceVolumeId === volumeId,
        `asked for snapshot ${snapshotId} of ${volumeId}, got ${snapshot?.snapshotId ?? "(none)"} of ${snapshot?.sourceVolumeId ?? "(none)"}`,
      );
    },
  },
];
