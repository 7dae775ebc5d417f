/** What the dashboard says of its own freshness: on the virtual clock, over a server that goes away and comes back. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { type KubeClient, KubeTransportError, type Lease, resources } from "@longshore/kube";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { expect, test } from "vitest";
import type { DashboardState } from "./state.ts";
import { startStateFeed } from "./state-feed.ts";

const signal = new AbortController().signal;

/** A client whose server can be cut off (calls fail and watches break) or hung (nothing answers). */
function cutClient(kube: KubeClient): {
  readonly kube: KubeClient;
  state: "up" | "cut" | "hung";
  breakWatches(): void;
} {
  const breaks = new Set<() => void>();
  const hung = (within: AbortSignal) =>
    new Promise<never>((_, reject) => within.addEventListener("abort", () => reject(within.reason)));
  const cut = {
    state: "up" as "up" | "cut" | "hung",
    breakWatches: () => {
      for (const end of breaks) end();
    },
    kube: {
      ...kube,
      list: async (resource, options) => {
        if (cut.state === "hung") return hung(options.signal);
        if (cut.state === "cut") throw new KubeTransportError("connection refused");
        return kube.list(resource, options);
      },
      watch: (resource, options) => ({
        [Symbol.asyncIterator]: () => {
          const events = kube.watch(resource, options)[Symbol.asyncIterator]();
          const broken = new Promise<never>((_, reject) => {
            breaks.add(() => reject(new KubeTransportError("connection reset")));
          });
          broken.catch(() => {});
          return {
            next: () => Promise.race([events.next(), broken]),
            return: (value) => events.return?.(value) ?? Promise.resolve({ done: true, value: undefined }),
          };
        },
      }),
    } as KubeClient,
  };
  return cut;
}

async function inCluster(
  play: (world: {
    readonly clock: VirtualClock;
    readonly kube: KubeClient;
    readonly cut: ReturnType<typeof cutClient>;
    now(): DashboardState;
    readonly pictures: DashboardState[];
  }) => Promise<void>,
): Promise<void> {
  const clock = new VirtualClock();
  await clock.run(
    (async () => {
      const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
      const kube = createApiServer(env, { store: memoryStore() }).client();
      await kube.create(resources.nodes, { metadata: { name: "node-1" } }, { signal });
      const cut = cutClient(kube);
      const feed = startStateFeed({ ...env, kube: cut.kube });
      const pictures: DashboardState[] = [];
      feed.subscribe((json) => pictures.push(JSON.parse(json)));
      await clock.sleep(10_000, signal);
      await play({ clock, kube, cut, pictures, now: () => JSON.parse(feed.latest()) as DashboardState });
      await feed.stop();
    })(),
  );
}

/** Waits until everything is followed again: informers ask a server that was away for long every half minute. */
async function fresh(clock: VirtualClock, now: () => DashboardState): Promise<void> {
  for (let seconds = 0; seconds < 60 && now().stale.length > 0; seconds++) await clock.sleep(1000, signal);
  expect(now().stale).toEqual([]);
}

test("a server that is gone makes everything stale, since it was last heard; and it recovers by itself", async () => {
  await inCluster(async ({ clock, cut, now, kube }) => {
    expect(now().stale).toEqual([]);
    cut.state = "cut";
    cut.breakWatches();
    await clock.sleep(1000, signal);
    const { stale, nodes } = now();
    const away = stale.find(({ source }) => source === "API server");
    expect(away).toMatchObject({ error: "connection refused" });
    expect(Math.abs(Date.parse(away?.since ?? "") - (clock.now().getTime() - 1000))).toBeLessThanOrEqual(
      5000,
    );
    expect(stale.map(({ source }) => source)).toContain("pods");
    expect(nodes).toHaveLength(1); // As it was.
    await clock.sleep(60_000, signal);
    expect(now().stale.find(({ source }) => source === "API server")).toEqual(away);
    cut.state = "up";
    await kube.create(resources.nodes, { metadata: { name: "node-2" } }, { signal });
    await fresh(clock, now);
    expect(now().nodes).toHaveLength(2);
  });
});

test("a server that hangs, whose watches do not break, is noticed too", async () => {
  await inCluster(async ({ clock, cut, now }) => {
    cut.state = "hung";
    await clock.sleep(11_000, signal);
    expect(now().stale).toMatchObject([{ source: "API server", error: "deadline of 5000 ms exceeded" }]);
    cut.state = "up";
    await clock.sleep(10_000, signal);
    expect(now().stale).toEqual([]);
  });
});

