/** ListVolumes and ControllerGetVolume. */
import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { must, mustAnswer } from "../expect.ts";
import { makeUsableVolume, makeVolume } from "../fixtures.ts";
import { controllerCan, nodeIdKnown } from "../needs.ts";
import { idsOfAllVolumes } from "./pages.ts";
import { refusals } from "./refusals.ts";

const spec = "ListVolumes";
const canList = controllerCan("LIST_VOLUMES");
const canCreate = controllerCan("CREATE_DELETE_VOLUME");
const made = ["controller.create-volume.works"];
const after = [...made, "controller.list-volumes.works"];
const canPublish = [controllerCan("PUBLISH_UNPUBLISH_VOLUME"), nodeIdKnown];
const reportsNodes = controllerCan("LIST_VOLUMES_PUBLISHED_NODES");

/** The entry of a volume in the whole list. */
async function entryOf(context: CheckContext, volumeId: string) {
  let startingToken = "";
  do {
    const page = await mustAnswer("ListVolumes", context.controller.listVolumes({ startingToken }));
    const entry = page.entries.find(({ volume }) => volume?.volumeId === volumeId);
    if (entry !== undefined) return entry;
    startingToken = page.nextToken;
  } while (startingToken !== "");
  return undefined;
}

/** The checks of ListVolumes. */
export const listVolumesChecks: readonly Check[] = [
  {
    id: "controller.list-volumes.works",
    sentence: "ListVolumes without arguments lists volumes with their ids",
    spec,
    needs: [canList],
    async run(context) {
      const ids = await idsOfAllVolumes(context);
      must(!ids.includes(""), "ListVolumes gave an entry without a volume_id");
      must(new Set(ids).size === ids.length, "ListVolumes gave a volume twice");
    },
  },
  {
    id: "controller.list-volumes.shows-created",
    sentence: "a volume that was made is listed, with its size",
    spec,
    needs: [canList, canCreate],
    after,
    async run(context) {
      const { volumeId, capacityBytes } = await makeVolume(context);
      const entry = await entryOf(context, volumeId);
      must(entry !== undefined, `volume ${volumeId} was made and is not listed`);
      const listed = entry.volume?.capacityBytes ?? 0n;
      // 0: the plugin does not say the size (CSI, Volume).
      must(
        listed === 0n || capacityBytes === 0n || listed === capacityBytes,
        `volume ${volumeId} was made with ${capacityBytes} bytes and is listed with ${listed}`,
      );
    },
  },
  {
    id: "controller.list-volumes.hides-deleted",
    sentence: "a volume that was deleted is not listed",
    spec,
    needs: [canList, canCreate],
    after: [...after, "controller.delete-volume.works"],
    async run(context) {
      const { volumeId } = await makeVolume(context);
      await mustAnswer("DeleteVolume", context.controller.deleteVolume({ volumeId }));
      must((await entryOf(context, volumeId)) === undefined, `the deleted volume ${volumeId} is listed`);
    },
  },
  {
    id: "controller.list-volumes.paging",
    sentence: "pages of max_entries have no more than that, and together hold every volume once",
    spec,
    needs: [canList, canCreate],
    after,
    async run(context) {
      const own: string[] = [];
      for (let i = 0; i < 3; i++) own.push((await makeVolume(context)).volumeId);
      for (const maxEntries of [1, 2]) {
        const ids = await idsOfAllVolumes(context, maxEntries);
        // Volumes of others may come and go between two pages: CSI promises no consistent view.
        for (const id of own) {
          const times = ids.filter((other) => other === id).length;
          must(times === 1, `volume ${id} is ${times} times on the pages of ${maxEntries}`);
        }
      }
    },
  },
  {
    id: "controller.list-volumes.paging-while-deleting",
    sentence: "a page whose first volume goes away hides none of the others, or ends with ABORTED",
    spec,
    needs: [canList, canCreate],
    after: [...after, "controller.list-volumes.paging", "controller.delete-volume.works"],
    async run(context) {
      const own: string[] = [];
      for (let i = 0; i < 4; i++) own.push((await makeVolume(context)).volumeId);
      const seen: string[] = [];
      let startingToken = "";
      let deleted = "";
      do {
        const call = context.controller.listVolumes({ maxEntries: 1, startingToken });
        const page = await call.catch((error: { readonly code?: string }) => {
          if (error.code === "ABORTED") return undefined; // Start over: the plugin may ask for this.
          throw error;
        });
        if (page === undefined) return;
        const ids = page.entries.map(({ volume }) => volume?.volumeId ?? "");
        seen.push(...ids);
        // The volume of the page just read is deleted: a token that counts positions then passes over the next one.
        const first = ids.find((id) => own.includes(id));
        if (deleted === "" && first !== undefined) {
          deleted = first;
          await mustAnswer("DeleteVolume", context.controller.deleteVolume({ volumeId: first }));
        }
        startingToken = page.nextToken;
      } while (startingToken !== "");
      const hidden = own.filter((id) => id !== deleted && !seen.includes(id));
      must(
        hidden.length === 0,
        `while ${deleted} was deleted, the pages did not show ${hidden.join(", ")}, which was there all the time`,
      );
    },
  },
  ...refusals(
    "ListVolumes Errors",
    [canList],
    [
      {
        id: "controller.list-volumes.invalid-token",
        what: "ListVolumes with a starting_token that was never given",
        codes: ["ABORTED"],
        call: ({ controller }) => [
          () => controller.listVolumes({ startingToken: "longshore-no-such-token" }),
        ],
      },
      {
        id: "controller.list-volumes.negative-max-entries",
        what: "ListVolumes with negative max_entries",
        codes: ["INVALID_ARGUMENT"],
        call: ({ controller }) => [() => controller.listVolumes({ maxEntries: -1 })],
      },
    ],
  ),
  {
    id: "controller.list-volumes.published-nodes",
    sentence:
      "the nodes that a volume is published to are listed with it, and no longer once it is unpublished",
    spec,
    needs: [canList, canCreate, reportsNodes, ...canPublish],
    after: [...after, "controller.publish-volume.works"],
    async run(context) {
      const nodeId = context.target.nodeInfo?.nodeId ?? "";
      const { volumeId } = await makeUsableVolume(context);
      const published = (await entryOf(context, volumeId))?.status?.publishedNodeIds ?? [];
      must(
        published.includes(nodeId),
        `volume ${volumeId} is published to ${nodeId}, and listed with ${published.join(", ") || "no node"}`,
      );
      await mustAnswer(
        "ControllerUnpublishVolume",
        context.controller.controllerUnpublishVolume({ volumeId, nodeId }),
      );
      const left = (await entryOf(context, volumeId))?.status?.publishedNodeIds ?? [];
      must(!left.includes(nodeId), `volume ${volumeId} is unpublished and still listed with ${nodeId}`);
    },
  },
  {
    id: "controller.list-volumes.condition",
    sentence: "a plugin with VOLUME_CONDITION lists volumes with their condition, and a message with it",
    spec,
    needs: [canList, canCreate, controllerCan("VOLUME_CONDITION")],
    after,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const condition = (await entryOf(context, volumeId))?.status?.volumeCondition;
      must(condition !== undefined, `volume ${volumeId} is listed without a volume_condition`);
      must(condition.message !== "", "volume_condition has no message; it is REQUIRED");
    },
  },
];

