import { describe, expect, it } from "vitest";
import type { ResourceAttributes } from "../authorization/authorizer.ts";
import { emulatedVersion } from "../versions/emulated-version.ts";
import type { Request } from "./exchange.ts";
import { impersonated } from "./impersonation.ts";

const admin = { name: "admin", groups: ["system:masters"] };

/** What becomes of the user, and what was asked leave for. */
function act(
  headers: readonly (readonly [string, string])[],
  options: { refuse?: string; version?: string } = {},
) {
  const asked: string[] = [];
  const authorizer = {
    authorize(attributes: ResourceAttributes) {
      const { verb, group, resource, subresource, namespace, name } = attributes;
      const what = [group, resource, subresource, namespace, name].filter(
        (part) => part !== undefined && part !== "",
      );
      asked.push(`${verb} ${what.join(" ")}`);
      return { allowed: resource !== options.refuse, reason: "" };
    },
  };
  const request = {
    headers: Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
    rawHeaders: headers.flat(),
  };
  const version = emulatedVersion(options.version ?? "1.36");
  const user = impersonated(authorizer as never, version, admin, request as never as Request);
  return { user, asked };
}

describe("acting as another user", () => {
  it("changes nothing without the headers", () => {
    const { user, asked } = act([["Accept", "*/*"]]);
    expect(user).toBe(admin);
    expect(asked).toEqual([]);
  });

  it.each([
    ["jane", { name: "jane", groups: ["system:authenticated"] }, "impersonate users jane"],
    [
      "system:anonymous",
      { name: "system:anonymous", groups: ["system:unauthenticated"] },
      "impersonate users system:anonymous",
    ],
    [
      "system:serviceaccount:team:bot",
      {
        name: "system:serviceaccount:team:bot",
        groups: ["system:serviceaccounts", "system:serviceaccounts:team", "system:authenticated"],
      },
      "impersonate serviceaccounts team bot",
    ],
    [
      "system:serviceaccount:Team:bot",
      { name: "system:serviceaccount:Team:bot", groups: ["system:authenticated"] },
      "impersonate users system:serviceaccount:Team:bot",
    ],
  ])("as %s", (name, user, asked) => {
    expect(act([["Impersonate-User", name]])).toEqual({ user, asked: [asked] });
  });

  it("asks leave for each group, extra value and uid", () => {
    const { user, asked } = act([
      ["Impersonate-User", "jane"],
      ["Impersonate-Group", "devs, all of them"],
      ["impersonate-group", "ops"],
      ["Impersonate-Extra-Example.com%2Fscope", "a"],
      ["Impersonate-Extra-example.com%2fscope", "b"],
      ["Impersonate-Uid", "u1"],
    ]);
    expect(user).toEqual({
      name: "jane",
      uid: "u1",
      groups: ["devs, all of them", "ops", "system:authenticated"],
      extra: { "example.com/scope": ["a", "b"] },
    });
    expect(asked).toEqual([
      "impersonate users jane",
      "impersonate groups devs, all of them",
      "impersonate groups ops",
      "impersonate authentication.k8s.io userextras example.com/scope a",
      "impersonate authentication.k8s.io userextras example.com/scope b",
      "impersonate authentication.k8s.io uids u1",
    ]);
  });

  it.each([
    ["users", "users"],
    ["groups", "groups"],
    ["userextras", "userextras"],
    ["uids", "uids"],
  ])("is refused when one of its %s is", (refuse) => {
    const headers = [
      ["Impersonate-User", "jane"],
      ["Impersonate-Group", "devs"],
      ["Impersonate-Extra-scope", "a"],
      ["Impersonate-Uid", "u1"],
    ] as const;
    expect(() => act(headers, { refuse })).toThrow(
      expect.objectContaining({ code: 403, message: expect.stringContaining("cannot impersonate resource") }),
    );
  });

  it.each([["Impersonate-Group"], ["Impersonate-Extra-x"], ["Impersonate-Uid"]])(
    "with %s alone is an error",
    (header) => {
      expect(() => act([[header, "x"]])).toThrow(expect.objectContaining({ code: 500 }));
    },
  );

  it("knows no uid before 1.22", () => {
    const headers = [
      ["Impersonate-User", "jane"],
      ["Impersonate-Uid", "u1"],
    ] as const;
    expect(act(headers, { version: "1.20" }).user).toEqual({
      name: "jane",
      groups: ["system:authenticated"],
    });
  });
});
