/** What comes next for a registration socket, as a table. Source: docs/behaviour/node-agent.md 1.3. */
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { decidePluginStep, type ObservedPlugin, type RegistrationAttempt } from "./decide-plugin-step.ts";

const decide = pureDecision(decidePluginStep);
const appeared: ObservedPlugin = {
  nowMs: 1000,
  retryAtMs: 0,
  found: "inode-1",
  registered: undefined,
  mayRegister: true,
  attempt: undefined,
};
const registered: ObservedPlugin = { ...appeared, registered: "inode-1" };
const ask = { step: "ask", identity: "inode-1" };
const settle = { step: "settle" };
const deregister = { step: "deregister" };

describe("a registration socket", () => {
  it.each<[string, ObservedPlugin, object]>([
    ["that appeared is asked", appeared, ask],
    ["waits until there is something to register on", { ...appeared, mayRegister: false }, settle],
    ["that is gone, with nothing registered, is left", { ...appeared, found: undefined }, settle],
    ["that is registered is left", registered, settle],
    ["that is gone is deregistered", { ...registered, found: undefined }, deregister],
    [
      "that is gone is deregistered also while nothing may be registered",
      { ...registered, found: undefined, mayRegister: false },
      deregister,
    ],
    ["that was recreated is deregistered first", { ...registered, found: "inode-2" }, deregister],
    [
      "that was recreated is deregistered also while a failure counts",
      { ...registered, found: "inode-2", retryAtMs: 9000 },
      deregister,
    ],
    ["waits after a failure", { ...appeared, retryAtMs: 1500 }, { step: "wait", ms: 500 }],
    ["is asked again once that is due", { ...appeared, retryAtMs: 1000 }, ask],
    ["whose registration failed in the table is not tried again", { ...registered, retryAtMs: 500 }, settle],
    [
      "that is gone while a failure counts is not waited for",
      { ...appeared, found: undefined, retryAtMs: 1500 },
      settle,
    ],
    [
      "waits for something to register on, not for its back-off",
      { ...appeared, mayRegister: false, retryAtMs: 1500 },
      settle,
    ],
  ])("%s", (_name, observed, step) => {
    expect(decide(observed)).toEqual(step);
  });
});

describe("a registration", () => {
  const candidate = { name: "d.example.com", endpoint: "/d.sock", versions: ["1.0.0"] };
  const error = new Error("as the test wants");
  const asked = { stage: "asked", identity: "inode-1", type: "CSIPlugin", candidate } as const;
  const attempts: readonly [string, RegistrationAttempt, object][] = [
    [
      "enters the table with the socket that was asked",
      { ...asked, refusal: undefined },
      { step: "register", identity: "inode-1", type: "CSIPlugin", candidate },
    ],
    ["that is refused is reported", { ...asked, refusal: { error } }, { step: "reportFailure", error }],
    [
      "that is refused without a reason is refused",
      { ...asked, refusal: { error: undefined } },
      { step: "reportFailure", error: undefined },
    ],
    [
      "that succeeded is reported",
      { stage: "registered", candidate },
      { step: "reportRegistered", candidate },
    ],
    [
      "that failed is reported",
      { stage: "failed", error, mayReport: true },
      { step: "reportFailure", error },
    ],
    [
      "that was reported, or got no answer, is recorded",
      { stage: "failed", error, mayReport: false },
      { step: "recordFailure", error },
    ],
  ];
  it.each(attempts)("%s", (_name, attempt, step) => {
    expect(decide({ ...appeared, attempt })).toEqual(step);
  });

  it.each(attempts)("%s, whatever happens to Node and back-off meanwhile", (_name, attempt, step) => {
    expect(decide({ ...appeared, mayRegister: false, retryAtMs: 9000, attempt })).toEqual(step);
  });
});
