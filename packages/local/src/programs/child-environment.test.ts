import { describe, expect, it } from "vitest";
import { childEnvironment, inheritedVariables } from "./child-environment.ts";

describe("what programs of a cluster inherit", () => {
  it.each([
    "AWS_SECRET_ACCESS_KEY",
    "AWS_PROFILE",
    "GITHUB_TOKEN",
    "KUBECONFIG",
    "NODE_OPTIONS",
    "NODE_AUTH_TOKEN",
    "HTTPS_PROXY",
    "https_proxy",
    "SSH_AUTH_SOCK",
    "LD_PRELOAD",
    "npm_config__auth",
    "LC_",
    "LC_SECRET_1",
    "MY_LC_ALL",
    "LONGSHORE_SOMETHING",
    "path",
    "constructor",
    "__proto__",
  ])("is not %s", (name) => {
    const own = Object.fromEntries([[name, "secret"]]);
    expect(Object.entries(childEnvironment({ ...own, PATH: "/bin" }))).toEqual([["PATH", "/bin"]]);
  });

  it.each(["PATH", "HOME", "TMPDIR", "TZ", "LANG", "LC_ALL", "LC_CTYPE", "LONGSHORE_UNPRIVILEGED"])(
    "is %s",
    (name) => expect(childEnvironment({ [name]: "value" })).toEqual({ [name]: "value" }),
  );

  it("has a reason for each, and nothing for what is not set", () => {
    for (const [name, reason] of Object.entries(inheritedVariables)) expect(reason, name).toMatch(/\w+ \w+/);
    expect(childEnvironment({ PATH: undefined })).toEqual({});
  });

  it("is taken from this process", () => {
    expect(childEnvironment()).toMatchObject({ PATH: process.env.PATH });
  });
});
