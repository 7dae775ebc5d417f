/** CreateVolume: required fields, sizes, names. What repeats and runs side by side is in `create-volume-again-checks.ts`. */
import { VolumeCapability_AccessMode_Mode as Mode } from "@longshore/csi";
import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { endingOf, must, mustAnswer, mustEnd } from "../expect.ts";
import { capabilityOf, makeVolume, volumeOf, volumeRequest } from "../fixtures.ts";
import { controllerCan, controllerCannot, hasNode, pluginCan, topologyKnown } from "../needs.ts";
import { overlongKey } from "../observations.ts";
import { refusals } from "./refusals.ts";

const spec = "CreateVolume";
const errors = "CreateVolume Errors";
const needs = [controllerCan("CREATE_DELETE_VOLUME")];
const after = ["controller.create-volume.works"];
/** The longest name that every plugin must take, in bytes. */
const nameBytes = 128;
/** What all keys and values of a map may have together, in bytes. */
const mapBytes = 4096;

/** A create without the capability is fine for no volume. */
const withCapability = (context: CheckContext, capability: object) =>
  context.controller.createVolume(volumeRequest(context, { volumeCapabilities: [capability] }));
const withRange = (context: CheckContext, requiredBytes: bigint, limitBytes: bigint) =>
  context.controller.createVolume(volumeRequest(context, { capacityRange: { requiredBytes, limitBytes } }));

