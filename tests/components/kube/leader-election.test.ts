import { createApiServer, memoryStore } from "@longshore/apiserver";
import { type KubeClient, KubeTransportError, resources, startLeaderElection } from "@longshore/kube";
import { recordingMeter } from "@longshore/runtime";
import { virtualEnv } from "@longshore/testing/kube";
import { expect, test } from "vitest";

const signal = new AbortController().signal;

interface Link {
  isUp: boolean;
  /** Requests arrive and are done; their answers are lost. */
  isMute?: boolean;
}

function world() {
  const env = virtualEnv();
  const kube = createApiServer(env, { store: memoryStore() }).client();
  const log: string[] = [];
  const leading = new Set<string>();
  let together = 0;
  /** A candidate whose connection can be cut. */
  const candidate = (identity: string) => {
    const link: Link = { isUp: true };
    const election = startLeaderElection(
      { ...env, kube: cuttable(kube, link) },
      {
        name: "test",
        namespace: "default",
        identity,
        async lead(term) {
          log.push(`${identity} leads`);
          leading.add(identity);
          together = Math.max(together, leading.size);
          await new Promise<void>((resolve) =>
            term.addEventListener("abort", () => resolve(), { once: true }),
          );
          leading.delete(identity);
          log.push(`${identity} ends`);
        },
        onLost: () => log.push(`${identity} lost`),
      },
    );
    return { ...election, link, election };
  };
  return { env, kube, log, candidate, together: () => together };
}

function cuttable(kube: KubeClient, link: Link): KubeClient {
  return new Proxy(kube, {
    get(target, name) {
      const method = Reflect.get(target, name) as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        if (!link.isUp) return Promise.reject(new KubeTransportError("cut off"));
        const answer = method.apply(target, args);
        return link.isMute === true ? new Promise(() => {}) : answer;
      };
    },
  });
}

test("one of two leads; when it stops, the other takes over at once", async () => {
  const { env, log, candidate, kube } = world();
  const a = candidate("a");
  await env.clock.advance(1000);
  const b = candidate("b");
  await env.clock.advance(60_000);
  expect(log).toEqual(["a leads"]);
  expect([a.election.isLeader(), b.election.isLeader()]).toEqual([true, false]);
  await a.election.stop();
  const lease = await kube.get(resources.leases, { name: "test", namespace: "default" }, { signal });
  expect(lease?.spec?.holderIdentity).toBe("");
  await env.clock.advance(3000);
  expect(log).toEqual(["a leads", "a ends", "b leads"]);
  const taken = await kube.get(resources.leases, { name: "test", namespace: "default" }, { signal });
  expect(taken?.spec).toMatchObject({ holderIdentity: "b", leaseDurationSeconds: 15, leaseTransitions: 1 });
  await b.election.stop();
});

test("a leader that stops while a renewal is under way releases the lease nevertheless", async () => {
  const { env, candidate, kube } = world();
  const a = candidate("a");
  await env.clock.advance(1000);
  a.link.isMute = true;
  const renewed = async () => {
    const lease = await kube.get(resources.leases, { name: "test", namespace: "default" }, { signal });
    return lease?.spec?.renewTime;
  };
  const before = await renewed();
  await env.clock.advance(3000);
  expect(await renewed()).not.toBe(before);
  a.link.isMute = false;
  await a.election.stop();
  const lease = await kube.get(resources.leases, { name: "test", namespace: "default" }, { signal });
  expect(lease?.spec?.holderIdentity).toBe("");
});

test("a leader that is cut off ends before another begins, and comes back as a candidate", async () => {
  const { env, log, candidate, together } = world();
  const a = candidate("a");
  await env.clock.advance(1000);
  const b = candidate("b");
  await env.clock.advance(30_000);
  a.link.isUp = false;
  await env.clock.advance(60_000);
  expect(log).toEqual(["a leads", "a ends", "a lost", "b leads"]);
  expect(together()).toBe(1);
  a.link.isUp = true;
  b.link.isUp = false;
  await env.clock.advance(60_000);
  expect(log.slice(4)).toEqual(["b ends", "b lost", "a leads"]);
  expect(together()).toBe(1);
  await a.election.stop();
  await b.election.stop();
});

