import { createHmac, createPublicKey, verify } from "node:crypto";
import type { Stored } from "@longshore/kube";
import { beforeEach, describe, expect, it } from "vitest";
import { adminUser } from "../api/api-request.ts";
import { createApiServer } from "../api-server.ts";
import { memoryStore } from "../storage/object-store.ts";
import { asker } from "../testing/ask.ts";
import { aServer } from "../testing/world.ts";
import { parseTokenFile } from "./parse-token-file.ts";
import { generateSigningKey } from "./signing-key.ts";

const key = generateSigningKey();
const issuer = "https://kubernetes.default.svc";
const inDefault = "api/v1/namespaces/default";

function aWorld(options: { emulatedVersion?: string; key?: string } = {}) {
  const { env, clock } = aServer();
  const server = createApiServer(env, {
    store: memoryStore(),
    controllers: false,
    serviceAccountKey: options.key ?? key,
    ...(options.emulatedVersion === undefined ? {} : { emulatedVersion: options.emulatedVersion }),
  });
  const admin = asker(server, adminUser);
  const account = admin.ask("create", `${inDefault}/serviceaccounts`, {
    metadata: { name: "bot" },
  }) as Stored;
  const mint = (spec: object = {}) =>
    admin.ask("create", `${inDefault}/serviceaccounts/bot/token`, { spec }) as never as {
      spec: { audiences: string[]; expirationSeconds: number };
      status: { token: string; expirationTimestamp: string };
    };
  /** The user that the token is for, or why it is not accepted. */
  const who = (token: string, audiences = [issuer]) => {
    const found = server.registry.context.tokens.authenticateToken(token, audiences);
    return "problem" in found ? found.problem : found.user;
  };
  return { server, clock, admin, account, mint, who };
}

let world: ReturnType<typeof aWorld>;
beforeEach(() => {
  world = aWorld();
});

const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());

describe("a token of a service account", () => {
  it("is good for its account until it ends", async () => {
    const { mint, who, clock, account } = world;
    const { spec, status } = mint();
    expect(spec).toMatchObject({ audiences: [issuer], expirationSeconds: 3600 });
    expect(who(status.token)).toMatchObject({
      name: "system:serviceaccount:default:bot",
      uid: account.metadata.uid,
      groups: ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
    });
    await clock.advance(3_599_000);
    expect(who(status.token)).toMatchObject({ uid: account.metadata.uid });
    await clock.advance(1_000);
    expect(who(status.token)).toContain("expired");
  });

  it("is good for the audiences that it names, and no others", () => {
    const { token } = world.mint({ audiences: ["x", "y"] }).status;
    expect(world.who(token, ["y", "z"])).toMatchObject({ name: "system:serviceaccount:default:bot" });
    expect(world.who(token)).toBe(
      `[invalid bearer token, token audiences ["x" "y"] is invalid for the target audiences ["${issuer}"]]`,
    );
    expect(() =>
      world.server.authenticate({ authorization: `Bearer ${token}`, certificate: undefined }),
    ).toThrow(expect.objectContaining({ code: 401 }));
  });

  it("can be checked by others with the key that is published", () => {
    const { token } = world.mint().status;
    const [header = "", claims = "", signature = ""] = token.split(".");
    const { keys } = world.server.accounts.keySet as { keys: { kid: string }[] };
    expect(JSON.parse(Buffer.from(header, "base64url").toString())).toEqual({
      alg: "ES256",
      kid: keys[0]?.kid,
    });
    const publicKey = createPublicKey({ key: keys[0] as never, format: "jwk" });
    const isGood = verify(
      "sha256",
      Buffer.from(`${header}.${claims}`),
      { key: publicKey, dsaEncoding: "ieee-p1363" },
      Buffer.from(signature, "base64url"),
    );
    expect(isGood).toBe(true);
    expect(JSON.stringify(keys)).not.toContain('"d"');
  });

  it("ends with its account, also when another takes the name", () => {
    const { admin, mint, who } = world;
    const { token } = mint().status;
    expect(who(token)).toMatchObject({ name: "system:serviceaccount:default:bot" });
    admin.ask("delete", `${inDefault}/serviceaccounts/bot`);
    expect(who(token)).toContain("Token has been invalidated");
    admin.ask("create", `${inDefault}/serviceaccounts`, { metadata: { name: "bot" } });
    expect(who(token)).toContain("Token has been invalidated");
  });

  it.each([
    ["Pod", "pods", { spec: { serviceAccountName: "bot", containers: [{ name: "c", image: "i" }] } }],
    ["Secret", "secrets", {}],
  ])("bound to a %s ends with it, also when another takes the name", (kind, resource, rest) => {
    const { admin, mint, who } = world;
    const create = () =>
      admin.ask("create", `${inDefault}/${resource}`, { metadata: { name: "x" }, ...rest });
    const uid = create().metadata?.uid;
    const { token } = mint({ boundObjectRef: { kind, apiVersion: "v1", name: "x", uid } }).status;
    expect(claimsOf(token)["kubernetes.io"][kind.toLowerCase()]).toEqual({ name: "x", uid });
    expect(who(token)).toMatchObject({ name: "system:serviceaccount:default:bot" });
    admin.ask("delete", `${inDefault}/${resource}/x`, { gracePeriodSeconds: 0 });
    create();
    expect(who(token)).toContain("Token has been invalidated");
  });

  it("bound to a pod says which, and where it runs", () => {
    const { admin, mint, who } = world;
    const node = admin.ask("create", "api/v1/nodes", { metadata: { name: "n1" } });
    const spec = { serviceAccountName: "bot", nodeName: "n1", containers: [{ name: "c", image: "i" }] };
    const { uid } =
      admin.ask("create", `${inDefault}/pods`, { metadata: { name: "p" }, spec }).metadata ?? {};
    const { token } = mint({ boundObjectRef: { kind: "Pod", apiVersion: "v1", name: "p" } }).status;
    expect(who(token)).toMatchObject({
      extra: {
        "authentication.kubernetes.io/pod-name": ["p"],
        "authentication.kubernetes.io/pod-uid": [uid],
        "authentication.kubernetes.io/node-name": ["n1"],
        "authentication.kubernetes.io/node-uid": [node.metadata?.uid],
        "authentication.kubernetes.io/credential-id": [expect.stringMatching(/^JTI=/)],
      },
    });
  });

  it("bound to a node needs a version that knows that", () => {
    const ref = { boundObjectRef: { kind: "Node", apiVersion: "v1", name: "n1" } };
    world.admin.ask("create", "api/v1/nodes", { metadata: { name: "n1" } });
    const { token } = world.mint(ref).status;
    expect(world.who(token)).toMatchObject({ name: "system:serviceaccount:default:bot" });
    world.admin.ask("delete", "api/v1/nodes/n1");
    expect(world.who(token)).toContain("invalidated");
    const before = aWorld({ emulatedVersion: "1.20" });
    before.admin.ask("create", "api/v1/nodes", { metadata: { name: "n1" } });
    expect(() => before.mint(ref)).toThrow("cannot bind token to object of type /v1, Kind=Node");
    expect(claimsOf(before.mint().status.token)).not.toHaveProperty("jti");
  });
});

