/** ControllerExpandVolume and ControllerModifyVolume. */
import type { Check, Need } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { must, mustAnswer, mustEnd } from "../expect.ts";
import { capabilityOf, makeUsable, makeVolume } from "../fixtures.ts";
import { canRestart, controllerCan, nodeIdKnown, pluginCan } from "../needs.ts";
import { refusals } from "./refusals.ts";
import { sideBySide } from "./side-by-side.ts";

const spec = "ControllerExpandVolume";
const canExpand = controllerCan("EXPAND_VOLUME");
const canCreate = controllerCan("CREATE_DELETE_VOLUME");
const made = ["controller.create-volume.works"];
const after = [...made, "controller.expand-volume.works"];

function expand(context: CheckContext, volumeId: string, requiredBytes: bigint, limitBytes = 0n) {
  return context.controller.controllerExpandVolume({
    volumeId,
    capacityRange: { requiredBytes, limitBytes },
    volumeCapability: capabilityOf(context),
  });
}

/** The checks of ControllerExpandVolume. */
export const expandVolumeChecks: readonly Check[] = [
  {
    id: "controller.expand-volume.works",
    sentence: "ControllerExpandVolume gives a capacity of at least required_bytes",
    spec,
    needs: [canExpand, canCreate],
    after: made,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const { expandSizeBytes } = context.options;
      const { capacityBytes } = await mustAnswer(
        "ControllerExpandVolume",
        expand(context, volumeId, expandSizeBytes),
      );
      must(
        capacityBytes >= expandSizeBytes,
        `asked for ${expandSizeBytes} bytes, ControllerExpandVolume gave ${capacityBytes}`,
      );
    },
  },
  ...refusals(
    "ControllerExpandVolume Errors",
    [canExpand],
    [
      {
        id: "controller.expand-volume.id-required",
        what: "ControllerExpandVolume without a volume_id",
        codes: ["INVALID_ARGUMENT"],
        call: (context) => [() => expand(context, "", context.options.expandSizeBytes)],
      },
      {
        id: "controller.expand-volume.range-required",
        what: "ControllerExpandVolume without capacity_range",
        codes: ["INVALID_ARGUMENT"],
        needs: [canCreate],
        after: made,
        async call(context) {
          const { volumeId } = await makeVolume(context);
          return [() => context.controller.controllerExpandVolume({ volumeId })];
        },
      },
      {
        id: "controller.expand-volume.unknown",
        what: "ControllerExpandVolume of a volume that does not exist",
        codes: ["NOT_FOUND"],
        call: (context) => [
          () => expand(context, context.unknownId("volume"), context.options.expandSizeBytes),
        ],
      },
      {
        id: "controller.expand-volume.limit-below-required",
        what: "ControllerExpandVolume with limit_bytes below required_bytes",
        codes: ["INVALID_ARGUMENT", "OUT_OF_RANGE"],
        needs: [canCreate],
        after: made,
        async call(context) {
          const { volumeId } = await makeVolume(context);
          const { expandSizeBytes } = context.options;
          return [() => expand(context, volumeId, expandSizeBytes, expandSizeBytes - 1n)];
        },
      },
      {
        id: "controller.expand-volume.negative-size",
        what: "ControllerExpandVolume with a negative size",
        codes: ["INVALID_ARGUMENT", "OUT_OF_RANGE"],
        needs: [canCreate],
        after: made,
        async call(context) {
          const { volumeId } = await makeVolume(context);
          return [() => expand(context, volumeId, -1n), () => expand(context, volumeId, 0n, -1n)];
        },
      },
    ],
  ),
  {
    id: "controller.expand-volume.idempotent",
    sentence: "ControllerExpandVolume repeated is answered OK, with the same capacity",
    spec,
    needs: [canExpand, canCreate],
    after,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const { expandSizeBytes, repeats } = context.options;
      const sizes = new Set<bigint>();
      for (let i = 0; i < repeats; i++) {
        const what = i === 0 ? "ControllerExpandVolume" : "ControllerExpandVolume repeated";
        sizes.add((await mustAnswer(what, expand(context, volumeId, expandSizeBytes))).capacityBytes);
      }
      must(sizes.size === 1, `the same expansion gave capacities of ${[...sizes].join(", ")} bytes`);
    },
  },
  {
    id: "controller.expand-volume.already-larger",
    sentence:
      "ControllerExpandVolume to a size that the volume exceeds is answered OK and does not shrink it",
    spec,
    needs: [canExpand, canCreate],
    after,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const { expandSizeBytes, volumeSizeBytes } = context.options;
      const { capacityBytes } = await mustAnswer(
        "ControllerExpandVolume",
        expand(context, volumeId, expandSizeBytes),
      );
      const again = await mustAnswer(
        "ControllerExpandVolume to a size that the volume exceeds",
        expand(context, volumeId, volumeSizeBytes),
      );
      must(
        again.capacityBytes >= capacityBytes,
        `a volume of ${capacityBytes} bytes was said to have ${again.capacityBytes} after it was asked to be smaller`,
      );
    },
  },
  {
    id: "controller.expand-volume.huge-size",
    sentence:
      "a size that cannot be provided ends with OUT_OF_RANGE or RESOURCE_EXHAUSTED, and is not claimed",
    spec: "ControllerExpandVolume Errors",
    needs: [canExpand, canCreate],
    after,
    async run(context) {
      const requiredBytes = 2n ** 62n;
      const { volumeId } = await makeVolume(context);
      const ending = await mustEnd(
        `ControllerExpandVolume to ${requiredBytes} bytes`,
        expand(context, volumeId, requiredBytes),
        "OUT_OF_RANGE",
        "RESOURCE_EXHAUSTED",
        "OK",
      );
      if (ending.code !== "OK") return;
      const { capacityBytes } = ending.answer;
      must(capacityBytes >= requiredBytes, `asked for ${requiredBytes} bytes, got ${capacityBytes} with OK`);
    },
  },
  {
    id: "controller.expand-volume.shown",
    sentence: "the new size is shown by ControllerGetVolume",
    spec,
    needs: [canExpand, canCreate, controllerCan("GET_VOLUME")],
    after: [...after, "controller.get-volume.works"],
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const { expandSizeBytes } = context.options;
      await mustAnswer("ControllerExpandVolume", expand(context, volumeId, expandSizeBytes));
      const { volume } = await mustAnswer(
        "ControllerGetVolume",
        context.controller.controllerGetVolume({ volumeId }),
      );
      const shown = volume?.capacityBytes ?? 0n;
      // 0: the plugin does not say the size (CSI, Volume).
      must(
        shown === 0n || shown >= expandSizeBytes,
        `the volume was expanded to ${expandSizeBytes} bytes and is shown with ${shown}`,
      );
    },
  },
  {
    id: "controller.expand-volume.online",
    sentence: "a plugin with volume expansion ONLINE expands a volume that is published",
    spec,
    needs: [
      canExpand,
      canCreate,
      pluginCan("VOLUME_EXPANSION_ONLINE"),
      controllerCan("PUBLISH_UNPUBLISH_VOLUME"),
      nodeIdKnown,
    ],
    after: [...after, "controller.publish-volume.works"],
    async run(context) {
      const volume = await makeVolume(context);
      await makeUsable(context, volume);
      await mustAnswer(
        "ControllerExpandVolume of a published volume",
        expand(context, volume.volumeId, context.options.expandSizeBytes),
      );
    },
  },
  {
    id: "controller.expand-volume.offline-only",
    sentence: "a plugin that expands OFFLINE only refuses a published volume with FAILED_PRECONDITION",
    spec: "ControllerExpandVolume Errors",
    needs: [
      canExpand,
      canCreate,
      pluginCan("VOLUME_EXPANSION_OFFLINE"),
      ({ plugin }) =>
        plugin.has("VOLUME_EXPANSION_ONLINE")
          ? "for plugins without volume expansion ONLINE only"
          : undefined,
      controllerCan("PUBLISH_UNPUBLISH_VOLUME"),
      nodeIdKnown,
    ],
    after: [...after, "controller.publish-volume.works"],
    async run(context) {
      const volume = await makeVolume(context);
      await makeUsable(context, volume);
      await mustEnd(
        "ControllerExpandVolume of a published volume",
        expand(context, volume.volumeId, context.options.expandSizeBytes),
        "FAILED_PRECONDITION",
      );
    },
  },
  {
    id: "controller.expand-volume.parallel",
    sentence: "the same ControllerExpandVolume several times at once: each ends with OK or ABORTED",
    spec: "Concurrency",
    needs: [canExpand, canCreate],
    after: [...after, "controller.expand-volume.idempotent"],
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const { expandSizeBytes } = context.options;
      const answers = await sideBySide(context, "ControllerExpandVolume", ["OK", "ABORTED"], () =>
        expand(context, volumeId, expandSizeBytes),
      );
      for (const { capacityBytes } of answers) {
        must(capacityBytes >= expandSizeBytes, `asked for ${expandSizeBytes} bytes, got ${capacityBytes}`);
      }
    },
  },
  {
    id: "controller.expand-volume.after-crash",
    sentence: "ControllerExpandVolume repeated after a crash of the driver gives the same capacity",
    spec,
    needs: [canExpand, canCreate, canRestart],
    after: [...after, "controller.expand-volume.idempotent"],
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const { expandSizeBytes } = context.options;
      const first = await mustAnswer("ControllerExpandVolume", expand(context, volumeId, expandSizeBytes));
      await context.restartDriver();
      const again = await mustAnswer(
        "ControllerExpandVolume after a crash",
        expand(context, volumeId, expandSizeBytes),
      );
      must(
        again.capacityBytes === first.capacityBytes,
        `the capacity was ${first.capacityBytes} bytes, and ${again.capacityBytes} after a crash`,
      );
    },
  },
];