test("jumps of the wall clock change nothing", async () => {
  const { env, log, candidate } = world();
  const a = candidate("a");
  await env.clock.advance(1000);
  const b = candidate("b");
  await env.clock.advance(30_000);
  env.clock.jumpWall(3_600_000);
  await env.clock.advance(30_000);
  env.clock.jumpWall(-7_200_000);
  await env.clock.advance(30_000);
  expect(log).toEqual(["a leads"]);
  await a.election.stop();
  await b.election.stop();
});

test("a short outage is survived", async () => {
  const { env, log, candidate } = world();
  const a = candidate("a");
  await env.clock.advance(30_000);
  a.link.isUp = false;
  await env.clock.advance(7000);
  a.link.isUp = true;
  await env.clock.advance(60_000);
  expect(log).toEqual(["a leads"]);
  await a.election.stop();
});

test("whose lease was taken by another ends its term at the next renewal", async () => {
  const { env, log, candidate, kube } = world();
  const a = candidate("a");
  await env.clock.advance(5000);
  const lease = await kube.get(resources.leases, { name: "test", namespace: "default" }, { signal });
  if (lease === undefined) throw new Error("no lease");
  await kube.update(
    resources.leases,
    { ...lease, spec: { ...lease.spec, holderIdentity: "thief" } },
    { signal },
  );
  await env.clock.advance(3000);
  expect(log).toEqual(["a leads", "a ends", "a lost"]);
  await a.election.stop();
});

test("a leader whose work fails lets go and competes again", async () => {
  const env = virtualEnv();
  const kube = createApiServer(env, { store: memoryStore() }).client();
  let terms = 0;
  let lost = 0;
  const election = startLeaderElection(
    { ...env, kube },
    {
      name: "test",
      namespace: "default",
      identity: "a",
      async lead() {
        terms++;
        throw new Error("broken");
      },
      onLost: () => lost++,
    },
  );
  await env.clock.advance(10_000);
  expect(terms).toBeGreaterThan(2);
  expect(lost).toBe(terms);
  await election.stop();
});

test("durations that cannot work are refused", () => {
  const env = virtualEnv();
  const kube = createApiServer(env, { store: memoryStore() }).client();
  const options = { name: "test", namespace: "default", identity: "a", lead: async () => {} };
  expect(() => startLeaderElection({ ...env, kube }, { ...options, renewDeadlineMs: 15_000 })).toThrow(
    RangeError,
  );
});

test("a lease that is not let go is kept until it lapses, and has its labels from its holder", async () => {
  const env = virtualEnv();
  const kube = createApiServer(env, { store: memoryStore() }).client();
  const start = (identity: string) =>
    startLeaderElection(
      { ...env, kube },
      {
        name: "test",
        namespace: "default",
        identity,
        releaseOnStop: false,
        labels: { of: identity },
        lead: (term) => new Promise((resolve) => term.addEventListener("abort", () => resolve())),
      },
    );
  const read = () => kube.get(resources.leases, { name: "test", namespace: "default" }, { signal });
  const a = start("a");
  await env.clock.advance(1000);
  expect((await read())?.metadata.labels).toEqual({ of: "a" });
  await a.stop();
  expect((await read())?.spec?.holderIdentity).toBe("a");
  const b = start("b");
  await env.clock.advance(14_000);
  expect(b.isLeader()).toBe(false);
  await env.clock.advance(5000);
  expect(b.isLeader()).toBe(true);
  expect((await read())?.metadata.labels).toEqual({ of: "b" });
  await b.stop();
});

