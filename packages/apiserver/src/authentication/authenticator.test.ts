import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { anonymousUser, createAuthenticator } from "./authenticator.ts";
import { anyToken, staticTokens } from "./token-authenticator.ts";

const admin = { name: "admin", groups: ["system:masters"] };
const jane = { name: "jane", groups: ["devs"] };
const tokens = [
  { token: "secret-a", user: admin },
  { token: "secret-b", user: jane },
];
const known = anyToken([staticTokens(tokens, "api")]);
const authenticateToken = (token: string) => known.authenticateToken(token, ["api"]);
const none = { authorization: undefined, certificate: undefined };

describe("a token", () => {
  const authenticate = createAuthenticator({ authenticateToken });

  it.each(["Bearer secret-b", "bearer secret-b", "Bearer  secret-b "])("is known in %j", (authorization) => {
    const user = authenticate({ ...none, authorization });
    expect(user).toEqual({ name: "jane", groups: ["devs", "system:authenticated"] });
  });

  it.each(["Bearer secret-", "Bearer secret-bb", "Bearer x", `Bearer ${"x".repeat(10_000)}`])(
    "that was not issued is refused, also beside a certificate",
    (authorization) => {
      const certificate = { commonName: "root", organizations: ["system:masters"] };
      const refused = expect.objectContaining({ code: 401 });
      expect(() => authenticate({ authorization, certificate: undefined })).toThrow(refused);
      expect(() => authenticate({ authorization, certificate })).toThrow(refused);
    },
  );

  it("is compared as a digest, in a time that does not depend on it", () => {
    const text = readFileSync(new URL("./token-authenticator.ts", import.meta.url), "utf8");
    expect(text).toContain("timingSafeEqual(entry.digest, given)");
    expect(text).not.toMatch(/token\s*===/);
  });
});

describe("a client without a token", () => {
  it("is anonymous, whatever other scheme is used", () => {
    const authenticate = createAuthenticator({ authenticateToken, anonymousAuth: true });
    for (const authorization of [undefined, "", "Bearer", "Bearer ", "Basic YTpi"]) {
      expect(authenticate({ ...none, authorization })).toBe(anonymousUser);
    }
  });

  it("is refused where anonymous requests are not allowed", () => {
    const authenticate = createAuthenticator({ authenticateToken });
    expect(() => authenticate(none)).toThrow(expect.objectContaining({ code: 401 }));
  });

  it("is who the certificate says", () => {
    const authenticate = createAuthenticator({ authenticateToken });
    const certificate = { commonName: "system:node:n1", organizations: ["system:nodes"] };
    const user = { name: "system:node:n1", groups: ["system:nodes", "system:authenticated"] };
    expect(authenticate({ ...none, certificate })).toEqual(user);
  });
});
