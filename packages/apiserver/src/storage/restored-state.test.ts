/** What clients that knew a cluster at a later time see of it after a restore. */
import { resources, startInformer } from "@longshore/kube";
import { expect, it } from "vitest";
import { createApiServer } from "../api-server.ts";
import { aServer } from "../testing/world.ts";
import { restoredMemoryStore } from "./object-store.ts";

const signal = new AbortController().signal;
const aConfigMap = (name: string, value = "") => ({
  metadata: { name, namespace: "default" },
  data: { value },
});

/** A cluster that is restored while its clients cannot reach it. */
function aRestoredServer() {
  const { clock, env, store, server, kube } = aServer();
  const restored = async () => {
    const again = restoredMemoryStore(backup, clock.now());
    await server.stop();
    return createApiServer(env, { store: again, controllers: false });
  };
  let backup = store.backUp();
  return { clock, env, store, kube, backUp: () => (backup = store.backUp()), restored };
}

it("a cache keeps nothing that the restored store lacks, also when that has been written to as often", async () => {
  const { clock, env, store, kube, backUp, restored } = aRestoredServer();
  let current = kube;
  let isReached = true;
  const reached = () => {
    if (!isReached) throw new Error("the server is not there");
    return current;
  };
  const link: typeof kube = {
    ...kube,
    list: (resource, options) => reached().list(resource, options),
    watch: (resource, options) => reached().watch(resource, options),
  };
  const informer = startInformer({ ...env, kube: link }, resources.configMaps, { namespace: "default" });
  await clock.run(informer.synced(signal));
  await kube.create(resources.configMaps, aConfigMap("kept"), { signal });
  backUp();
  await kube.create(resources.configMaps, aConfigMap("lost"), { signal });
  await clock.advance(1000);
  expect(informer.list().map(({ metadata }) => metadata.name)).toEqual(["kept", "lost"]);

  isReached = false;
  const later = await restored();
  current = later.client();
  // By its own count the store is past all that the cache has seen.
  for (let i = 0; i < store.revision + 10; i++) {
    const written = aConfigMap("new", `${i}`);
    if (i === 0) await current.create(resources.configMaps, written, { signal });
    else await current.update(resources.configMaps, written, { signal });
  }
  isReached = true;
  await clock.advance(10_000);
  expect(informer.list().map(({ metadata }) => metadata.name)).toEqual(["kept", "new"]);
  await informer.stop();
});

it("a version is given to no second change of an object", async () => {
  const { kube, backUp, restored } = aRestoredServer();
  const made = await kube.create(resources.configMaps, aConfigMap("a", "1"), { signal });
  backUp();
  const seen = await kube.update(resources.configMaps, { ...made, data: { value: "2" } }, { signal });
  const again = (await restored()).client();
  const other = await again.update(resources.configMaps, { ...made, data: { value: "3" } }, { signal });
  expect(other.metadata.resourceVersion).not.toBe(seen.metadata.resourceVersion);
  await expect(
    again.update(resources.configMaps, { ...seen, data: { value: "4" } }, { signal }),
  ).rejects.toThrow(/has been modified/);
});