const canModify = controllerCan("MODIFY_VOLUME");
/** The options must name parameters that the plugin knows: which ones it accepts is the plugin's choice. */
const knowsParameters: Need = ({ options }) =>
  Object.keys(options.mutableParameters).length > 0
    ? undefined
    : "no mutable parameters are given (`mutableParameters`)";
const unknownParameter = { "longshore.dev/no-such-parameter": "1" };

/** The checks of ControllerModifyVolume. */
export const modifyVolumeChecks: readonly Check[] = [
  ...refusals(
    "ControllerModifyVolume Errors",
    [canModify],
    [
      {
        id: "controller.modify-volume.id-required",
        what: "ControllerModifyVolume without a volume_id",
        codes: ["INVALID_ARGUMENT"],
        call: ({ controller, options }) => [
          () => controller.controllerModifyVolume({ mutableParameters: { ...options.mutableParameters } }),
        ],
      },
      {
        id: "controller.modify-volume.unknown",
        what: "ControllerModifyVolume of a volume that does not exist",
        codes: ["NOT_FOUND"],
        needs: [knowsParameters],
        call: (context) => [
          () =>
            context.controller.controllerModifyVolume({
              volumeId: context.unknownId("volume"),
              mutableParameters: { ...context.options.mutableParameters },
            }),
        ],
      },
      {
        id: "controller.modify-volume.unknown-parameters",
        what: "ControllerModifyVolume with a parameter that the plugin does not know",
        codes: ["INVALID_ARGUMENT"],
        needs: [canCreate],
        after: made,
        async call(context) {
          const { volumeId } = await makeVolume(context);
          const mutableParameters = unknownParameter;
          return [() => context.controller.controllerModifyVolume({ volumeId, mutableParameters })];
        },
      },
    ],
  ),
  {
    id: "controller.modify-volume.idempotent",
    sentence: "ControllerModifyVolume with known parameters is answered OK, and repeated likewise",
    spec: "ControllerModifyVolume",
    needs: [canModify, canCreate, knowsParameters],
    after: made,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const mutableParameters = { ...context.options.mutableParameters };
      for (let i = 0; i < context.options.repeats; i++) {
        await mustAnswer(
          i === 0 ? "ControllerModifyVolume" : "ControllerModifyVolume repeated",
          context.controller.controllerModifyVolume({ volumeId, mutableParameters }),
        );
      }
    },
  },
];
