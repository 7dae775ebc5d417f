/** The StatefulSet controller over a cache that lags, and over revisions whose name another template has. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { interceptWrites, resources, type StatefulSet, sharedInformers } from "@longshore/kube";
import { laggingClient, virtualEnv } from "@longshore/testing/kube";
import { expect, test } from "vitest";
import { templateHash } from "../pod-sets/pod-from-template.ts";
import { startStatefulSetController } from "./stateful-set-controller.ts";

const { signal } = new AbortController();

const aSet: StatefulSet = {
  metadata: { name: "db", namespace: "default" },
  spec: {
    serviceName: "db",
    replicas: 1,
    selector: { matchLabels: { app: "db" } },
    template: {
      metadata: { labels: { app: "db" } },
      spec: { containers: [{ name: "main", image: "none" }] },
    },
  },
};

test("makes each pod once, however late its cache shows what it made", async () => {
  const base = virtualEnv();
  const server = createApiServer(base, { store: memoryStore() }).client();
  const creates: (string | undefined)[] = [];
  const watched = interceptWrites(server, (request, within, send) => {
    if (request.verb === "create") creates.push(request.key);
    return send(within);
  });
  const kube = laggingClient(base.clock, watched, { lagMs: 1000, isDead: false });
  const env = { ...base, kube };
  const informers = sharedInformers(env);
  const controller = startStatefulSetController({ ...env, informers });
  await base.clock.advance(1000);
  await server.create(resources.statefulSets, aSet, { signal });
  await base.clock.advance(500);
  // Sent when the pod has been made, and before the cache shows it.
  const body = { metadata: { labels: { touched: "yes" } } };
  const ref = { name: "db", namespace: "default" };
  await server.patch(resources.statefulSets, ref, { type: "merge", body }, { signal });
  await base.clock.advance(10_000);
  expect(creates).toEqual([expect.stringMatching(/^default\/db-[a-z0-9]{10}$/), "default/db-0"]);
  await controller.stop();
  await informers.stop();
});

test("gives a revision another name where its name is taken, and counts it", async () => {
  const base = virtualEnv();
  const kube = createApiServer(base, { store: memoryStore() }).client();
  const env = { ...base, kube, informers: sharedInformers({ ...base, kube }) };
  const ref = { name: "db", namespace: "default" };
  const made = await kube.create(resources.statefulSets, aSet, { signal });
  const name = `db-${templateHash(made.spec?.template)}`;
  // Of what was once another set: nothing of it matches this one's selector.
  const taken = { metadata: { ...ref, name }, data: { spec: { template: {} } } as object, revision: 1 };
  await kube.create(resources.controllerRevisions, taken, { signal });
  const controller = startStatefulSetController(env);
  await base.clock.advance(1000);
  const status = (await kube.get(resources.statefulSets, ref, { signal }))?.status;
  expect(status).toMatchObject({
    collisionCount: 1,
    updateRevision: `db-${templateHash(made.spec?.template, 1)}`,
  });
  const pod = await kube.get(resources.pods, { name: "db-0", namespace: "default" }, { signal });
  expect(pod?.metadata.labels?.["controller-revision-hash"]).toBe(status?.updateRevision);
  await controller.stop();
  await env.informers.stop();
});
