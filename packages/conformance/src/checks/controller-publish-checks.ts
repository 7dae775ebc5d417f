/** ControllerPublishVolume and ControllerUnpublishVolume. */
import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { must, mustAnswer, mustEnd } from "../expect.ts";
import {
  capabilityOf,
  makeUsable,
  makeUsableVolume,
  makeVolume,
  publishRequest,
  volumeOf,
  volumeRequest,
} from "../fixtures.ts";
import { canRestart, controllerCan, nodeIdKnown } from "../needs.ts";
import { refusals } from "./refusals.ts";
import { sideBySide } from "./side-by-side.ts";

const spec = "ControllerPublishVolume";
const canPublish = controllerCan("PUBLISH_UNPUBLISH_VOLUME");
const needs = [canPublish, controllerCan("CREATE_DELETE_VOLUME"), nodeIdKnown];
const made = ["controller.create-volume.works"];
const after = [...made, "controller.publish-volume.works"];

const publish = (
  context: CheckContext,
  over: Parameters<typeof context.controller.controllerPublishVolume>[0],
) => context.controller.controllerPublishVolume(over);
const nodeIdOf = (context: CheckContext) => context.target.nodeInfo?.nodeId ?? "";

async function unpublish(context: CheckContext, volumeId: string, what = "ControllerUnpublishVolume") {
  await mustAnswer(
    what,
    context.controller.controllerUnpublishVolume({ volumeId, nodeId: nodeIdOf(context) }),
  );
}

/** The order of keys means nothing. */
const textOf = (map: Readonly<Record<string, string>>) => JSON.stringify(Object.entries(map).sort());

