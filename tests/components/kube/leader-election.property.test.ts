/** Property of the election: never two leaders, whatever the network does, and eventually one. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { type KubeClient, KubeTransportError, startLeaderElection } from "@longshore/kube";
import { type Random, SeededRandom } from "@longshore/runtime";
import { virtualEnv } from "@longshore/testing/kube";
import fc from "fast-check";
import { expect, test } from "vitest";

const never = () => new AbortController().signal;

/** A network that delays requests and answers by up to 25 s, loses both, and delivers even after the caller gave up. */
function badNetwork(
  kube: KubeClient,
  env: ReturnType<typeof virtualEnv>,
  random: Random,
  link: { isBad: boolean },
) {
  const delay = async () => {
    if (!link.isBad || random.below(2, "slow") === 0) return;
    await env.clock.sleep(random.below(25_000, "delay"), never());
    if (random.below(4, "lost") === 0) throw new KubeTransportError("lost");
  };
  return new Proxy(kube, {
    get(target, name) {
      const method = (Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>).bind(target);
      return async (...args: unknown[]) => {
        await delay();
        // The request is on its way, so its sender can no longer take it back.
        const options = { ...(args.at(-1) as object), signal: never() };
        const answer = await method(...args.slice(0, -1), options);
        await delay();
        return answer;
      };
    },
  });
}

test("never two leaders, and one in the end", async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), fc.integer({ min: 2, max: 4 }), async (seed, count) => {
      const env = virtualEnv(seed);
      const random = new SeededRandom(seed).fork("network");
      const kube = createApiServer(env, { store: memoryStore() }).client();
      const leading = new Set<number>();
      let together = 0;
      const link = { isBad: true };
      const elections = Array.from({ length: count }, (_, candidate) =>
        startLeaderElection(
          { ...env, random: env.random.fork(String(candidate)), kube: badNetwork(kube, env, random, link) },
          {
            name: "test",
            namespace: "default",
            identity: String(candidate),
            async lead(term) {
              leading.add(candidate);
              together = Math.max(together, leading.size);
              await new Promise<void>((resolve) => {
                if (term.aborted) resolve();
                term.addEventListener("abort", () => resolve(), { once: true });
              });
              leading.delete(candidate);
            },
          },
        ),
      );
      await env.clock.advance(20 * 60_000);
      link.isBad = false;
      await env.clock.advance(2 * 60_000);
      expect(together).toBe(1);
      expect(leading.size).toBe(1);
      expect(elections.filter((election) => election.isLeader())).toHaveLength(1);
      await env.clock.run(Promise.all(elections.map((election) => election.stop())));
    }),
    { numRuns: 25 },
  );
});
