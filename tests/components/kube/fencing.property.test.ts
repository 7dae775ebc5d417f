/**
 * Property of the fence: a candidate sends nothing once another may have taken its lease, for any clock skew, and for
 * any suspension of its process, at any await.
 */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { interceptWrites, type KubeClient, resources, startLeaderElection } from "@longshore/kube";
import { SeededRandom } from "@longshore/runtime";
import { ProcessClock, virtualEnv } from "@longshore/testing/kube";
import fc from "fast-check";
import { expect, test } from "vitest";

const lease = { name: "test", namespace: "default" };

/** Runs candidates that write all the time. Returns the writes sent while another held the lease, and their count. */
async function run(seed: number, count: number, fenced: boolean) {
  const env = virtualEnv(seed);
  const random = new SeededRandom(seed).fork("faults");
  const server = createApiServer(env, { store: memoryStore() }).client();
  const { signal } = new AbortController();
  let holder = "";
  const late: string[] = [];
  let sent = 0;
  let terms = 0;
  const candidates = Array.from({ length: count }, (_, index) => {
    const identity = String(index);
    // Up to five of a hundred fast or slow, and hours off.
    const rate = 0.95 + random.below(100, "rate") / 1000;
    const wallOffsetMs = random.below(20_000_000, "wall") - 10_000_000;
    const clock = new ProcessClock(env.clock, { rate, wallOffsetMs });
    const kube = interceptWrites(server, async (request, within, send) => {
      if (request.resource.kind === "ConfigMap") {
        sent++;
        if (holder !== identity) late.push(`${identity} while ${holder}`);
      }
      const answer = await send(within);
      if (request.resource.kind === "Lease") {
        const current = await server.get(resources.leases, lease, { signal });
        holder = current?.spec?.holderIdentity || holder;
      }
      await clock.running();
      return answer;
    });
    const reading: KubeClient = {
      ...kube,
      async get(resource, ref, options) {
        const answer = await kube.get(resource, ref, options);
        await clock.running();
        return answer;
      },
    };
    const election = startLeaderElection(
      { ...env, clock, random: env.random.fork(identity), kube: reading },
      {
        ...lease,
        identity,
        async lead(term, given) {
          terms++;
          const client = fenced ? given : reading;
          while (!term.aborted) {
            const name = `w-${identity}-${sent}`;
            const object = { metadata: { name, namespace: "default" } };
            await client.create(resources.configMaps, object, { signal: term });
            await clock.sleep(random.below(3000, "work"), term);
          }
        },
      },
    );
    return { election, clock };
  });
  for (let i = 0; i < 30; i++) {
    await env.clock.advance(random.below(15_000, "time"));
    const { clock } = candidates[random.below(count, "who")] ?? {};
    clock?.stopFor(random.below(40_000, "pause"));
  }
  await env.clock.run(Promise.all(candidates.map(({ election }) => election.stop())));
  return { late, sent, terms };
}

test("a candidate whose lease another holds writes nothing", async () => {
  let terms = 0;
  await fc.assert(
    fc.asyncProperty(fc.integer(), fc.integer({ min: 2, max: 4 }), async (seed, count) => {
      const { late, sent, ...rest } = await run(seed, count, true);
      expect(late).toEqual([]);
      expect(sent).toBeGreaterThan(10);
      terms += rest.terms;
    }),
    { numRuns: 20 },
  );
  expect(terms).toBeGreaterThan(60); // The lead changed hands, more than once a run.
});

test("without the fence the signal alone comes too late", async () => {
  const late: string[] = [];
  for (let seed = 1; seed <= 10; seed++) late.push(...(await run(seed, 3, false)).late);
  expect(late.length).toBeGreaterThan(0);
});
