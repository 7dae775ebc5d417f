/**
 * The laws of the informer, against a server that does its worst: once all is quiet the cache equals the
 * server, and what the handler was told, folded, equals the cache at every step.
 */
import { SeededRandom } from "@longshore/runtime";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { ConfigMap } from "../api-types.ts";
import type { Stored } from "../objects.ts";
import { resources } from "../resources.ts";
import { AdversarialServer } from "../testing/adversarial-server.ts";
import { virtualEnv } from "../testing/test-env.ts";
import { type Informer, startInformer } from "./informer.ts";

type Step =
  | { readonly do: "write"; readonly name: string; readonly value: string }
  | { readonly do: "delete" | "replace"; readonly name: string }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "compact" | "snapshot" | "restore"; readonly ms?: never };

const name = fc.constantFrom("a", "b", "c", "d", "e");
/** Mostly shorter than a step of the server, so that several changes fall into one gap. */
const pause = fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 90_000 }));
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("write" as const), name, value: fc.string({ maxLength: 3 }) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("delete" as const, "replace" as const), name }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("wait" as const), ms: pause }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("compact", "compact", "snapshot", "restore") }) },
);

/** Folds what a handler is told, and refuses what cannot follow what was told before. */
function fold(informer: Informer<ConfigMap>): ReadonlyMap<string, Stored<ConfigMap>> {
  const told = new Map<string, Stored<ConfigMap>>();
  informer.onChange({
    added(object) {
      expect(told.has(object.metadata.name)).toBe(false);
      told.set(object.metadata.name, object);
    },
    updated(before, after) {
      expect(told.get(after.metadata.name)).toBe(before);
      expect(after.metadata.uid).toBe(before.metadata.uid);
      told.set(after.metadata.name, after);
    },
    deleted(lastKnown) {
      expect(told.get(lastKnown.metadata.name)?.metadata.uid).toBe(lastKnown.metadata.uid);
      told.delete(lastKnown.metadata.name);
    },
  });
  return told;
}

const versions = (objects: Iterable<Stored<ConfigMap>>) =>
  [...objects].map(({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.resourceVersion}`).sort();

async function run(seed: number, steps: readonly Step[], faultRate: number): Promise<void> {
  const env = virtualEnv(seed);
  const failures: unknown[] = [];
  const logger = {
    ...env.logger,
    error: (_: string, fields?: Readonly<Record<string, unknown>>) => failures.push(fields?.error),
    child: () => logger,
  };
  const server = new AdversarialServer(env.clock, new SeededRandom(seed).fork("server"));
  server.faultRate = faultRate;
  const informer = startInformer({ ...env, logger, kube: server.client() }, resources.configMaps, {
    indexes: { byValue: (object) => [object.data?.value ?? ""] },
  });
  const told = fold(informer);
  let snapshot = server.snapshot();
  for (const step of steps) {
    if (step.do === "write") server.write(step.name, step.value);
    else if (step.do === "delete") server.delete(step.name);
    else if (step.do === "replace") {
      server.delete(step.name);
      server.write(step.name, "new");
    } else if (step.do === "compact") server.compact();
    else if (step.do === "snapshot") snapshot = server.snapshot();
    else if (step.do === "restore") server.restore(snapshot);
    else if (step.do === "wait") await env.clock.advance(step.ms);
    expect(versions(told.values())).toEqual(versions(informer.list()));
  }
  server.faultRate = 0;
  await env.clock.advance(10 * 60_000);
  expect(informer.hasSynced()).toBe(true);
  expect(versions(informer.list())).toEqual(versions(server.objects.values()));
  expect(versions(told.values())).toEqual(versions(informer.list()));
  for (const object of server.objects.values()) {
    expect(informer.byIndex("byValue", object.data?.value ?? "").map((o) => o.metadata.name)).toContain(
      object.metadata.name,
    );
  }
  expect(server.listsInFlightMax).toBe(1);
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
      run,
    ),
    { numRuns: 50 },
  );
});
