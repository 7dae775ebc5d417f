/**
 * Client, informer and leader election when things go wrong: refusals, forgotten versions, a killed
 * server, a cut or silent network. All against the real API server.
 */
import {
  type ConfigMap,
  createHttpClient,
  fixedCredential,
  type HttpKubeClient,
  isExpired,
  isTooManyRequests,
  KubeApiError,
  KubeTransportError,
  type LeaderElection,
  resources,
  startInformer,
  startLeaderElection,
} from "@longshore/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type ControlPlane,
  connectAs,
  eventually,
  openLink,
  realEnv,
  signal,
  startControlPlane,
} from "./support/index.ts";

const stranger = "system:serviceaccount:default:stranger";
let kubernetes: ControlPlane;
let kube: HttpKubeClient;

beforeAll(async () => {
  kubernetes = await startControlPlane({ users: [{ name: stranger }] });
  kube = await connectAs(kubernetes);
});
afterAll(async () => {
  await kube?.close();
  await kubernetes?.stop();
});

const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => new Error("it did not fail"),
    (error: unknown) => error,
  );

const configMap = (namespace: string, name: string, text = ""): ConfigMap => ({
  metadata: { name, namespace },
  data: { text },
});

async function makeNamespace(name: string): Promise<string> {
  await kube.create(resources.namespaces, { metadata: { name } }, { signal });
  return name;
}

describe("refusals", () => {
  test("of the API server carry its reason", async () => {
    const client = await connectAs(kubernetes, stranger);
    const forbidden = await failureOf(client.list(resources.persistentVolumes, { signal }));
    expect(forbidden).toBeInstanceOf(KubeApiError);
    expect(forbidden).toMatchObject({ code: 403, reason: "Forbidden" });
    await client.close();

    const invalid = await failureOf(
      kube.create(resources.persistentVolumes, { metadata: { name: "empty" }, spec: {} }, { signal }),
    );
    expect(invalid).toMatchObject({ code: 422, reason: "Invalid" });
    const causes = (invalid as KubeApiError).status.details?.causes ?? [];
    expect(causes.map(({ field }) => field)).toEqual(
      expect.arrayContaining(["spec.accessModes", "spec.capacity"]),
    );
  });

  test("of an unknown token and of a stranger's certificate are distinguished, and the errors contain no token", async () => {
    const token = "not-a-token-of-this-server";
    const credentials = fixedCredential({ authorization: `Bearer ${token}` });
    const config = { server: kubernetes.url, credentials };
    const unknown = createHttpClient(realEnv, { ...config, insecureSkipTlsVerify: true });
    const unauthorized = await failureOf(unknown.list(resources.nodes, { signal }));
    expect(unauthorized).toMatchObject({ code: 401, reason: "Unauthorized" });
    expect(String(unauthorized)).not.toContain(token);
    await unknown.close();

    const untrusting = createHttpClient(realEnv, config);
    const untrusted = await failureOf(untrusting.get(resources.nodes, { name: "a" }, { signal }));
    expect(untrusted).toBeInstanceOf(KubeTransportError);
    expect(String(untrusted)).not.toContain(token);
    await untrusting.close();
  });

  test("of an eviction come at once and are not repeated; one that is allowed deletes the pod", async () => {
    const namespace = await makeNamespace("evictions");
    await kube.create(
      resources.podDisruptionBudgets,
      {
        metadata: { name: "web", namespace },
        spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
      },
      { signal },
    );
    for (const app of ["web", "other"]) {
      await kube.create(
        resources.pods,
        {
          metadata: { name: app, namespace, labels: { app } },
          spec: { containers: [{ name: "c", image: "i" }], terminationGracePeriodSeconds: 0 },
        },
        { signal },
      );
      const running = { status: { phase: "Running" } };
      await kube.patch(
        resources.pods,
        { name: app, namespace },
        { type: "merge", body: running },
        { signal, subresource: "status" },
      );
    }
    const evict = (name: string) =>
      kube.createSubresource(
        resources.pods,
        { name, namespace },
        "eviction",
        { kind: "Eviction", metadata: { name, namespace } },
        { signal },
      );
    // No disruption controller runs, so the budget has allowed nothing.
    expect(isTooManyRequests(await failureOf(evict("web")))).toBe(true);
    await evict("other");
    expect(await kube.get(resources.pods, { name: "other", namespace }, { signal })).toBeUndefined();
    expect(await kube.get(resources.pods, { name: "web", namespace }, { signal })).toBeDefined();
  });
});

