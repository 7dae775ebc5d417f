import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { decideDriverStep, type LoadedDriver } from "./decide-driver-step.ts";

const decide = pureDecision(decideDriverStep);
const installed = {
  pluginName: "v.io/d",
  executable: "/flex/v.io~d/d",
  fingerprint: "1",
  problem: undefined,
};
const served: LoadedDriver = { fingerprint: "1", pluginName: "v.io/d", failure: undefined };
const broken: LoadedDriver = { ...served, failure: { count: 1, retryAtMs: 5000 } };

describe("what comes next for a driver (docs/behaviour/flexvolume.md 2.3)", () => {
  it.each([
    ["nothing is there", undefined, undefined, { step: "settle" }],
    ["it was removed", undefined, served, { step: "drop", pluginName: "v.io/d" }],
    ["it was removed while broken", undefined, broken, { step: "drop", pluginName: "v.io/d" }],
    ["it is new", installed, undefined, { step: "load", driver: installed }],
    ["it is served", installed, served, { step: "settle" }],
    ["it has changed", installed, { ...served, fingerprint: "0" }, { step: "load", driver: installed }],
    [
      "it was broken and has changed",
      installed,
      { ...broken, fingerprint: "0" },
      { step: "load", driver: installed },
    ],
    ["it is broken", installed, broken, { step: "wait", ms: 4000 }],
  ])("%s", (_what, driver, loaded, step) => {
    expect(decide({ nowMs: 1000, installed: driver, loaded })).toEqual(step);
  });

  it("loads a broken one when its back-off is over", () => {
    expect(decide({ nowMs: 5000, installed, loaded: broken })).toEqual({ step: "load", driver: installed });
  });
});
