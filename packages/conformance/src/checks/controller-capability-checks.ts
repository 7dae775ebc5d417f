/** What the controller declares. */
import {
  ControllerGetCapabilitiesResponseSchema,
  equals,
  ControllerServiceCapability_RPC_Type as Rpc,
} from "@longshore/csi";
import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { endingOf, must, mustAnswer } from "../expect.ts";
import { controllerCan, hasController } from "../needs.ts";

/** Capabilities that mean nothing without others. */
const implied: readonly (readonly [capability: string, needed: string])[] = [
  ["LIST_VOLUMES_PUBLISHED_NODES", "PUBLISH_UNPUBLISH_VOLUME"],
  ["PUBLISH_READONLY", "PUBLISH_UNPUBLISH_VOLUME"],
  ["CLONE_VOLUME", "CREATE_DELETE_VOLUME"],
];

/** A call that needs a capability, made so that it would do nothing where it is served. */
const optionalCalls: readonly (readonly [
  capability: string,
  rpc: string,
  call: (context: CheckContext) => Promise<unknown>,
])[] = [
  ["CREATE_DELETE_VOLUME", "CreateVolume", ({ controller }) => controller.createVolume({})],
  ["CREATE_DELETE_VOLUME", "DeleteVolume", ({ controller }) => controller.deleteVolume({})],
  [
    "PUBLISH_UNPUBLISH_VOLUME",
    "ControllerPublishVolume",
    ({ controller }) => controller.controllerPublishVolume({}),
  ],
  [
    "PUBLISH_UNPUBLISH_VOLUME",
    "ControllerUnpublishVolume",
    ({ controller }) => controller.controllerUnpublishVolume({}),
  ],
  ["LIST_VOLUMES", "ListVolumes", ({ controller }) => controller.listVolumes({})],
  ["CREATE_DELETE_SNAPSHOT", "CreateSnapshot", ({ controller }) => controller.createSnapshot({})],
  ["CREATE_DELETE_SNAPSHOT", "DeleteSnapshot", ({ controller }) => controller.deleteSnapshot({})],
  ["LIST_SNAPSHOTS", "ListSnapshots", ({ controller }) => controller.listSnapshots({})],
  ["GET_SNAPSHOT", "GetSnapshot", ({ controller }) => controller.getSnapshot({})],
  ["EXPAND_VOLUME", "ControllerExpandVolume", ({ controller }) => controller.controllerExpandVolume({})],
  ["GET_VOLUME", "ControllerGetVolume", ({ controller }) => controller.controllerGetVolume({})],
  ["MODIFY_VOLUME", "ControllerModifyVolume", ({ controller }) => controller.controllerModifyVolume({})],
];

/** The checks of ControllerGetCapabilities. */
export const controllerCapabilityChecks: readonly Check[] = [
  {
    id: "controller.capabilities.known",
    sentence: "ControllerGetCapabilities declares no capability without a type, or of type UNKNOWN",
    spec: "ControllerGetCapabilities",
    needs: [hasController],
    async run({ controller }) {
      const { capabilities } = await mustAnswer(
        "ControllerGetCapabilities",
        controller.controllerGetCapabilities({}),
      );
      for (const [index, { type }] of capabilities.entries()) {
        must(type.case === "rpc", `capabilities[${index}] has no type`);
        must(type.value.type !== Rpc.UNKNOWN, `capabilities[${index}] is UNKNOWN`);
      }
    },
  },
  {
    id: "controller.capabilities.same-answer",
    sentence: "ControllerGetCapabilities answers the same whenever it is asked",
    spec: "ControllerGetCapabilities",
    needs: [hasController],
    async run({ controller }) {
      const ask = () => mustAnswer("ControllerGetCapabilities", controller.controllerGetCapabilities({}));
      must(
        equals(ControllerGetCapabilitiesResponseSchema, await ask(), await ask()),
        "two calls of ControllerGetCapabilities got different answers",
      );
    },
  },
  {
    id: "controller.capabilities.consistent",
    sentence: "capabilities that need another one come with it",
    spec: "ControllerGetCapabilities",
    needs: [hasController],
    async run({ target }) {
      for (const [capability, needed] of implied) {
        must(
          !target.controller.has(capability) || target.controller.has(needed),
          `${capability} is declared without ${needed}`,
        );
      }
    },
  },
  {
    id: "controller.capabilities.published-nodes-listed",
    sentence: "LIST_VOLUMES_PUBLISHED_NODES comes with a call that lists or gets volumes",
    spec: "ControllerGetCapabilities",
    needs: [controllerCan("LIST_VOLUMES_PUBLISHED_NODES")],
    async run({ target }) {
      must(
        target.controller.has("LIST_VOLUMES") || target.controller.has("GET_VOLUME"),
        "LIST_VOLUMES_PUBLISHED_NODES is declared with neither LIST_VOLUMES nor GET_VOLUME",
      );
    },
  },
  {
    id: "controller.capabilities.condition-reported",
    sentence: "VOLUME_CONDITION comes with a call that reports it: LIST_VOLUMES or GET_VOLUME",
    spec: "ControllerGetCapabilities",
    needs: [controllerCan("VOLUME_CONDITION")],
    async run({ target }) {
      must(
        target.controller.has("LIST_VOLUMES") || target.controller.has("GET_VOLUME"),
        "VOLUME_CONDITION is declared with neither LIST_VOLUMES nor GET_VOLUME",
      );
    },
  },
  {
    id: "controller.capabilities.undeclared-refused",
    sentence: "a call whose capability is not declared ends with UNIMPLEMENTED, or as any empty one does",
    spec: "Error Scheme",
    needs: [
      hasController,
      ({ controller }) =>
        optionalCalls.every(([capability]) => controller.has(capability))
          ? "every capability is declared"
          : undefined,
    ],
    async run(context) {
      for (const [capability, rpc, call] of optionalCalls) {
        if (context.target.controller.has(capability)) continue;
        const { code } = await endingOf(call(context));
        // An empty request may be found invalid before its capability is looked at; that of a list is valid.
        const isList = rpc === "ListVolumes" || rpc === "ListSnapshots";
        must(
          ["UNIMPLEMENTED", "INVALID_ARGUMENT"].includes(code) || (isList && code === "OK"),
          `${capability} is not declared, and an empty ${rpc} ended with ${code}; must be UNIMPLEMENTED`,
        );
      }
    },
  },
];