test("work that does not end with its term learns how long ago the lease lapsed", async () => {
  const env = virtualEnv();
  const kube = createApiServer(env, { store: memoryStore() }).client();
  const link: Link = { isUp: true };
  let end = () => {};
  const election = startLeaderElection(
    { ...env, kube: cuttable(kube, link) },
    {
      name: "test",
      namespace: "default",
      identity: "a",
      lead: () =>
        new Promise((resolve) => {
          end = resolve;
        }),
    },
  );
  expect(election.overdueMs()).toBe(0);
  await env.clock.advance(60_000);
  expect([election.isLeader(), election.overdueMs()]).toEqual([true, 0]);
  link.isUp = false;
  await env.clock.advance(60_000);
  expect(election.isLeader()).toBe(false);
  // The last renewal began at most a retry period before the cut, and the lease lasted 15 s more.
  expect(election.overdueMs()).toBeGreaterThan(42_000);
  expect(election.overdueMs()).toBeLessThanOrEqual(45_000);
  end();
  await env.clock.settle();
  expect(election.overdueMs()).toBe(0);
  link.isUp = true;
  await env.clock.run(election.stop());
});

test("the metrics say who leads, and count renewals that had to read the lease", async () => {
  const { env, kube } = world();
  const meter = recordingMeter();
  const options = { name: "test", namespace: "default", identity: "a" };
  const lead = (term: AbortSignal) =>
    new Promise<void>((resolve) => term.addEventListener("abort", () => resolve(), { once: true }));
  const election = startLeaderElection({ ...env, kube, meter }, { ...options, lead });
  const leads = () => meter.value("leader_election_master_status", { name: "test" });
  expect(leads()).toBe(0);
  await env.clock.advance(1000);
  expect(leads()).toBe(1);
  expect(meter.value("leader_election_slowpath_total", { name: "test" })).toBe(0);
  const lease = { name: "test", namespace: "default" };
  await kube.patch(
    resources.leases,
    lease,
    { type: "merge", body: { metadata: { labels: { a: "b" } } } },
    { signal },
  );
  await env.clock.advance(5000);
  expect(leads()).toBe(1);
  expect(meter.value("leader_election_slowpath_total", { name: "test" })).toBe(1);
  await election.stop();
  expect(leads()).toBe(0);
});

test("who leads, and who has ended, is said on the Lease", async () => {
  const { env, kube } = world();
  const election = startLeaderElection(
    { ...env, kube },
    {
      name: "test",
      namespace: "default",
      identity: "a",
      recordEvents: true,
      lead: (term) =>
        new Promise<void>((resolve) => term.addEventListener("abort", () => resolve(), { once: true })),
    },
  );
  await env.clock.run(
    (async () => {
      await env.clock.sleep(5000, signal);
      await election.stop();
    })(),
  );
  const lease = await kube.get(resources.leases, { name: "test", namespace: "default" }, { signal });
  const { items } = await kube.list(resources.events, { signal });
  expect(
    items.map(({ reason, type, message, source, involvedObject }) => ({
      reason,
      type,
      message,
      source: source?.component,
      about: involvedObject.kind,
      uid: involvedObject.uid,
    })),
  ).toEqual(
    ["a became leader", "a stopped leading"].map((message) => ({
      reason: "LeaderElection",
      type: "Normal",
      message,
      source: "test/a",
      about: "Lease",
      uid: lease?.metadata.uid,
    })),
  );
});

test("a candidate stops soon where its events cannot be written", async () => {
  const { env, kube } = world();
  const mute = new Proxy(kube, {
    get(target, name) {
      const method = Reflect.get(target, name) as (...args: unknown[]) => unknown;
      return (...args: unknown[]) =>
        name === "create" && args[0] === resources.events
          ? new Promise(() => {})
          : method.apply(target, args);
    },
  });
  const election = startLeaderElection(
    { ...env, kube: mute },
    {
      name: "test",
      namespace: "default",
      identity: "a",
      recordEvents: true,
      lead: (term) =>
        new Promise<void>((resolve) => term.addEventListener("abort", () => resolve(), { once: true })),
    },
  );
  await env.clock.run(
    (async () => {
      await env.clock.sleep(5000, signal);
      const before = env.clock.monotonicMs();
      await election.stop();
      expect(env.clock.monotonicMs() - before).toBeLessThanOrEqual(1000);
    })(),
  );
});
