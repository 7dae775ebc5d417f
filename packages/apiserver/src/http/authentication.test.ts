import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { anonymousUser, createAuthenticator } from "./authentication.ts";
import { mayDoAll, mayReadPath } from "./authorization.ts";

const admin = { name: "admin", groups: ["system:masters"] };
const jane = { name: "jane", groups: ["devs"] };
const tokens = [
  { token: "secret-a", user: admin },
  { token: "secret-b", user: jane },
];
const none = { authorization: undefined, certificate: undefined };

describe("a token", () => {
  const authenticate = createAuthenticator({ tokens });

  it.each(["Bearer secret-b", "bearer secret-b", "Bearer  secret-b "])("is known in %j", (authorization) => {
    const user = authenticate({ ...none, authorization });
    expect(user).toEqual({ name: "jane", groups: ["devs", "system:authenticated"] });
  });

  it.each(["Bearer secret-", "Bearer secret-bb", "Bearer x", `Bearer ${"x".repeat(10_000)}`])(
    "that nobody issued is refused, also beside a certificate",
    (authorization) => {
      const certificate = { commonName: "root", organizations: ["system:masters"] };
      const refused = expect.objectContaining({ code: 401 });
      expect(() => authenticate({ authorization, certificate: undefined })).toThrow(refused);
      expect(() => authenticate({ authorization, certificate })).toThrow(refused);
    },
  );

  it("is compared as a digest, in a time that does not depend on it", () => {
    const text = readFileSync(new URL("./authentication.ts", import.meta.url), "utf8");
    expect(text).toContain("timingSafeEqual(entry.digest, given)");
    expect(text).not.toMatch(/token\s*===/);
  });
});

describe("somebody without a token", () => {
  it("is anonymous, whatever other scheme is used", () => {
    const authenticate = createAuthenticator({ tokens });
    for (const authorization of [undefined, "", "Bearer", "Bearer ", "Basic YTpi"]) {
      expect(authenticate({ ...none, authorization })).toBe(anonymousUser);
    }
  });

  it("is refused where nobody may be anonymous", () => {
    const authenticate = createAuthenticator({ tokens, anonymousAuth: false });
    expect(() => authenticate(none)).toThrow(expect.objectContaining({ code: 401 }));
  });

  it("is who the certificate says", () => {
    const authenticate = createAuthenticator({ tokens, anonymousAuth: false });
    const certificate = { commonName: "system:node:n1", organizations: ["system:nodes"] };
    const user = { name: "system:node:n1", groups: ["system:nodes", "system:authenticated"] };
    expect(authenticate({ ...none, certificate })).toEqual(user);
  });
});

describe("what a user may do", () => {
  it.each([
    ["/healthz", true, true],
    ["/livez/ping", true, true],
    ["/version", true, true],
    ["/api", false, true],
    ["/apis/apps/v1", false, true],
    ["/openapi/v2", false, true],
    ["/apiserver", false, false],
    ["/", false, false],
    ["/metrics", false, false],
  ])("reading %s: anonymous %s, authenticated %s", (path, anonymous, authenticated) => {
    expect(mayReadPath(anonymousUser, path)).toBe(anonymous);
    expect(mayReadPath({ name: "j", groups: ["system:authenticated"] }, path)).toBe(authenticated);
    expect(mayReadPath(admin, path)).toBe(true);
  });

  it("is everything for the cluster's own components only", () => {
    expect(mayDoAll({ name: "n", groups: ["system:nodes"] })).toBe(true);
    expect(mayDoAll({ name: "system:masters", groups: ["system:authenticated"] })).toBe(false);
  });
});