const lease = (clock: VirtualClock): Lease => ({
  metadata: { name: "node-1", namespace: "kube-node-lease" },
  spec: { holderIdentity: "node-1", renewTime: `${clock.now().toISOString().slice(0, 23)}000Z` },
});

test("a node whose Lease is not renewed is said to be silent, and no longer once it is", async () => {
  await inCluster(async ({ clock, kube, now, pictures }) => {
    const made = await kube.create(resources.leases, lease(clock), { signal });
    await clock.sleep(39_000, signal);
    expect(now().nodes[0]?.silentSince).toBe("");
    const renewed = await kube.update(
      resources.leases,
      { ...made, spec: lease(clock).spec ?? {} },
      { signal },
    );
    await clock.sleep(39_000, signal);
    expect(now().nodes[0]?.silentSince).toBe("");
    expect(pictures).toHaveLength(1); // Renewals alone are no news.
    await clock.sleep(3000, signal);
    expect(now().nodes[0]?.silentSince).toBe(renewed.spec?.renewTime);
    await kube.update(resources.leases, { ...renewed, spec: lease(clock).spec ?? {} }, { signal });
    await clock.sleep(2000, signal);
    expect(now().nodes[0]?.silentSince).toBe("");
  });
});

test("a node that was silent stays so in the picture of a server that is unreachable", async () => {
  await inCluster(async ({ clock, kube, cut, now }) => {
    const { spec } = lease(clock);
    await kube.create(resources.leases, lease(clock), { signal });
    await clock.sleep(45_000, signal);
    expect(now().nodes[0]?.silentSince).toBe(spec?.renewTime);
    cut.state = "cut";
    cut.breakWatches();
    await clock.sleep(5000, signal);
    expect(now().stale.length).toBeGreaterThan(0);
    expect(now().nodes[0]?.silentSince).toBe(spec?.renewTime);
  });
});

test("while the server is unreachable, and just after, no node is reported silent", async () => {
  await inCluster(async ({ clock, kube, cut, now }) => {
    await kube.create(resources.leases, lease(clock), { signal });
    await clock.sleep(1000, signal);
    cut.state = "cut";
    cut.breakWatches();
    await clock.sleep(120_000, signal);
    expect(now().nodes[0]?.silentSince).toBe("");
    cut.state = "up";
    await fresh(clock, now);
    expect(now().nodes[0]?.silentSince).toBe("");
    await clock.sleep(42_000, signal);
    expect(now().nodes[0]?.silentSince).not.toBe("");
  });
});

test("the crossing is shown, in words, as it goes on", async () => {
  const clock = new VirtualClock();
  await clock.run(
    (async () => {
      const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
      const kube = createApiServer(env, { store: memoryStore() }).client();
      const facts = {
        plugin: "kubernetes.io/aws-ebs",
        direction: "migrate",
        startedAt: "t0",
        nodesDone: [],
      } as const;
      const by = { user: "u", host: "h", pid: 7, processStartedAt: "1" };
      const subjects = [{ kind: "Pod", namespace: "d", name: "w-0", why: "to end" }];
      const step = { name: "drain", nodeName: "n1", since: "t1" };
      let gone = false;
      const feed = startStateFeed({ ...env, kube }, async () => ({
        ...facts,
        by,
        step,
        waiting: { since: "t2", subjects },
        ...(gone ? { state: "interrupted", interruption: { how: "gone", at: "t3" } } : { state: "running" }),
      }));
      await clock.sleep(2000, signal);
      const now = () => (JSON.parse(feed.latest()) as DashboardState).crossing;
      expect(now()).toEqual({
        state: "running",
        direction: "migrate",
        plugin: "kubernetes.io/aws-ebs",
        nodesDone: 0,
        by: "u@h, process 7",
        step: { name: "n1: drain", since: "t1" },
        waiting: { for: "Pod d/w-0 (to end)", since: "t2" },
      });
      gone = true;
      await clock.sleep(2000, signal);
      expect(now()).toMatchObject({
        state: "interrupted",
        interruption: { why: "its process is gone", since: "t3" },
      });
      await feed.stop();
    })(),
  );
});
