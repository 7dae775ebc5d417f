/** The StatefulSet controller over a cache that lags. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { interceptWrites, resources, type StatefulSet, sharedInformers } from "@longshore/kube";
import { laggingClient, virtualEnv } from "@longshore/testing/kube";
import { expect, test } from "vitest";
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
  expect(creates).toEqual(["default/db-0"]);
  await controller.stop();
  await informers.stop();
});