/** The checks of ControllerPublishVolume. */
export const controllerPublishChecks: readonly Check[] = [
  {
    id: "controller.publish-volume.works",
    sentence: "ControllerPublishVolume of a new volume to this node is answered OK",
    spec,
    needs,
    after: made,
    async run(context) {
      await makeUsableVolume(context);
    },
  },
  ...refusals(
    "ControllerPublishVolume Errors",
    [canPublish],
    [
      {
        id: "controller.publish-volume.id-required",
        what: "ControllerPublishVolume without a volume_id",
        codes: ["INVALID_ARGUMENT"],
        call: (context) => [
          // Any node: its own id may be unknown, and the volume_id alone is to be missing.
          () =>
            publish(context, publishRequest(context, { volumeId: "", volumeContext: {} }, { nodeId: "n" })),
        ],
      },
      {
        id: "controller.publish-volume.node-id-required",
        what: "ControllerPublishVolume without a node_id",
        codes: ["INVALID_ARGUMENT"],
        needs,
        after: made,
        async call(context) {
          const volume = await makeVolume(context);
          return [() => publish(context, publishRequest(context, volume, { nodeId: "" }))];
        },
      },
      {
        id: "controller.publish-volume.capability-required",
        what: "ControllerPublishVolume without a volume_capability",
        codes: ["INVALID_ARGUMENT"],
        needs,
        after: made,
        async call(context) {
          const { volumeId, volumeContext } = await makeVolume(context);
          return [() => publish(context, { volumeId, volumeContext, nodeId: nodeIdOf(context) })];
        },
      },
      {
        id: "controller.publish-volume.unknown-volume",
        what: "ControllerPublishVolume of a volume that does not exist",
        codes: ["NOT_FOUND"],
        needs: [nodeIdKnown],
        call: (context) => [
          () =>
            publish(
              context,
              publishRequest(context, { volumeId: context.unknownId("volume"), volumeContext: {} }),
            ),
        ],
      },
      {
        id: "controller.publish-volume.unknown-node",
        what: "ControllerPublishVolume to a node that does not exist",
        codes: ["NOT_FOUND"],
        needs,
        after: made,
        async call(context) {
          const volume = await makeVolume(context);
          return [
            () => publish(context, publishRequest(context, volume, { nodeId: context.unknownId("node") })),
          ];
        },
      },
    ],
  ),
  {
    id: "controller.publish-volume.idempotent",
    sentence: "ControllerPublishVolume repeated is answered OK, with the same publish_context",
    spec,
    needs,
    after,
    async run(context) {
      const volume = await makeVolume(context);
      const { publishContext } = await makeUsable(context, volume);
      for (let i = 1; i < context.options.repeats; i++) {
        const again = await mustAnswer(
          "ControllerPublishVolume repeated",
          publish(context, publishRequest(context, volume)),
        );
        must(
          textOf(again.publishContext) === textOf(publishContext),
          "ControllerPublishVolume repeated gave another publish_context",
        );
      }
    },
  },
  {
    id: "controller.publish-volume.different-readonly",
    sentence: "ControllerPublishVolume repeated with another readonly ends with ALREADY_EXISTS",
    spec: "ControllerPublishVolume Errors",
    needs: [...needs, controllerCan("PUBLISH_READONLY")],
    after,
    async run(context) {
      const volume = await makeVolume(context);
      await makeUsable(context, volume);
      await mustEnd(
        "ControllerPublishVolume of a volume that is published writable, now with readonly,",
        publish(context, publishRequest(context, volume, { readonly: true })),
        "ALREADY_EXISTS",
      );
    },
  },
  {
    id: "controller.publish-volume.readonly",
    sentence: "a plugin with PUBLISH_READONLY publishes a volume with readonly set",
    spec,
    needs: [...needs, controllerCan("PUBLISH_READONLY")],
    after,
    async run(context) {
      const volume = await makeVolume(context);
      await mustAnswer(
        "ControllerPublishVolume with readonly",
        publish(context, publishRequest(context, volume, { readonly: true })),
      );
    },
  },
  {
    id: "controller.publish-volume.second-node",
    sentence: "a volume for a single node that is published to one ends with FAILED_PRECONDITION on another",
    spec: "ControllerPublishVolume Errors",
    needs: [
      ...needs,
      ({ options }) =>
        options.secondNodeId === undefined ? "no second node is known: give `secondNodeId`" : undefined,
    ],
    after,
    async run(context) {
      const nodeId = context.options.secondNodeId ?? "";
      const volume = await makeVolume(context);
      await makeUsable(context, volume);
      await mustEnd(
        "ControllerPublishVolume to a second node with SINGLE_NODE_WRITER",
        publish(context, publishRequest(context, volume, { nodeId })),
        "FAILED_PRECONDITION",
      );
      await unpublish(context, volume.volumeId);
      await mustAnswer(
        "ControllerPublishVolume to a second node after the volume was unpublished from the first",
        publish(context, publishRequest(context, volume, { nodeId })),
      );
    },
  },
  {
    id: "controller.publish-volume.node-full",
    sentence: "one volume more than max_volumes_per_node ends with RESOURCE_EXHAUSTED",
    spec: "ControllerPublishVolume Errors",
    needs: [
      ...needs,
      ({ options }) =>
        options.fillNode === true ? undefined : "filling the node is not asked for: give `fillNode`",
      ({ nodeInfo }) =>
        (nodeInfo?.maxVolumesPerNode ?? 0n) > 0n ? undefined : "NodeGetInfo gives no max_volumes_per_node",
    ],
    after,
    async run(context) {
      const most = Number(context.target.nodeInfo?.maxVolumesPerNode ?? 0n);
      // The node may hold volumes of others, so that it may be full before.
      for (let i = 0; i <= most; i++) {
        const volume = await makeVolume(context);
        const ending = await mustEnd(
          `ControllerPublishVolume of volume ${i + 1} to a node that takes ${most}`,
          publish(context, publishRequest(context, volume)),
          ...(i < most ? (["OK", "RESOURCE_EXHAUSTED"] as const) : (["RESOURCE_EXHAUSTED"] as const)),
        );
        if (ending.code !== "OK") return;
      }
    },
  },
  {
    id: "controller.publish-volume.parallel-same-volume",
    sentence: "the same ControllerPublishVolume several times at once: each ends with OK or ABORTED, alike",
    spec: "Concurrency",
    needs,
    after: [...after, "controller.publish-volume.idempotent"],
    async run(context) {
      const volume = await makeVolume(context);
      const answers = await sideBySide(context, "ControllerPublishVolume", ["OK", "ABORTED"], () =>
        publish(context, publishRequest(context, volume)),
      );
      const settled = await context.eventually("ControllerPublishVolume was answered", async () => {
        const call = publish(context, publishRequest(context, volume));
        const ending = await mustEnd("ControllerPublishVolume repeated", call, "OK", "ABORTED");
        return ending.code === "OK" ? ending.answer : undefined;
      });
      const contexts = new Set([...answers, settled].map(({ publishContext }) => textOf(publishContext)));
      must(contexts.size === 1, "calls at once got different publish_contexts");
    },
  },
  {
    id: "controller.publish-volume.parallel-different-volumes",
    sentence: "several volumes are published at once, each as if it were alone",
    spec: "Concurrency",
    needs,
    after,
    async run(context) {
      const volumes: Awaited<ReturnType<typeof makeVolume>>[] = [];
      // Made one after the other: only publishing is looked at here.
      for (let i = 0; i < context.options.parallel; i++) volumes.push(await makeVolume(context));
      await sideBySide(context, "ControllerPublishVolume of different volumes", ["OK"], (index) =>
        publish(context, publishRequest(context, volumes[index] ?? { volumeId: "", volumeContext: {} })),
      );
    },
  },
  {
    id: "controller.publish-volume.after-crash",
    sentence:
      "a published volume stays published over a crash: the call repeated gives the same publish_context",
    spec,
    needs: [...needs, canRestart],
    after: [...after, "controller.publish-volume.idempotent"],
    async run(context) {
      const volume = await makeVolume(context);
      const { publishContext } = await makeUsable(context, volume);
      await context.restartDriver();
      const again = await mustAnswer(
        "ControllerPublishVolume repeated after a crash",
        publish(context, publishRequest(context, volume)),
      );
      must(
        textOf(again.publishContext) === textOf(publishContext),
        "after a crash ControllerPublishVolume gave another publish_context",
      );
    },
  },
];

