/** Tokens of service accounts on a node. Source: docs/behaviour/pod-volumes.md 6. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { type KubeClient, type Pod, resources, type Stored } from "@longshore/kube";
import { noMeter, recordingLogger, SeededRandom, VirtualClock } from "@longshore/runtime";
import { beforeEach, describe, expect, it } from "vitest";
import { createServiceAccountTokens, ServiceAccountTokenError } from "./service-account-tokens.ts";

const signal = new AbortController().signal;
const namespace = "default";

let clock: VirtualClock;
let logger: ReturnType<typeof recordingLogger>;
let kube: KubeClient;
let asked: object[];
let refusal: Error | undefined;

beforeEach(async () => {
  clock = new VirtualClock();
  logger = recordingLogger();
  const env = { clock, random: new SeededRandom(1), logger, meter: noMeter };
  const server = createApiServer(env, { store: memoryStore() }).client();
  await server.create(resources.serviceAccounts, { metadata: { name: "default", namespace } }, { signal });
  asked = [];
  refusal = undefined;
  kube = new Proxy(server, {
    get(target, key) {
      const member = Reflect.get(target, key) as (...args: unknown[]) => unknown;
      if (key !== "createSubresource") return member.bind(target);
      return (...args: unknown[]) => {
        asked.push(args[3] as object);
        return refusal === undefined ? member.apply(target, args) : Promise.reject(refusal);
      };
    },
  });
});

const tokens = () =>
  createServiceAccountTokens({ clock, random: new SeededRandom(2), logger, meter: noMeter, kube });

async function pod(name = "p"): Promise<Stored<Pod>> {
  await clock.settle();
  const spec = { serviceAccountName: "default", containers: [{ name: "c", image: "i" }] };
  return kube.create(resources.pods, { metadata: { name, namespace }, spec }, { signal });
}

describe("service account tokens (docs/behaviour/pod-volumes.md 6)", () => {
  it("a token is requested for its audience and life, bound to the pod", async () => {
    const p = await pod();
    const demand = { audience: "vault", expirationSeconds: 7200 };
    const { token, expirationTimestamp } = await tokens().serviceAccountToken(p, demand, signal);
    expect(token).not.toBe("");
    expect(Date.parse(expirationTimestamp) - clock.now().getTime()).toBe(7_200_000);
    expect(asked).toMatchObject([
      {
        spec: {
          audiences: ["vault"],
          expirationSeconds: 7200,
          boundObjectRef: { apiVersion: "v1", kind: "Pod", name: "p", uid: p.metadata.uid },
        },
      },
    ]);
  });

  it("it is handed out from the cache until 80 % of its life have passed, and is renewed then", async () => {
    const manager = tokens();
    const p = await pod();
    const first = await manager.serviceAccountToken(p, { expirationSeconds: 3600 }, signal);
    expect(first.renewInMs).toBeLessThanOrEqual(2_880_000);
    expect(first.renewInMs).toBeGreaterThan(2_869_000);
    await clock.advance(first.renewInMs - 1);
    expect((await manager.serviceAccountToken(p, { expirationSeconds: 3600 }, signal)).token).toBe(
      first.token,
    );
    await clock.advance(1);
    const second = await manager.serviceAccountToken(p, { expirationSeconds: 3600 }, signal);
    expect(second.token).not.toBe(first.token);
    expect(asked).toHaveLength(2);
  });

  it("one of long life is renewed after 24 hours at the latest", async () => {
    const p = await pod();
    const life = { expirationSeconds: 30 * 24 * 3600 };
    const { renewInMs } = await tokens().serviceAccountToken(p, life, signal);
    expect(renewInMs).toBeLessThanOrEqual(24 * 3_600_000);
    expect(renewInMs).toBeGreaterThan(24 * 3_600_000 - 10_001);
  });

  it("pods, audiences and lives share none", async () => {
    const manager = tokens();
    const [p, q] = [await pod("p"), await pod("q")];
    const all = [
      await manager.serviceAccountToken(p, {}, signal),
      await manager.serviceAccountToken(q, {}, signal),
      await manager.serviceAccountToken(p, { audience: "a" }, signal),
      await manager.serviceAccountToken(p, { expirationSeconds: 700 }, signal),
    ];
    expect(new Set(all.map(({ token }) => token)).size).toBe(4);
  });

  it("callers at the same time share one request", async () => {
    const manager = tokens();
    const p = await pod();
    const both = await Promise.all([
      manager.serviceAccountToken(p, {}, signal),
      manager.serviceAccountToken(p, {}, signal),
    ]);
    expect(asked).toHaveLength(1);
    expect(both[0].token).toBe(both[1].token);
  });

  it("one that cannot be renewed is handed out until it expires, and asked for again soon", async () => {
    const manager = tokens();
    const p = await pod();
    const first = await manager.serviceAccountToken(p, { expirationSeconds: 3600 }, signal);
    refusal = new Error("the server is down");
    await clock.advance(3_000_000);
    const late = await manager.serviceAccountToken(p, { expirationSeconds: 3600 }, signal);
    expect(late).toMatchObject({ token: first.token, renewInMs: 10_000 });
    await clock.advance(600_000);
    const expired = manager.serviceAccountToken(p, { expirationSeconds: 3600 }, signal);
    await expect(expired).rejects.toThrow(ServiceAccountTokenError);
    await expect(expired).rejects.toThrow("pod default/p: service account default gave no token");
    expect(JSON.stringify(logger.lines)).not.toContain(first.token);
  });

  it("those of a pod that is gone are forgotten", async () => {
    const manager = tokens();
    const p = await pod();
    await manager.serviceAccountToken(p, {}, signal);
    manager.forgetPod(p.metadata.uid);
    await manager.serviceAccountToken(p, {}, signal);
    expect(asked).toHaveLength(2);
  });
});