/** The checks of one CreateVolume. */
export const createVolumeChecks: readonly Check[] = [
  {
    id: "controller.create-volume.works",
    sentence: "CreateVolume with a name, a size and a capability gives a volume with an id",
    spec,
    needs,
    async run(context) {
      await makeVolume(context);
    },
  },
  ...refusals(errors, needs, [
    {
      id: "controller.create-volume.name-required",
      what: "CreateVolume without a name",
      codes: ["INVALID_ARGUMENT"],
      call: (context) => [() => context.controller.createVolume(volumeRequest(context, { name: "" }))],
    },
    {
      id: "controller.create-volume.capabilities-required",
      what: "CreateVolume without volume_capabilities",
      codes: ["INVALID_ARGUMENT"],
      call: (context) => [
        () => context.controller.createVolume(volumeRequest(context, { volumeCapabilities: [] })),
      ],
    },
    {
      id: "controller.create-volume.access-type-required",
      what: "CreateVolume with a capability that is neither block nor mount",
      codes: ["INVALID_ARGUMENT"],
      call: (context) => [() => withCapability(context, { accessMode: { mode: Mode.SINGLE_NODE_WRITER } })],
    },
    {
      id: "controller.create-volume.access-mode-required",
      what: "CreateVolume with a capability without an access mode",
      codes: ["INVALID_ARGUMENT"],
      call: (context) => {
        const { accessType } = capabilityOf(context);
        return [
          () => withCapability(context, { accessType }),
          () => withCapability(context, { accessType, accessMode: { mode: Mode.UNKNOWN } }),
        ];
      },
    },
    {
      id: "controller.create-volume.limit-below-required",
      what: "CreateVolume with limit_bytes below required_bytes",
      codes: ["INVALID_ARGUMENT", "OUT_OF_RANGE"],
      call: (context) => {
        const { volumeSizeBytes } = context.options;
        return [() => withRange(context, volumeSizeBytes, volumeSizeBytes - 1n)];
      },
    },
    {
      id: "controller.create-volume.negative-size",
      what: "CreateVolume with a negative size",
      codes: ["INVALID_ARGUMENT", "OUT_OF_RANGE"],
      call: (context) => [() => withRange(context, -1n, 0n), () => withRange(context, 0n, -1n)],
    },
    {
      id: "controller.create-volume.unknown-topology",
      what: "CreateVolume on a topology that does not exist",
      codes: ["RESOURCE_EXHAUSTED", "INVALID_ARGUMENT"],
      needs: [pluginCan("VOLUME_ACCESSIBILITY_CONSTRAINTS"), topologyKnown],
      call: (context) => {
        const segments = context.target.nodeInfo?.accessibleTopology?.segments ?? {};
        const nowhere = {
          segments: Object.fromEntries(Object.keys(segments).map((key) => [key, "longshore-nowhere"])),
        };
        const accessibilityRequirements = { requisite: [nowhere], preferred: [nowhere] };
        return [() => context.controller.createVolume(volumeRequest(context, { accessibilityRequirements }))];
      },
    },
  ]),
  {
    id: "controller.create-volume.capacity",
    sentence: "a volume has at least required_bytes, and at most limit_bytes, or its size is unknown (0)",
    spec,
    needs,
    after,
    async run(context) {
      const { volumeSizeBytes: size } = context.options;
      const ranges = [
        { requiredBytes: size, limitBytes: 0n },
        { requiredBytes: size, limitBytes: size * 2n },
        { requiredBytes: 0n, limitBytes: size * 2n },
        { requiredBytes: size, limitBytes: size },
      ];
      for (const capacityRange of ranges) {
        const { requiredBytes, limitBytes } = capacityRange;
        const what = `CreateVolume with required_bytes ${requiredBytes} and limit_bytes ${limitBytes}`;
        const request = volumeRequest(context, { capacityRange });
        // CSI lets a plugin refuse a range: not every size can be had everywhere.
        const ending = await mustEnd(what, context.controller.createVolume(request), "OK", "OUT_OF_RANGE");
        if (ending.code !== "OK") continue;
        const { capacityBytes } = volumeOf(ending.answer);
        must(
          capacityBytes === 0n || capacityBytes >= requiredBytes,
          `${what} gave a volume of ${capacityBytes} bytes, which is less`,
        );
        must(
          limitBytes === 0n || capacityBytes <= limitBytes,
          `${what} gave a volume of ${capacityBytes} bytes, which is more`,
        );
      }
    },
  },
  {
    id: "controller.create-volume.without-size",
    sentence: "CreateVolume without capacity_range gives a volume of the plugin's default size",
    spec,
    needs,
    after,
    async run(context) {
      const { capacityRange: _, ...request } = volumeRequest(context);
      volumeOf(
        await mustAnswer("CreateVolume without capacity_range", context.controller.createVolume(request)),
      );
    },
  },
  {
    id: "controller.create-volume.huge-size",
    sentence:
      "a size that cannot be provided ends with OUT_OF_RANGE or RESOURCE_EXHAUSTED, not with a smaller volume",
    spec: errors,
    needs,
    after,
    async run(context) {
      // Within an int64, so that the size is refused and not the number.
      const requiredBytes = 2n ** 62n;
      const what = `CreateVolume of ${requiredBytes} bytes`;
      const request = volumeRequest(context, { capacityRange: { requiredBytes } });
      const ending = await mustEnd(
        what,
        context.controller.createVolume(request),
        "OUT_OF_RANGE",
        "RESOURCE_EXHAUSTED",
        "OK",
      );
      if (ending.code !== "OK") return;
      const { capacityBytes } = volumeOf(ending.answer);
      must(capacityBytes >= requiredBytes, `${what} gave a volume of ${capacityBytes} bytes`);
    },
  },
  {
    id: "controller.create-volume.long-name",
    sentence: "names of 128 bytes are taken, and those that differ in the last byte name two volumes",
    spec: "Size Limits",
    needs,
    after,
    async run(context) {
      // The difference is in the last byte: a plugin that cuts names takes the two for one.
      const start = context.name("long").padEnd(nameBytes - 1, "x");
      const first = await makeVolume(context, { name: `${start}1` }, "CreateVolume with a name of 128 bytes");
      const second = await makeVolume(
        context,
        { name: `${start}2` },
        "CreateVolume with a name of 128 bytes",
      );
      must(
        first.volumeId !== second.volumeId,
        `two names of 128 bytes that differ in the last one gave the same volume ${first.volumeId}`,
      );
    },
  },
  {
    id: "controller.create-volume.unicode-name",
    sentence: "names in any script are taken, and different ones name different volumes",
    spec,
    needs,
    after,
    async run(context) {
      const base = context.name("name");
      const ids = new Set<string>();
      for (const suffix of ["größe", "データ", "том", "🚢", "a b", "ﬀ"]) {
        const name = `${base}-${suffix}`;
        ids.add((await makeVolume(context, { name }, `CreateVolume with the name "${name}"`)).volumeId);
      }
      must(ids.size === 6, `six names in different scripts gave ${ids.size} volumes`);
    },
  },
  {
    id: "controller.create-volume.path-like-name",
    sentence: "a name is no path: slashes and dots in it name a volume of its own",
    spec,
    needs,
    after,
    async run(context) {
      const base = context.name("path");
      const ids = new Set<string>();
      // Joined to a directory, or decoded, several of these would be one path.
      for (const name of [base, `../${base}`, `./${base}`, `${base}/.`, `${base}%2f`]) {
        ids.add((await makeVolume(context, { name }, `CreateVolume with the name "${name}"`)).volumeId);
      }
      must(ids.size === 5, `five names with slashes and dots gave ${ids.size} volumes`);
    },
  },
  {
    id: "controller.create-volume.overlong-name",
    sentence: "names beyond 128 bytes are refused with INVALID_ARGUMENT, or compared by all of their bytes",
    spec: "Size Limits",
    needs,
    after,
    async run(context) {
      // An orchestrator must not send such names, so both answers are right; one volume for both is not (decision 0014).
      const start = context.name("overlong").padEnd(2 * nameBytes, "x");
      const ids: string[] = [];
      for (const name of [`${start}1`, `${start}2`]) {
        const ending = await mustEnd(
          `CreateVolume with a name of ${name.length} bytes`,
          context.controller.createVolume(volumeRequest(context, { name })),
          "OK",
          "INVALID_ARGUMENT",
        );
        if (ending.code === "OK") ids.push(volumeOf(ending.answer).volumeId);
      }
      must(
        new Set(ids).size === ids.length,
        "two long names that differ in the last byte gave the same volume",
      );
    },
  },
  {
    id: "controller.create-volume.overlong-parameters",
    sentence: "parameters beyond 4 KiB are taken or refused, and do no harm to the plugin",
    spec: "Size Limits",
    needs,
    after,
    async run(context) {
      const parameters = { ...context.options.parameters, [overlongKey]: "x".repeat(mapBytes) };
      await mustEnd(
        `CreateVolume with parameters of more than ${mapBytes} bytes`,
        context.controller.createVolume(volumeRequest(context, { parameters })),
        "OK",
        "INVALID_ARGUMENT",
      );
      await makeVolume(context, {}, "CreateVolume after one with long parameters");
    },
  },
  {
    id: "controller.create-volume.control-characters",
    sentence: "a name with control characters is refused with INVALID_ARGUMENT, or names a volume of its own",
    spec: "CreateVolume",
    needs,
    after,
    async run(context) {
      const base = context.name("control");
      const ids: string[] = [];
      for (const name of [`${base}\u0000`, `${base}\u0007`, `${base}\u007f`, base]) {
        const ending = await mustEnd(
          `CreateVolume with the name ${JSON.stringify(name)}`,
          context.controller.createVolume(volumeRequest(context, { name })),
          "OK",
          ...(name === base ? [] : (["INVALID_ARGUMENT"] as const)),
        );
        if (ending.code === "OK") ids.push(volumeOf(ending.answer).volumeId);
      }
      must(new Set(ids).size === ids.length, "names that differ in control characters gave the same volume");
    },
  },
  {
    id: "controller.create-volume.topology",
    sentence: "a volume that is asked for on this node's topology is accessible from it",
    spec,
    needs: [...needs, pluginCan("VOLUME_ACCESSIBILITY_CONSTRAINTS"), hasNode, topologyKnown],
    after,
    async run(context) {
      const segments = context.target.nodeInfo?.accessibleTopology?.segments ?? {};
      const { accessibleTopology } = await makeVolume(context);
      // Without a topology the volume is accessible from everywhere.
      const isHere =
        accessibleTopology.length === 0 ||
        accessibleTopology.some((term) =>
          Object.entries(term.segments).every(([key, value]) => segments[key] === value),
        );
      must(
        isHere,
        `the volume is accessible from ${JSON.stringify(accessibleTopology.map((t) => t.segments))} only, the node is on ${JSON.stringify(segments)}`,
      );
    },
  },
  {
    id: "controller.create-volume.no-topology",
    sentence: "a plugin without VOLUME_ACCESSIBILITY_CONSTRAINTS gives no accessible_topology",
    spec,
    needs: [
      ...needs,
      ({ plugin }) =>
        plugin.has("VOLUME_ACCESSIBILITY_CONSTRAINTS")
          ? "for plugins without VOLUME_ACCESSIBILITY_CONSTRAINTS only"
          : undefined,
    ],
    after,
    async run(context) {
      const { accessibleTopology } = await makeVolume(context);
      must(
        accessibleTopology.length === 0,
        "the volume has an accessible_topology, and VOLUME_ACCESSIBILITY_CONSTRAINTS is not declared",
      );
    },
  },
  {
    id: "controller.create-volume.access-modes",
    sentence:
      "the volume may be asked for with several capabilities at once; a plugin says so when it has not all",
    spec,
    needs,
    after,
    async run(context) {
      const modes = [Mode.SINGLE_NODE_WRITER, Mode.SINGLE_NODE_READER_ONLY];
      const volumeCapabilities = modes.map((mode) => capabilityOf(context, mode));
      const what = "CreateVolume with the access modes SINGLE_NODE_WRITER and SINGLE_NODE_READER_ONLY";
      await mustEnd(
        what,
        context.controller.createVolume(volumeRequest(context, { volumeCapabilities })),
        "OK",
        "INVALID_ARGUMENT",
      );
    },
  },
  {
    id: "controller.create-volume.single-node-multi-writer",
    sentence:
      "a plugin with SINGLE_NODE_MULTI_WRITER takes both new access modes, and SINGLE_NODE_WRITER as before",
    spec: "ControllerGetCapabilities",
    needs: [...needs, controllerCan("SINGLE_NODE_MULTI_WRITER")],
    after,
    async run(context) {
      const modes = ["SINGLE_NODE_SINGLE_WRITER", "SINGLE_NODE_MULTI_WRITER", "SINGLE_NODE_WRITER"] as const;
      for (const mode of modes) {
        const volumeCapabilities = [capabilityOf(context, Mode[mode])];
        await makeVolume(context, { volumeCapabilities }, `CreateVolume with the access mode ${mode}`);
      }
    },
  },
  {
    id: "controller.create-volume.mutable-parameters",
    sentence: "a volume is made with mutable parameters that the plugin knows",
    spec,
    needs: [
      ...needs,
      controllerCan("MODIFY_VOLUME"),
      ({ options }) =>
        Object.keys(options.mutableParameters).length > 0
          ? undefined
          : "no mutable parameters are given (`mutableParameters`)",
    ],
    after,
    async run(context) {
      const mutableParameters = { ...context.options.mutableParameters };
      await makeVolume(context, { mutableParameters }, "CreateVolume with mutable_parameters");
    },
  },
  {
    id: "controller.create-volume.unknown-mutable-parameters",
    sentence: "mutable parameters that the plugin does not know end with INVALID_ARGUMENT",
    spec: errors,
    needs: [...needs, controllerCan("MODIFY_VOLUME")],
    after,
    async run(context) {
      const mutableParameters = { "longshore.dev/no-such-parameter": "1" };
      await mustEnd(
        "CreateVolume with an unknown key in mutable_parameters",
        context.controller.createVolume(volumeRequest(context, { mutableParameters })),
        "INVALID_ARGUMENT",
      );
    },
  },
  {
    id: "controller.create-volume.source-undeclared",
    sentence: "a plugin that can neither clone nor restore refuses a content source with INVALID_ARGUMENT",
    spec: errors,
    needs: [...needs, controllerCannot("CLONE_VOLUME"), controllerCannot("CREATE_DELETE_SNAPSHOT")],
    after,
    async run(context) {
      const { volumeId } = await makeVolume(context);
      const sources = [
        { type: { case: "volume" as const, value: { volumeId } } },
        { type: { case: "snapshot" as const, value: { snapshotId: context.unknownId("snapshot") } } },
      ];
      for (const volumeContentSource of sources) {
        const request = volumeRequest(context, { volumeContentSource });
        const ending = await endingOf(context.controller.createVolume(request));
        // Older plugins do not know the field: they cannot refuse it, but say so by not giving it back.
        if (ending.code !== "OK") {
          must(
            ending.code === "INVALID_ARGUMENT",
            `a content source ended with ${ending.code}; must be INVALID_ARGUMENT`,
          );
        } else {
          must(
            ending.answer.volume?.contentSource !== undefined,
            "CreateVolume with a content source gave an empty volume; must be INVALID_ARGUMENT",
          );
        }
      }
    },
  },
];
