/** ValidateVolumeCapabilities. */
import { VolumeCapability_AccessMode_Mode as Mode } from "@longshore/csi";
import type { Check } from "../check.ts";
import { must, mustAnswer, mustEnd } from "../expect.ts";
import { capabilityOf, makeVolume } from "../fixtures.ts";
import { controllerCan, hasController } from "../needs.ts";
import { refusals } from "./refusals.ts";

const spec = "ValidateVolumeCapabilities";
const after = ["controller.create-volume.works"];

/** The checks of ValidateVolumeCapabilities. */
export const validateChecks: readonly Check[] = [
  ...refusals(
    "ValidateVolumeCapabilities Errors",
    [hasController],
    [
      {
        id: "controller.validate-volume-capabilities.id-required",
        what: "ValidateVolumeCapabilities without a volume_id",
        codes: ["INVALID_ARGUMENT"],
        call: (context) => [
          () =>
            context.controller.validateVolumeCapabilities({ volumeCapabilities: [capabilityOf(context)] }),
        ],
      },
      {
        id: "controller.validate-volume-capabilities.capabilities-required",
        what: "ValidateVolumeCapabilities without volume_capabilities",
        codes: ["INVALID_ARGUMENT"],
        needs: [controllerCan("CREATE_DELETE_VOLUME")],
        after,
        async call(context) {
          const { volumeId } = await makeVolume(context);
          return [() => context.controller.validateVolumeCapabilities({ volumeId })];
        },
      },
      {
        id: "controller.validate-volume-capabilities.unknown",
        what: "ValidateVolumeCapabilities of a volume that does not exist",
        codes: ["NOT_FOUND"],
        call: (context) => [
          () =>
            context.controller.validateVolumeCapabilities({
              volumeId: context.unknownId("volume"),
              volumeCapabilities: [capabilityOf(context)],
            }),
        ],
      },
    ],
  ),
  {
    id: "controller.validate-volume-capabilities.confirms",
    sentence: "the capabilities that a volume was made with are confirmed, and returned",
    spec,
    needs: [controllerCan("CREATE_DELETE_VOLUME")],
    after,
    async run(context) {
      const { volumeId, volumeContext } = await makeVolume(context);
      const { parameters } = context.options;
      const { confirmed, message } = await mustAnswer(
        "ValidateVolumeCapabilities",
        context.controller.validateVolumeCapabilities({
          volumeId,
          volumeContext,
          volumeCapabilities: [capabilityOf(context)],
          parameters: { ...parameters },
        }),
      );
      must(
        confirmed !== undefined,
        `the capabilities that the volume was made with are not confirmed${message === "" ? "" : ` (${message})`}`,
      );
      must(
        confirmed.volumeCapabilities.length > 0,
        "confirmed holds no volume_capabilities; they are REQUIRED in it",
      );
    },
  },
  {
    id: "controller.validate-volume-capabilities.not-confirmed",
    sentence: "a capability that no volume can have is not confirmed",
    spec,
    needs: [controllerCan("CREATE_DELETE_VOLUME")],
    after,
    async run(context) {
      const { volumeId, volumeContext } = await makeVolume(context);
      const { accessType } = capabilityOf(context);
      const impossible = [{ accessType, accessMode: { mode: Mode.UNKNOWN } }, { accessType }];
      for (const capability of impossible) {
        const ending = await mustEnd(
          "ValidateVolumeCapabilities of a capability without an access mode",
          context.controller.validateVolumeCapabilities({
            volumeId,
            volumeContext,
            // Next to a possible one: CSI confirms only when all of them are supported.
            volumeCapabilities: [capabilityOf(context), capability as ReturnType<typeof capabilityOf>],
          }),
          "OK",
          "INVALID_ARGUMENT",
        );
        must(
          ending.code !== "OK" || ending.answer.confirmed === undefined,
          "a capability without an access mode was confirmed",
        );
      }
    },
  },
];
