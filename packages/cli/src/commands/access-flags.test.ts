import { describe, expect, it } from "vitest";
import { accessOptions } from "./access-flags.ts";

describe("flags that say who may do what", () => {
  it("are the reference's when none is given", () => {
    expect(accessOptions({})).toEqual({
      authorizationModes: ["Node", "RBAC"],
      limits: { readsMax: 400, writesMax: 200 },
    });
  });

  it("are handed on", () => {
    const flags = {
      anonymousAuth: true,
      tokenAuthFile: "tokens.csv",
      authorizationMode: "RBAC, AlwaysDeny",
      disableAdmissionPlugins: "ServiceAccount",
      maxRequestsInflight: "0",
      maxMutatingRequestsInflight: "7",
    } as const;
    expect(accessOptions(flags)).toEqual({
      authorizationModes: ["RBAC", "AlwaysDeny"],
      limits: { readsMax: 0, writesMax: 7 },
      anonymousAuth: true,
      tokenAuthFile: "tokens.csv",
      serviceAccounts: false,
    });
  });

  it.each([
    [{ authorizationMode: "Node,ABAC" }, '"ABAC" is not one of'],
    [{ authorizationMode: "" }, '"" is not one of'],
    [{ disableAdmissionPlugins: "NodeRestriction" }, '"NodeRestriction" cannot be disabled'],
    [{ maxRequestsInflight: "-1" }, '--max-requests-inflight: "-1"'],
    [{ maxMutatingRequestsInflight: "many" }, '--max-mutating-requests-inflight: "many"'],
  ])("%j is refused", (flags, why) => {
    expect(accessOptions(flags)).toContain(why);
  });
});