test("the token of a paged list expires with its version", async () => {
  const namespace = await makeNamespace("pages");
  for (const name of ["a", "b", "c"]) {
    await kube.create(resources.configMaps, configMap(namespace, name), { signal });
  }
  const selection = { signal, namespace, limit: 2 };
  const first = await kube.list(resources.configMaps, selection);
  expect(first.items).toHaveLength(2);
  if (first.continue === undefined) throw new Error("there is no second page");
  await kube.create(resources.configMaps, configMap(namespace, "d"), { signal });
  await kubernetes.compact();
  const failure = await failureOf(
    kube.list(resources.configMaps, { ...selection, continue: first.continue }),
  );
  expect(isExpired(failure)).toBe(true);
});

describe("an informer", () => {
  test("that was cut off longer than versions are kept lists again, in pages, and emits what it missed", async () => {
    const namespace = await makeNamespace("cut-off");
    const count = 1100;
    const names = Array.from({ length: count }, (_, i) => `map-${String(i).padStart(4, "0")}`);
    await inParallel(names, (name) =>
      kube.create(resources.configMaps, configMap(namespace, name), { signal }),
    );
    const link = await openLink(kubernetes);
    const client = await connectAs(kubernetes, "admin", link.url);
    const informer = startInformer({ ...realEnv, kube: client }, resources.configMaps, { namespace });
    await informer.synced(signal);
    expect(informer.list()).toHaveLength(count);
    const emitted: string[] = [];
    informer.onChange({
      added: ({ metadata }) => {
        if (metadata.name === "new") emitted.push("added new");
      },
      updated: (_, { metadata }) => emitted.push(`updated ${metadata.name}`),
      deleted: ({ metadata }, { tombstone }) =>
        emitted.push(`deleted ${metadata.name}${tombstone ? ", unseen" : ""}`),
    });

    link.cut();
    await kube.delete(resources.configMaps, { namespace, name: "map-0000" }, { signal });
    await kube.patch(
      resources.configMaps,
      { namespace, name: "map-0001" },
      { type: "merge", body: { data: { text: "changed" } } },
      { signal },
    );
    await kube.create(resources.configMaps, configMap(namespace, "new"), { signal });
    // Neither etcd nor the server's own cache remembers what the informer has seen last.
    await kubernetes.compact();
    await kubernetes.restartApiServer();
    expect(emitted).toEqual([]);
    link.restore();

    await eventually("the informer has caught up", async () => emitted.length >= 3);
    expect(emitted.sort()).toEqual(["added new", "deleted map-0000, unseen", "updated map-0001"]);
    // And it watches again.
    await kube.create(resources.configMaps, configMap(namespace, "later"), { signal });
    await eventually("a later change arrives", async () => informer.get(`${namespace}/later`));
    await informer.stop();
    await client.close();
    await link.stop();
  });

  test("equals the server after a kill in the midst of writes", async () => {
    const namespace = await makeNamespace("writes");
    const informer = startInformer({ ...realEnv, kube }, resources.configMaps, { namespace });
    await informer.synced(signal);
    const folded = new Map<string, string>();
    informer.onChange({
      added: ({ metadata }) => folded.set(metadata.name, metadata.resourceVersion),
      updated: (_, { metadata }) => folded.set(metadata.name, metadata.resourceVersion),
      deleted: ({ metadata }) => folded.delete(metadata.name),
    });
    let isOver = false;
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      for (let i = 0; !isOver || i < 50; i++) {
        const ref = { namespace, name: `w${writer}-${i % 5}` };
        const steps = [
          () => kube.create(resources.configMaps, configMap(namespace, ref.name, String(i)), { signal }),
          () => {
            const patch = { type: "merge", body: { data: { text: `again ${i}` } } } as const;
            return kube.patch(resources.configMaps, ref, patch, { signal });
          },
          () => kube.delete(resources.configMaps, ref, { signal }),
        ];
        // Many fail, as they must: the server is unreachable, the object is there or not.
        await steps[i % steps.length]?.().catch(() => {});
      }
    });
    await kubernetes.restartApiServer();
    isOver = true;
    await Promise.all(writers);
    const marker = await kube.create(resources.configMaps, configMap(namespace, "marker"), { signal });
    await eventually("the informer has seen the last write", async () =>
      informer.get(`${namespace}/${marker.metadata.name}`),
    );
    const { items } = await kube.list(resources.configMaps, { signal, namespace });
    const server = Object.fromEntries(items.map((o) => [o.metadata.name, o.metadata.resourceVersion]));
    const cached = Object.fromEntries(
      informer.list().map((o) => [o.metadata.name, o.metadata.resourceVersion]),
    );
    expect(Object.keys(server).length).toBeGreaterThan(1);
    expect(cached).toEqual(server);
    expect(Object.fromEntries(folded)).toEqual(server);
    await informer.stop();
  });
});