/** The checks of ControllerUnpublishVolume. */
export const controllerUnpublishChecks: readonly Check[] = [
  ...refusals(
    "ControllerUnpublishVolume Errors",
    [canPublish],
    [
      {
        id: "controller.unpublish-volume.id-required",
        what: "ControllerUnpublishVolume without a volume_id",
        codes: ["INVALID_ARGUMENT"],
        call: ({ controller }) => [() => controller.controllerUnpublishVolume({ nodeId: "n" })],
      },
      {
        id: "controller.unpublish-volume.unknown-volume",
        what: "ControllerUnpublishVolume of a volume that does not exist",
        // CSI: OK where the volume can be assumed to be unpublished, else NOT_FOUND.
        codes: ["OK", "NOT_FOUND"],
        needs: [nodeIdKnown],
        call: (context) => [
          () =>
            context.controller.controllerUnpublishVolume({
              volumeId: context.unknownId("volume"),
              nodeId: nodeIdOf(context),
            }),
        ],
      },
      {
        id: "controller.unpublish-volume.unknown-node",
        what: "ControllerUnpublishVolume from a node that does not exist",
        codes: ["OK", "NOT_FOUND"],
        needs,
        after: made,
        async call(context) {
          const { volumeId } = await makeVolume(context);
          const nodeId = context.unknownId("node");
          return [() => context.controller.controllerUnpublishVolume({ volumeId, nodeId })];
        },
      },
    ],
  ),
  {
    id: "controller.unpublish-volume.works",
    sentence: "an unpublished volume may be published again and deleted",
    spec: "ControllerUnpublishVolume",
    needs,
    after,
    async run(context) {
      const volume = await makeVolume(context);
      await makeUsable(context, volume);
      await unpublish(context, volume.volumeId);
      await mustAnswer(
        "ControllerPublishVolume of a volume that was unpublished",
        publish(context, publishRequest(context, volume)),
      );
      await unpublish(context, volume.volumeId);
      await mustAnswer(
        "DeleteVolume of a volume that was unpublished",
        context.controller.deleteVolume({ volumeId: volume.volumeId }),
      );
    },
  },
  {
    id: "controller.unpublish-volume.not-published",
    sentence: "ControllerUnpublishVolume of a volume that is not published is answered OK",
    spec: "ControllerUnpublishVolume",
    needs,
    after: made,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      await unpublish(context, volumeId, "ControllerUnpublishVolume of a volume that is not published");
    },
  },
  {
    id: "controller.unpublish-volume.idempotent",
    sentence: "ControllerUnpublishVolume repeated is answered OK",
    spec: "ControllerUnpublishVolume",
    needs,
    after,
    async run(context) {
      const { volumeId } = await makeUsableVolume(context);
      for (let i = 0; i < context.options.repeats; i++) {
        await unpublish(
          context,
          volumeId,
          i === 0 ? "ControllerUnpublishVolume" : "ControllerUnpublishVolume repeated",
        );
      }
    },
  },
  {
    id: "controller.unpublish-volume.all-nodes",
    sentence: "ControllerUnpublishVolume without a node_id unpublishes the volume from all nodes",
    spec: "ControllerUnpublishVolume",
    needs,
    after: [...after, "controller.unpublish-volume.works"],
    async run(context) {
      const { volumeId } = await makeUsableVolume(context);
      await mustAnswer(
        "ControllerUnpublishVolume without a node_id",
        context.controller.controllerUnpublishVolume({ volumeId }),
      );
      await mustAnswer(
        "DeleteVolume of a volume that was unpublished from all nodes",
        context.controller.deleteVolume({ volumeId }),
      );
    },
  },
  {
    id: "controller.unpublish-volume.parallel",
    sentence: "the same ControllerUnpublishVolume several times at once: each ends with OK or ABORTED",
    spec: "Concurrency",
    needs,
    after: [...after, "controller.unpublish-volume.idempotent"],
    async run(context) {
      const { volumeId } = await makeUsableVolume(context);
      await sideBySide(context, "ControllerUnpublishVolume", ["OK", "ABORTED"], () =>
        context.controller.controllerUnpublishVolume({ volumeId, nodeId: nodeIdOf(context) }),
      );
      await unpublish(context, volumeId, "ControllerUnpublishVolume repeated");
    },
  },
  {
    id: "controller.unpublish-volume.after-crash",
    sentence: "ControllerUnpublishVolume works after a crash of the driver",
    spec: "ControllerUnpublishVolume",
    needs: [...needs, canRestart],
    after,
    async run(context) {
      const request = volumeRequest(context, { volumeCapabilities: [capabilityOf(context)] });
      const volume = volumeOf(await mustAnswer("CreateVolume", context.controller.createVolume(request)));
      await makeUsable(context, volume);
      await context.restartDriver();
      await unpublish(context, volume.volumeId, "ControllerUnpublishVolume after a crash");
      await mustAnswer(
        "DeleteVolume of a volume that was unpublished after a crash",
        context.controller.deleteVolume({ volumeId: volume.volumeId }),
      );
    },
  },
];