/** The checks of ControllerGetVolume. */
export const getVolumeChecks: readonly Check[] = [
  ...refusals(
    "ControllerGetVolume Errors",
    [controllerCan("GET_VOLUME")],
    [
      {
        id: "controller.get-volume.id-required",
        what: "ControllerGetVolume without a volume_id",
        codes: ["INVALID_ARGUMENT"],
        call: ({ controller }) => [() => controller.controllerGetVolume({})],
      },
      {
        id: "controller.get-volume.unknown",
        what: "ControllerGetVolume of a volume that does not exist",
        codes: ["NOT_FOUND"],
        call: (context) => [
          () => context.controller.controllerGetVolume({ volumeId: context.unknownId("volume") }),
        ],
      },
    ],
  ),
  {
    id: "controller.get-volume.works",
    sentence: "ControllerGetVolume gives the volume that was made, with its status",
    spec: "ControllerGetVolume",
    needs: [controllerCan("GET_VOLUME"), canCreate],
    after: made,
    async run(context) {
      const { volumeId, capacityBytes } = await makeVolume(context);
      const { volume, status } = await mustAnswer(
        "ControllerGetVolume",
        context.controller.controllerGetVolume({ volumeId }),
      );
      must(
        volume?.volumeId === volumeId,
        `asked for ${volumeId}, got volume ${volume?.volumeId ?? "(none)"}`,
      );
      must(status !== undefined, "ControllerGetVolume was answered without a status; it is REQUIRED");
      must(
        volume.capacityBytes === 0n || capacityBytes === 0n || volume.capacityBytes === capacityBytes,
        `the volume was made with ${capacityBytes} bytes and has ${volume.capacityBytes}`,
      );
    },
  },
  {
    id: "controller.get-volume.published-nodes",
    sentence: "the nodes that a volume is published to are given with it",
    spec: "ControllerGetVolume",
    needs: [controllerCan("GET_VOLUME"), canCreate, reportsNodes, ...canPublish],
    after: [...made, "controller.get-volume.works", "controller.publish-volume.works"],
    async run(context) {
      const nodeId = context.target.nodeInfo?.nodeId ?? "";
      const { volumeId } = await makeUsableVolume(context);
      const { status } = await mustAnswer(
        "ControllerGetVolume",
        context.controller.controllerGetVolume({ volumeId }),
      );
      must(
        status?.publishedNodeIds.includes(nodeId) === true,
        `volume ${volumeId} is published to ${nodeId}, which ControllerGetVolume does not report`,
      );
    },
  },
  {
    id: "controller.get-volume.condition",
    sentence: "a plugin with VOLUME_CONDITION gives the condition of the volume, and a message with it",
    spec: "ControllerGetVolume",
    needs: [controllerCan("GET_VOLUME"), canCreate, controllerCan("VOLUME_CONDITION")],
    after: [...made, "controller.get-volume.works"],
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const { status } = await mustAnswer(
        "ControllerGetVolume",
        context.controller.controllerGetVolume({ volumeId }),
      );
      const condition = status?.volumeCondition;
      must(condition !== undefined, "status has no volume_condition");
      must(condition.message !== "", "volume_condition has no message; it is REQUIRED");
    },
  },
];