describe("of the candidates for a lease", () => {
  const retryPeriodMs = 200;
  /** Long enough that a machine under load loses no lease, and short ones for those that have to be lost. */
  const patient = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs };
  const impatient = { leaseDurationMs: 2000, renewDeadlineMs: 1400, retryPeriodMs };

  /** Terms of leadership, on one clock. */
  interface Term {
    readonly identity: string;
    readonly beganMs: number;
    endedMs: number;
  }
  const candidate = (
    client: HttpKubeClient,
    lease: string,
    identity: string,
    terms: Term[],
    durations: typeof patient,
  ) =>
    startLeaderElection(
      { ...realEnv, kube: client },
      {
        name: lease,
        namespace: "default",
        identity,
        ...durations,
        async lead(term) {
          const now = { identity, beganMs: performance.now(), endedMs: Number.POSITIVE_INFINITY };
          terms.push(now);
          await new Promise((resolve) => term.addEventListener("abort", resolve, { once: true }));
          now.endedMs = performance.now();
        },
      },
    );
  const leads = (election: LeaderElection, identity: string) =>
    eventually(`${identity} leads`, async () => election.isLeader());
  const getLease = async (name: string) =>
    (await kube.get(resources.leases, { namespace: "default", name }, { signal }))?.spec;

  test("one leads at a time, and one that stops hands over at once", async () => {
    // A name of its own: a second try must not meet the candidates of the first.
    const name = `handed-over-${Math.floor(performance.now())}`;
    const terms: Term[] = [];
    const a = candidate(kube, name, "a", terms, patient);
    await leads(a, "a");
    const b = candidate(kube, name, "b", terms, patient);
    await eventually("the lease was renewed a few times", async () => {
      const { acquireTime = "", renewTime = "" } = (await getLease(name)) ?? {};
      return Date.parse(renewTime) - Date.parse(acquireTime) > 3 * retryPeriodMs;
    });
    expect(b.isLeader()).toBe(false);
    const stoppedMs = performance.now();
    await a.stop();
    await leads(b, "b");
    expect(performance.now() - stoppedMs).toBeLessThan(patient.leaseDurationMs);
    expect(await getLease(name)).toMatchObject({ holderIdentity: "b", leaseTransitions: 1 });
    await b.stop();
    expect(terms.map(({ identity }) => identity)).toEqual(["a", "b"]);
    expect(terms[0]?.endedMs).toBeLessThan(terms[1]?.beganMs ?? 0);
    expect(await getLease(name)).toMatchObject({ holderIdentity: "" });
  });

  test.each(["silence", "cut"] as const)(
    "one that loses the server by a %s gives up before the next one leads",
    async (how) => {
      const lease = `lost-by-${how}`;
      const terms: Term[] = [];
      const link = await openLink(kubernetes);
      const far = await connectAs(kubernetes, "admin", link.url);
      const a = candidate(far, lease, "a", terms, impatient);
      await leads(a, "a");
      const b = candidate(kube, lease, "b", terms, impatient);
      link[how]();
      await leads(b, "b");
      expect(a.isLeader()).toBe(false);
      expect(terms.map(({ identity }) => identity)).toEqual(["a", "b"]);
      expect(terms[0]?.endedMs).toBeLessThan(terms[1]?.beganMs ?? 0);
      link.restore();
      // Back again, it sees that another leads.
      await eventually("b renews", async () => {
        const { renewTime = "", holderIdentity } = (await getLease(lease)) ?? {};
        return holderIdentity === "b" && Date.parse(renewTime) > Date.now() - 2 * retryPeriodMs;
      });
      expect(a.isLeader()).toBe(false);
      await b.stop();
      await leads(a, "a");
      await a.stop();
      await far.close();
      await link.stop();
    },
  );

  test("the leader keeps the lease through a short absence of the server", async () => {
    const terms: Term[] = [];
    const link = await openLink(kubernetes);
    const client = await connectAs(kubernetes, "admin", link.url);
    const a = candidate(client, "kept", "a", terms, patient);
    await leads(a, "a");
    const before = await getLease("kept");
    link.cut();
    await eventually("a renewal has failed", async () => {
      const { renewTime = "" } = (await getLease("kept")) ?? {};
      return Date.now() - Date.parse(renewTime) > 2 * retryPeriodMs;
    });
    link.restore();
    await eventually("the lease is renewed", async () => {
      const { renewTime = "" } = (await getLease("kept")) ?? {};
      return Date.parse(renewTime) > Date.now() - retryPeriodMs;
    });
    expect(await getLease("kept")).toMatchObject({ acquireTime: before?.acquireTime, leaseTransitions: 0 });
    expect(terms).toHaveLength(1);
    await a.stop();
    await client.close();
    await link.stop();
  });
});

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const left = [...items];
  const worker = async () => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await work(item);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}