describe("a token that is not quite one", () => {
  const forged = (header: object, claims: object, signature: string) => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    return `${part(header)}.${part(claims)}.${signature}`;
  };

  it("is refused", () => {
    const { mint, who, server } = world;
    const { token } = mint().status;
    const [header = "", claims = "", signature = ""] = token.split(".");
    const { kid } = (server.accounts.keySet as { keys: { kid: string }[] }).keys[0] ?? {};
    const more = { ...claimsOf(token), exp: 9_999_999_999 };
    const publicKey = JSON.stringify(server.accounts.keySet);
    const hmac = createHmac("sha256", publicKey).update(`${header}.${claims}`).digest("base64url");
    for (const bad of [
      forged({ alg: "none" }, more, ""),
      forged({ alg: "none", kid }, more, signature),
      forged({ alg: "HS256", kid }, claimsOf(token), hmac),
      forged({ alg: "ES256", kid }, more, signature),
      `${header}.${claims}.`,
      `${header}.${claims}`,
      `${header}.${claims}.${signature}.${signature}`,
      `${header}.${claims}.${Buffer.alloc(64).toString("base64url")}`,
      `${header}.${claims}.${"A".repeat(100_000)}`,
      aWorld({ key: generateSigningKey() }).mint().status.token,
    ]) {
      expect(who(bad), bad.slice(0, 200)).toBe("invalid bearer token");
    }
  });

  it("is refused by the server that it was not made for, although the key is the same", () => {
    const other = aWorld();
    // The seed is the same too, so its account must be one that came later.
    other.admin.ask("delete", `${inDefault}/serviceaccounts/bot`);
    other.admin.ask("create", `${inDefault}/serviceaccounts`, { metadata: { name: "bot" } });
    expect(other.who(world.mint().status.token)).toContain("invalidated");
  });
});

describe("a request for a token", () => {
  it.each([
    [{ expirationSeconds: 599 }, "may not specify a duration less than 10 minutes"],
    [{ expirationSeconds: 2 ** 32 + 1 }, "may not specify a duration larger than 2^32 seconds"],
    [{ boundObjectRef: { kind: "Pod", apiVersion: "v1", name: "gone" } }, 'pods "gone" not found'],
    [{ boundObjectRef: { kind: "Thing", apiVersion: "g/v2", name: "x" } }, "object of type g/v2, Kind=Thing"],
  ])("of %j is refused", (spec, why) => {
    expect(() => world.mint(spec)).toThrow(why);
  });

  it("for a pod that runs as another account is refused", () => {
    const spec = { serviceAccountName: "boss", containers: [{ name: "c", image: "i" }] };
    world.admin.ask("create", `${inDefault}/pods`, { metadata: { name: "p" }, spec });
    expect(() => world.mint({ boundObjectRef: { kind: "Pod", apiVersion: "v1", name: "p" } })).toThrow(
      "pod running with different serviceaccount name",
    );
  });
});

describe("a file of tokens", () => {
  it("has a holder a line", () => {
    expect(parseTokenFile('t1,jane,u1,"devs,ops"\n\n# a comment\nt2, joe ,\nt3,x,,one\n')).toEqual([
      { token: "t1", user: { name: "jane", uid: "u1", groups: ["devs", "ops"] } },
      { token: "t2", user: { name: "joe", groups: [] } },
      { token: "t3", user: { name: "x", groups: ["one"] } },
    ]);
  });

  it.each(["secret-token", "secret-token,jane", ",jane,1", 'secret-token,jane,1,"devs'])(
    "with %j is refused; the error does not contain the token",
    (line) => {
      const parse = () => parseTokenFile(`a,b,c\n${line}`);
      expect(parse).toThrow("line 2 of the token file");
      expect(parse).not.toThrow("secret-token");
    },
  );
});
