/** GetCapacity. */
import type { Check } from "../check.ts";
import { must, mustAnswer, mustEnd } from "../expect.ts";
import { capabilityOf } from "../fixtures.ts";
import { controllerCan, pluginCan, topologyKnown } from "../needs.ts";

const spec = "GetCapacity";
const needs = [controllerCan("GET_CAPACITY")];
const after = ["controller.get-capacity.works"];

/** The checks of GetCapacity. */
export const getCapacityChecks: readonly Check[] = [
  {
    id: "controller.get-capacity.works",
    sentence: "GetCapacity without arguments gives the capacity in all",
    spec,
    needs,
    async run({ controller }) {
      await mustAnswer("GetCapacity", controller.getCapacity({}));
    },
  },
  {
    id: "controller.get-capacity.of-capability",
    sentence: "GetCapacity for volumes as they are made here gives a capacity, with limits that make sense",
    spec,
    needs,
    after,
    async run(context) {
      const topology = context.target.nodeInfo?.accessibleTopology;
      const isTopologyAware = context.target.plugin.has("VOLUME_ACCESSIBILITY_CONSTRAINTS");
      const { availableCapacity, maximumVolumeSize, minimumVolumeSize } = await mustAnswer(
        "GetCapacity with capability and parameters",
        context.controller.getCapacity({
          volumeCapabilities: [capabilityOf(context)],
          parameters: { ...context.options.parameters },
          ...(isTopologyAware && topology !== undefined ? { accessibleTopology: topology } : {}),
        }),
      );
      must(availableCapacity >= 0n, `available_capacity is ${availableCapacity}`);
      const [least = 0n, most] = [minimumVolumeSize, maximumVolumeSize];
      must(least >= 0n, `minimum_volume_size is ${least}`);
      must(most === undefined || most >= 0n, `maximum_volume_size is ${most}`);
      must(
        most === undefined || least <= most,
        `minimum_volume_size ${least} is above maximum_volume_size ${most}`,
      );
    },
  },
  {
    id: "controller.get-capacity.unknown-topology",
    sentence: "there is no capacity on a topology that does not exist",
    spec,
    needs: [...needs, pluginCan("VOLUME_ACCESSIBILITY_CONSTRAINTS"), topologyKnown],
    after,
    async run(context) {
      const known = context.target.nodeInfo?.accessibleTopology?.segments ?? {};
      const segments = Object.fromEntries(Object.keys(known).map((key) => [key, "longshore-nowhere"]));
      const ending = await mustEnd(
        "GetCapacity on a topology that does not exist",
        context.controller.getCapacity({ accessibleTopology: { segments } }),
        "OK",
        "INVALID_ARGUMENT",
      );
      const capacity = ending.code === "OK" ? ending.answer.availableCapacity : 0n;
      must(capacity === 0n, `there are ${capacity} bytes on a topology that does not exist`);
    },
  },
];
