/** What comes next in a mapping, as a table. Source: docs/behaviour/node-agent.md 7.4. */
import { pureDecision } from "@longshore/kube/testing";
import { expect, test } from "vitest";
import type { ActualVolume } from "../actual-state.ts";
import { decideMapStep, type MapProgress } from "./decide-map-step.ts";

const decide = pureDecision((input: { device: ActualVolume["device"] | undefined; map: MapProgress }) =>
  decideMapStep(input.device === undefined ? undefined : { device: input.device }, input.map),
);
const affinity = { nodeAffinity: { required: { nodeSelectorTerms: [] } } };
const begun = {
  volume: {},
  pod: { spec: { persistentVolume: { spec: affinity } } },
  mapper: {},
  isPlacementChecked: false,
  giveUp: undefined,
  devicePath: undefined,
  isMapped: false,
  isGrown: false,
} as unknown as MapProgress;
const placed = { ...begun, isPlacementChecked: true };
const attached = { ...placed, devicePath: "" };
const device = (state: ActualVolume["device"]["state"]) => ({ state, path: "/maps" });

test.each([
  ["a volume with a node affinity: the node is compared", undefined, begun, "checkMapPlacement"],
  ["the attachment is waited for", undefined, placed, "waitForMapDevice"],
  ["nothing is known of the device: it is set up", undefined, attached, "setUpDevice"],
  ["the device is not set up", device("notMounted"), attached, "setUpDevice"],
  ["the device may be set up: it is set up once more", device("uncertain"), attached, "setUpDevice"],
  ["the device is set up: it is mapped", device("mounted"), attached, "mapForPod"],
  ["mapped: it grows", device("mounted"), { ...attached, isMapped: true }, "growMapped"],
  ["grown: done", device("mounted"), { ...attached, isMapped: true, isGrown: true }, "finishMap"],
] as const)("%s", (_name, state, map, step) => {
  expect(decide({ device: state, map })).toEqual({ step });
});
