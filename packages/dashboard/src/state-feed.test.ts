import { createApiServer, memoryStore } from "@longshore/apiserver";
import { resources } from "@longshore/kube";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { expect, test } from "vitest";
import type { DashboardState } from "./state.ts";
import { startStateFeed } from "./state-feed.ts";

const signal = new AbortController().signal;

test("many changes make few pictures, and the last one is right", async () => {
  const clock = new VirtualClock();
  await clock.run(
    (async () => {
      const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
      const kube = createApiServer(env, { store: memoryStore() }).client();
      const feed = startStateFeed({ ...env, kube });
      const pictures: DashboardState[] = [];
      feed.subscribe((json) => pictures.push(JSON.parse(json)));
      await clock.sleep(1000, signal);
      expect(pictures.map((p) => p.complete)).toEqual([true]);
      for (let i = 0; i < 200; i++) {
        await kube.create(resources.nodes, { metadata: { name: `node-${i}` } }, { signal });
      }
      await clock.sleep(1000, signal);
      expect(pictures.at(-1)?.nodes).toHaveLength(200);
      expect(pictures.length).toBeLessThan(10);
      const before = pictures.length;
      await clock.sleep(60_000, signal);
      expect(pictures).toHaveLength(before); // A quiet cluster says nothing.
      await feed.stop();
    })(),
  );
});

test("the environment of a container, and the private values of a driver, are not in the picture", async () => {
  const clock = new VirtualClock();
  await clock.run(
    (async () => {
      const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
      const kube = createApiServer(env, { store: memoryStore() }).client();
      await kube.create(
        resources.pods,
        {
          metadata: { name: "writer-0", namespace: "default" },
          spec: { containers: [{ name: "c", image: "i", env: [{ name: "PASSWORD", value: "hush-1" }] }] },
        },
        { signal },
      );
      const feed = startStateFeed({ ...env, kube });
      await clock.sleep(1000, signal);
      expect(feed.latest()).toContain("writer-0");
      expect(feed.latest()).not.toContain("hush");
      await feed.stop();
    })(),
  );
});
