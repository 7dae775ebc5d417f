/** What comes next for a volume in a round, as a table. */
import { pureDecision } from "@longshore/kube/testing";
import { expect, it } from "vitest";
import { decideHealthStep, type ObservedHealth } from "./decide-health-step.ts";

const decide = pureDecision(decideHealthStep);
const claim = { kind: "PersistentVolumeClaim", name: "data", namespace: "default", uid: "u-1" };
const volume = { pvName: "pv", volumeHandle: "vol-1", claim };
const due: ObservedHealth = { volume, isRoundOver: false, heard: undefined, wasAbnormal: false };
const bad = { health: { abnormal: true, message: "slow" } };
const good = { health: { abnormal: false, message: "" } };
const warning = { type: "Warning", reason: "VolumeConditionAbnormal", message: "slow" };
const normal = {
  type: "Normal",
  reason: "VolumeConditionNormal",
  message: "The Volume returns to the healthy state",
};
const leave = { step: "leave" };

it.each<[string, ObservedHealth, object]>([
  ["is asked about", due, { step: "ask", volumeHandle: "vol-1" }],
  [
    "is asked about also after it was abnormal",
    { ...due, wasAbnormal: true },
    { step: "ask", volumeHandle: "vol-1" },
  ],
  [
    "is reported when it is abnormal",
    { ...due, heard: bad },
    { step: "reportAbnormal", claim, event: warning },
  ],
  [
    "is reported again while it is abnormal",
    { ...due, heard: bad, wasAbnormal: true },
    { step: "reportAbnormal", claim, event: warning },
  ],
  [
    "is reported when it is well again",
    { ...due, heard: good, wasAbnormal: true },
    { step: "reportNormal", claim, event: normal },
  ],
  ["is left when it is well as before", { ...due, heard: good }, leave],
  ["is left when nothing is known of it", { ...due, heard: { health: undefined } }, leave],
  [
    "is left as abnormal when nothing is known of it",
    { ...due, heard: { health: undefined }, wasAbnormal: true },
    leave,
  ],
  ["is left when it is not the driver's any more", { ...due, volume: undefined }, leave],
  ["is not asked about after the round", { ...due, isRoundOver: true }, leave],
  ["is not reported after the round", { ...due, isRoundOver: true, heard: bad }, leave],
])("a volume %s", (_name, observed, step) => {
  expect(decide(observed)).toEqual(step);
});
