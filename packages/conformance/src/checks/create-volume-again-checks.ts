/** CreateVolume repeated, with a difference, side by side, and after a crash of the driver. */
import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { endingOf, must, mustAnswer, mustEnd } from "../expect.ts";
import { makeVolume, volumeOf, volumeRequest } from "../fixtures.ts";
import { canRestart, controllerCan } from "../needs.ts";
import { idsOfAllVolumes } from "./pages.ts";
import { sideBySide } from "./side-by-side.ts";

const needs = [controllerCan("CREATE_DELETE_VOLUME")];
const after = ["controller.create-volume.works"];
const idempotency = "CreateVolume";

/** Repeats until the call is no longer under way. */
async function settledVolume(context: CheckContext, request: ReturnType<typeof volumeRequest>) {
  return context.eventually("CreateVolume was answered", async () => {
    const ending = await mustEnd(
      "CreateVolume repeated",
      context.controller.createVolume(request),
      "OK",
      "ABORTED",
    );
    return ending.code === "OK" ? volumeOf(ending.answer) : undefined;
  });
}

/** The checks of CreateVolume made more than once. */
export const createVolumeAgainChecks: readonly Check[] = [
  {
    id: "controller.create-volume.idempotent",
    sentence: "CreateVolume repeated with the same arguments gives the same volume",
    spec: idempotency,
    needs,
    after,
    async run(context) {
      const request = volumeRequest(context);
      const first = volumeOf(await mustAnswer("CreateVolume", context.controller.createVolume(request)));
      for (let i = 1; i < context.options.repeats; i++) {
        const again = volumeOf(
          await mustAnswer("CreateVolume repeated", context.controller.createVolume(request)),
        );
        must(
          again.volumeId === first.volumeId,
          `CreateVolume repeated gave volume ${again.volumeId} instead of ${first.volumeId}`,
        );
        must(
          again.capacityBytes === first.capacityBytes,
          `CreateVolume repeated gave a size of ${again.capacityBytes} bytes instead of ${first.capacityBytes}`,
        );
      }
    },
  },
  {
    id: "controller.create-volume.same-context",
    sentence: "the volume_context of a volume does not change: CreateVolume repeated gives the same",
    spec: idempotency,
    needs,
    after: [...after, "controller.create-volume.idempotent"],
    async run(context) {
      const request = volumeRequest(context);
      const text = async () => {
        const volume = volumeOf(await mustAnswer("CreateVolume", context.controller.createVolume(request)));
        // The order of a map's keys is not part of the answer.
        return JSON.stringify(Object.entries(volume.volumeContext).sort());
      };
      const [first, again] = [await text(), await text()];
      must(first === again, `volume_context was ${first}, and ${again} when CreateVolume was repeated`);
    },
  },
  {
    id: "controller.create-volume.different-size",
    sentence:
      "CreateVolume with a name that is taken by a volume of an incompatible size ends with ALREADY_EXISTS",
    spec: "CreateVolume Errors",
    needs,
    after,
    async run(context) {
      const request = volumeRequest(context);
      const { capacityBytes } = volumeOf(
        await mustAnswer("CreateVolume", context.controller.createVolume(request)),
      );
      const { volumeSizeBytes } = context.options;
      // Counted from what was given, which may be rounded up; 0 where the driver does not say.
      const madeBytes = capacityBytes === 0n ? volumeSizeBytes : capacityBytes;
      const largerBytes = madeBytes + volumeSizeBytes;
      const capacityRange = { requiredBytes: largerBytes, limitBytes: largerBytes };
      await mustEnd(
        "CreateVolume with the same name and a larger size",
        context.controller.createVolume({ ...request, capacityRange }),
        "ALREADY_EXISTS",
      );
    },
  },
  {
    id: "controller.create-volume.different-source",
    sentence: "CreateVolume with a name that is taken by a volume of another source ends with ALREADY_EXISTS",
    spec: "CreateVolume Errors",
    needs: [...needs, controllerCan("CLONE_VOLUME")],
    after,
    async run(context) {
      const source = await makeVolume(context);
      const request = volumeRequest(context);
      await mustAnswer("CreateVolume", context.controller.createVolume(request));
      const volumeContentSource = {
        type: { case: "volume" as const, value: { volumeId: source.volumeId } },
      };
      await mustEnd(
        "CreateVolume with the name of an empty volume and a content source",
        context.controller.createVolume({ ...request, volumeContentSource }),
        "ALREADY_EXISTS",
      );
    },
  },
  {
    id: "controller.create-volume.different-names",
    sentence: "different names give different volumes",
    spec: idempotency,
    needs,
    after,
    async run(context) {
      const [first, second] = [await makeVolume(context), await makeVolume(context)];
      must(first.volumeId !== second.volumeId, `two names gave the same volume ${first.volumeId}`);
    },
  },
  {
    id: "controller.create-volume.name-again",
    sentence: "the name of a volume that is deleted may be used again, also for another size",
    spec: idempotency,
    needs,
    after: [...after, "controller.delete-volume.works"],
    async run(context) {
      const request = volumeRequest(context);
      const { volumeId } = volumeOf(
        await mustAnswer("CreateVolume", context.controller.createVolume(request)),
      );
      await mustAnswer("DeleteVolume", context.controller.deleteVolume({ volumeId }));
      const capacityRange = { requiredBytes: context.options.volumeSizeBytes * 2n };
      volumeOf(
        await mustAnswer(
          "CreateVolume with the name of a deleted volume",
          context.controller.createVolume({ ...request, capacityRange }),
        ),
      );
    },
  },
  {
    id: "controller.create-volume.parallel-same-name",
    sentence: "the same CreateVolume several times at once makes one volume; a call may end with ABORTED",
    spec: "Concurrency",
    needs,
    after: [...after, "controller.create-volume.idempotent"],
    async run(context) {
      const request = volumeRequest(context);
      const answers = await sideBySide(context, "CreateVolume", ["OK", "ABORTED"], () =>
        context.controller.createVolume(request),
      );
      const settled = await settledVolume(context, request);
      const ids = new Set([settled.volumeId, ...answers.map((answer) => volumeOf(answer).volumeId)]);
      must(ids.size === 1, `one name gave the volumes ${[...ids].join(", ")}`);
    },
  },
  {
    id: "controller.create-volume.parallel-one-left",
    sentence: "the same CreateVolume several times at once leaves one volume behind, not several",
    spec: "Concurrency",
    needs: [...needs, controllerCan("LIST_VOLUMES")],
    after: [...after, "controller.list-volumes.works"],
    async run(context) {
      const before = await idsOfAllVolumes(context);
      const request = volumeRequest(context);
      await sideBySide(context, "CreateVolume", ["OK", "ABORTED"], () =>
        context.controller.createVolume(request),
      );
      const { volumeId } = await settledVolume(context, request);
      // Someone else may be making volumes: only those count that come with ours and go with it.
      const fresh = (await idsOfAllVolumes(context)).filter((id) => !before.includes(id));
      await mustAnswer("DeleteVolume", context.controller.deleteVolume({ volumeId }));
      const left = (await idsOfAllVolumes(context)).filter((id) => fresh.includes(id));
      must(left.length === 0, `beside volume ${volumeId} there came to be ${left.join(", ")}, which stays`);
    },
  },
  {
    id: "controller.create-volume.parallel-different-names",
    sentence: "several volumes are made at once, each as if it were alone",
    spec: "Concurrency",
    needs,
    after,
    async run(context) {
      const answers = await sideBySide(context, "CreateVolume of different volumes", ["OK"], () =>
        context.controller.createVolume(volumeRequest(context)),
      );
      const ids = new Set(answers.map((answer) => volumeOf(answer).volumeId));
      must(ids.size === answers.length, `${answers.length} names gave ${ids.size} volumes`);
    },
  },
  {
    id: "controller.create-volume.after-crash",
    sentence: "CreateVolume repeated after a crash of the driver gives the same volume",
    spec: idempotency,
    needs: [...needs, canRestart],
    after: [...after, "controller.create-volume.idempotent"],
    async run(context) {
      const request = volumeRequest(context);
      const first = volumeOf(await mustAnswer("CreateVolume", context.controller.createVolume(request)));
      await context.restartDriver();
      const again = volumeOf(
        await mustAnswer("CreateVolume after a crash", context.controller.createVolume(request)),
      );
      must(
        again.volumeId === first.volumeId,
        `after a crash CreateVolume gave volume ${again.volumeId} instead of ${first.volumeId}`,
      );
    },
  },
  {
    id: "controller.create-volume.crash-under-way",
    sentence: "CreateVolume whose driver crashes under way is brought to its end by repeating it",
    spec: "Timeouts",
    needs: [...needs, canRestart],
    after: [...after, "controller.create-volume.idempotent"],
    async run(context) {
      const request = volumeRequest(context);
      // Not awaited, so that the crash comes while it is under way; how it ends is open.
      const underWay = context.controller.createVolume(request).then(volumeOf, () => undefined);
      await context.restartDriver();
      const first = await underWay;
      const settled = await settledVolume(context, request);
      must(
        first === undefined || first.volumeId === settled.volumeId,
        `CreateVolume gave volume ${first?.volumeId}, and ${settled.volumeId} after the crash`,
      );
      const ending = await endingOf(context.controller.createVolume(request));
      must(
        ending.code === "OK" && volumeOf(ending.answer).volumeId === settled.volumeId,
        "CreateVolume repeated after a crash does not give the same volume each time",
      );
    },
  },
];
