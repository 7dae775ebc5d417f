/** DeleteVolume. */
import type { Check } from "../check.ts";
import { must, mustAnswer, mustEnd } from "../expect.ts";
import { isKnown, makeUsableVolume, makeVolume } from "../fixtures.ts";
import { canRestart, controllerCan, hasNode, nodeIdKnown } from "../needs.ts";
import { refusals } from "./refusals.ts";
import { sideBySide } from "./side-by-side.ts";

const spec = "DeleteVolume";
const needs = [controllerCan("CREATE_DELETE_VOLUME")];
const after = ["controller.create-volume.works", "controller.delete-volume.works"];

/** The checks of DeleteVolume. */
export const deleteVolumeChecks: readonly Check[] = [
  {
    id: "controller.delete-volume.works",
    sentence: "DeleteVolume of a volume that nothing uses is answered OK",
    spec,
    needs,
    after: ["controller.create-volume.works"],
    async run(context) {
      const { volumeId } = await makeVolume(context);
      await mustAnswer("DeleteVolume", context.controller.deleteVolume({ volumeId }));
    },
  },
  ...refusals("DeleteVolume Errors", needs, [
    {
      id: "controller.delete-volume.id-required",
      what: "DeleteVolume without a volume_id",
      codes: ["INVALID_ARGUMENT"],
      call: ({ controller }) => [() => controller.deleteVolume({})],
    },
  ]),
  {
    id: "controller.delete-volume.unknown",
    sentence: "DeleteVolume of a volume that does not exist is answered OK",
    spec,
    needs,
    async run(context) {
      const volumeId = context.unknownId("volume");
      await mustAnswer("DeleteVolume of an unknown volume", context.controller.deleteVolume({ volumeId }));
    },
  },
  {
    id: "controller.delete-volume.idempotent",
    sentence: "DeleteVolume repeated is answered OK",
    spec,
    needs,
    after,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      for (let i = 0; i < context.options.repeats; i++) {
        await mustAnswer(
          i === 0 ? "DeleteVolume" : "DeleteVolume repeated",
          context.controller.deleteVolume({ volumeId }),
        );
      }
    },
  },
  {
    id: "controller.delete-volume.gone",
    sentence: "a volume that DeleteVolume was answered OK for is not there any more",
    spec,
    needs,
    // `isKnown` relies on NOT_FOUND for what does not exist.
    after: [...after, "controller.validate-volume-capabilities.unknown"],
    async run(context) {
      const { volumeId } = await makeVolume(context);
      await mustAnswer("DeleteVolume", context.controller.deleteVolume({ volumeId }));
      must(
        !(await isKnown(context, volumeId)),
        `ValidateVolumeCapabilities still knows volume ${volumeId} after it was deleted`,
      );
    },
  },
  {
    id: "controller.delete-volume.other-stays",
    sentence: "an id that looks like the path of another volume's deletes nothing",
    spec,
    needs,
    after,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      // A plugin that makes a path of the id would resolve these to the volume's own.
      for (const other of [
        `./${volumeId}`,
        `${volumeId}/`,
        `x/../${volumeId}`,
        `${volumeId}/../${volumeId}`,
      ]) {
        await mustEnd(
          `DeleteVolume of "${other}"`,
          context.controller.deleteVolume({ volumeId: other }),
          "OK",
          "INVALID_ARGUMENT",
        );
      }
      must(
        await isKnown(context, volumeId),
        `volume ${volumeId} is gone after ids like ./${volumeId} were deleted`,
      );
    },
  },
  {
    id: "controller.delete-volume.in-use",
    sentence:
      "DeleteVolume of a volume that is published to a node ends with FAILED_PRECONDITION and deletes nothing",
    spec: "DeleteVolume Errors",
    needs: [...needs, controllerCan("PUBLISH_UNPUBLISH_VOLUME"), hasNode, nodeIdKnown],
    after: [...after, "controller.publish-volume.works"],
    async run(context) {
      const { volumeId } = await makeUsableVolume(context);
      await mustEnd(
        "DeleteVolume of a published volume",
        context.controller.deleteVolume({ volumeId }),
        "FAILED_PRECONDITION",
      );
      must(await isKnown(context, volumeId), `volume ${volumeId} is gone although its deletion was refused`);
    },
  },
  {
    id: "controller.delete-volume.parallel",
    sentence:
      "the same DeleteVolume several times at once: each ends with OK or ABORTED, and the volume is gone",
    spec: "Concurrency",
    needs,
    after: [...after, "controller.delete-volume.gone"],
    async run(context) {
      const { volumeId } = await makeVolume(context);
      await sideBySide(context, "DeleteVolume", ["OK", "ABORTED"], () =>
        context.controller.deleteVolume({ volumeId }),
      );
      await mustAnswer("DeleteVolume repeated", context.controller.deleteVolume({ volumeId }));
      must(!(await isKnown(context, volumeId)), `volume ${volumeId} is there after it was deleted`);
    },
  },
  {
    id: "controller.delete-volume.after-crash",
    sentence: "DeleteVolume works after a crash of the driver, and repeated after another",
    spec,
    needs: [...needs, canRestart],
    after,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      await context.restartDriver();
      must(await isKnown(context, volumeId), `volume ${volumeId} is unknown after a crash of the driver`);
      await mustAnswer("DeleteVolume after a crash", context.controller.deleteVolume({ volumeId }));
      await context.restartDriver();
      await mustAnswer("DeleteVolume repeated after a crash", context.controller.deleteVolume({ volumeId }));
      must(!(await isKnown(context, volumeId)), `the deleted volume ${volumeId} is back after a crash`);
    },
  },
];
