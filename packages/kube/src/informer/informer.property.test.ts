/**
 * Properties of the informer, against a server that injects faults: once no events are pending, the cache equals the
 * server; at every step the handler calls, folded, equal the cache.
 */
import { SeededRandom } from "@longshore/runtime";
import { virtualEnv } from "@longshore/testing/kube";
import fc from "fast-check";
import { expect, test } from "vitest";
import { resources } from "../resources.ts";
import { AdversarialServer } from "../testing/adversarial-server.ts";
import { fold, type Step, step, take, versions } from "../testing/informer-story.ts";
import { startInformer } from "./informer.ts";

/** How the informer requests the first list, and whether the server supports it. */
const lists = ["paged", "streamed", "streams refused"] as const;

async function run(
  seed: number,
  steps: readonly Step[],
  faultRate: number,
  list: (typeof lists)[number],
): Promise<void> {
  const env = virtualEnv(seed);
  const failures: unknown[] = [];
  const logger = {
    ...env.logger,
    error: (_: string, fields?: Readonly<Record<string, unknown>>) => failures.push(fields?.error),
    child: () => logger,
  };
  const server = new AdversarialServer(env.clock, new SeededRandom(seed).fork("server"));
  server.faultRate = faultRate;
  server.streams = list === "streamed";
  const informer = startInformer({ ...env, logger, kube: server.client() }, resources.configMaps, {
    initialList: list === "paged" ? "paged" : "streamed",
    indexes: { byValue: (object) => [object.data?.value ?? ""] },
  });
  const folded = fold(informer);
  const memory = { snapshot: server.snapshot() };
  for (const step of steps) {
    take(step, server, memory);
    if (step.do === "wait") await env.clock.advance(step.ms);
    expect(versions(folded.values())).toEqual(versions(informer.list()));
  }
  server.faultRate = 0;
  await env.clock.advance(10 * 60_000);
  expect(informer.hasSynced()).toBe(true);
  expect(versions(informer.list())).toEqual(versions(server.objects.values()));
  expect(versions(folded.values())).toEqual(versions(informer.list()));
  for (const object of server.objects.values()) {
    expect(informer.byIndex("byValue", object.data?.value ?? "").map((o) => o.metadata.name)).toContain(
      object.metadata.name,
    );
  }
  expect(server.listsInFlightMax).toBeLessThanOrEqual(1);
  // A handler's failed expectation is caught by the informer and logged.
  expect(failures).toEqual([]);
  await informer.stop();
}

test("once all is quiet the cache equals the server", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer(),
      fc.array(step, { minLength: 1, maxLength: 60 }),
      fc.constantFrom(0, 3, 10, 40),
      fc.constantFrom(...lists),
      run,
    ),
    { numRuns: 50 },
  );
});
