/** What every plugin must say of itself. */
import {
  equals,
  GetPluginCapabilitiesResponseSchema,
  GetPluginInfoResponseSchema,
  PluginCapability_Service_Type as Service,
  PluginCapability_VolumeExpansion_Type as VolumeExpansion,
} from "@longshore/csi";
import type { Check } from "../check.ts";
import { endingOf, must, mustAnswer } from "../expect.ts";
import { hasController, pluginCan } from "../needs.ts";

const domainName = /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/;

/** The checks of the identity service. */
export const identityChecks: readonly Check[] = [
  {
    id: "identity.plugin-info.name",
    sentence: "GetPluginInfo gives a name in domain notation of at most 63 characters",
    spec: "GetPluginInfo",
    async run({ identity }) {
      const { name } = await mustAnswer("GetPluginInfo", identity.getPluginInfo({}));
      must(name !== "", "name is empty; it is REQUIRED");
      must(name.length <= 63, `name has ${name.length} characters; at most 63 are allowed`);
      must(
        domainName.test(name),
        `name "${name}" must begin and end with a letter or digit, with dashes, dots and alphanumerics between`,
      );
    },
  },
  {
    id: "identity.plugin-info.vendor-version",
    sentence: "GetPluginInfo gives a vendor version",
    spec: "GetPluginInfo",
    async run({ identity }) {
      const { vendorVersion } = await mustAnswer("GetPluginInfo", identity.getPluginInfo({}));
      must(vendorVersion !== "", "vendor_version is empty; it is REQUIRED");
    },
  },
  {
    id: "identity.plugin-info.same-answer",
    sentence: "GetPluginInfo answers the same whenever and wherever it is asked",
    spec: "GetPluginInfo",
    after: ["identity.plugin-info.name"],
    async run({ identity, clients }) {
      const first = await mustAnswer("GetPluginInfo", identity.getPluginInfo({}));
      const again = await mustAnswer("GetPluginInfo again", identity.getPluginInfo({}));
      const other = await mustAnswer(
        "GetPluginInfo of the controller",
        clients.controllerIdentity.getPluginInfo({}),
      );
      must(
        equals(GetPluginInfoResponseSchema, first, again),
        "two calls of GetPluginInfo got different answers",
      );
      must(
        first.name === other.name,
        `the controller's plugin is named "${other.name}", the node's "${first.name}"; they must be one`,
      );
    },
  },
  {
    id: "identity.plugin-capabilities.known",
    sentence: "GetPluginCapabilities declares no capability without a type, or of type UNKNOWN",
    spec: "GetPluginCapabilities",
    async run({ identity }) {
      const { capabilities } = await mustAnswer("GetPluginCapabilities", identity.getPluginCapabilities({}));
      for (const [index, { type }] of capabilities.entries()) {
        must(type.case !== undefined, `capabilities[${index}] has no type`);
        must(
          (type.case === "service" ? Service.UNKNOWN : VolumeExpansion.UNKNOWN) !== type.value.type,
          `capabilities[${index}] is UNKNOWN`,
        );
      }
    },
  },
  {
    id: "identity.plugin-capabilities.same-answer",
    sentence: "all instances of a plugin declare the same plugin capabilities",
    spec: "GetPluginCapabilities",
    async run({ identity, clients }) {
      const first = await mustAnswer("GetPluginCapabilities", identity.getPluginCapabilities({}));
      const others = [
        await mustAnswer("GetPluginCapabilities again", identity.getPluginCapabilities({})),
        await mustAnswer(
          "GetPluginCapabilities of the controller",
          clients.controllerIdentity.getPluginCapabilities({}),
        ),
      ];
      must(
        others.every((other) => equals(GetPluginCapabilitiesResponseSchema, first, other)),
        "two calls of GetPluginCapabilities got different answers",
      );
    },
  },
  {
    id: "identity.plugin-capabilities.controller-service",
    sentence: "a plugin that declares CONTROLLER_SERVICE serves it",
    spec: "GetPluginCapabilities",
    needs: [hasController],
    async run({ controller }) {
      await mustAnswer("ControllerGetCapabilities", controller.controllerGetCapabilities({}));
    },
  },
  {
    id: "identity.plugin-capabilities.controller-declared",
    sentence: "a plugin that serves a controller declares CONTROLLER_SERVICE",
    spec: "GetPluginCapabilities",
    needs: [
      ({ servesController }) =>
        servesController ? undefined : "no controller service answers (ControllerGetCapabilities)",
    ],
    async run({ target }) {
      must(
        target.plugin.has("CONTROLLER_SERVICE"),
        "ControllerGetCapabilities is answered, and CONTROLLER_SERVICE is not declared",
      );
    },
  },
  {
    id: "identity.plugin-capabilities.group-controller-service",
    sentence: "a plugin that declares GROUP_CONTROLLER_SERVICE serves it",
    spec: "GetPluginCapabilities",
    needs: [pluginCan("GROUP_CONTROLLER_SERVICE")],
    async run({ groupController }) {
      await mustAnswer("GroupControllerGetCapabilities", groupController.groupControllerGetCapabilities({}));
    },
  },
  {
    id: "identity.plugin-capabilities.snapshot-metadata-service",
    sentence: "a plugin that declares SNAPSHOT_METADATA_SERVICE serves it",
    spec: "GetPluginCapabilities",
    needs: [pluginCan("SNAPSHOT_METADATA_SERVICE")],
    async run({ snapshotMetadata }) {
      const { code } = await endingOf(snapshotMetadata.getMetadataAllocated({}));
      must(code !== "UNIMPLEMENTED", "SNAPSHOT_METADATA_SERVICE is declared, and no such service answers");
    },
  },
  {
    id: "identity.plugin-capabilities.snapshot-metadata-declared",
    sentence: "a plugin that serves snapshot metadata declares SNAPSHOT_METADATA_SERVICE",
    spec: "GetPluginCapabilities",
    async run(context) {
      // Without a snapshot_id: a service that is there refuses this, and does no work.
      const { code } = await endingOf(context.snapshotMetadata.getMetadataAllocated({}));
      if (code === "UNIMPLEMENTED")
        context.skip("no snapshot metadata service answers (GetMetadataAllocated)");
      must(
        context.target.plugin.has("SNAPSHOT_METADATA_SERVICE"),
        `GetMetadataAllocated ends with ${code}, and SNAPSHOT_METADATA_SERVICE is not declared`,
      );
    },
  },
  {
    id: "identity.plugin-capabilities.online-expansion",
    sentence: "volume expansion ONLINE comes with EXPAND_VOLUME of the controller or of the node",
    spec: "GetPluginCapabilities",
    needs: [pluginCan("VOLUME_EXPANSION_ONLINE")],
    async run({ target }) {
      must(
        target.controller.has("EXPAND_VOLUME") || target.node.has("EXPAND_VOLUME"),
        "ONLINE is declared, and neither the controller nor the node declares EXPAND_VOLUME",
      );
    },
  },
  {
    id: "identity.plugin-capabilities.offline-expansion",
    sentence: "volume expansion OFFLINE comes with EXPAND_VOLUME of the controller",
    spec: "GetPluginCapabilities",
    needs: [pluginCan("VOLUME_EXPANSION_OFFLINE")],
    async run({ target }) {
      must(
        target.controller.has("EXPAND_VOLUME"),
        "OFFLINE is declared, and the controller does not declare EXPAND_VOLUME",
      );
    },
  },
  {
    id: "identity.probe.ready",
    sentence: "Probe of a plugin that serves calls is answered OK and ready",
    spec: "Probe",
    async run(context) {
      await context.eventually("Probe said ready", async () => {
        const { ready } = await mustAnswer("Probe", context.identity.probe({}));
        // Absent means ready (docs/behaviour/csi-spec-notes.md 5).
        return ready !== false || undefined;
      });
    },
  },
];
