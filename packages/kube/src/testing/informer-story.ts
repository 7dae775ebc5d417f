/** What the property tests of the informer share: steps of a story, and the law that each of them is held to. */
import fc from "fast-check";
import { expect } from "vitest";
import type { ConfigMap } from "../api-types.ts";
import type { Informer } from "../informer/informer.ts";
import type { Stored } from "../kube-objects.ts";
import type { AdversarialServer } from "./adversarial-server.ts";

/** One step of a story. */
export type Step =
  | { readonly do: "write"; readonly name: string; readonly value: string }
  | { readonly do: "delete" | "replace"; readonly name: string }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "compact" | "snapshot" | "restore"; readonly ms?: never };

const name = fc.constantFrom("a", "b", "c", "d", "e");
/** Mostly shorter than a step of the server, so that several changes fall into one gap. */
const pause = fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 90_000 }));
/** Any step. */
export const step: fc.Arbitrary<Step> = fc.oneof(
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

/** Folds the handler calls into a map, and fails on a call that contradicts the earlier ones. */
export function fold(informer: Informer<ConfigMap>): ReadonlyMap<string, Stored<ConfigMap>> {
  const folded = new Map<string, Stored<ConfigMap>>();
  informer.onChange({
    added(object) {
      expect(folded.has(object.metadata.name)).toBe(false);
      folded.set(object.metadata.name, object);
    },
    updated(before, after) {
      expect(folded.get(after.metadata.name)).toBe(before);
      expect(after.metadata.uid).toBe(before.metadata.uid);
      folded.set(after.metadata.name, after);
    },
    deleted(lastKnown) {
      expect(folded.get(lastKnown.metadata.name)?.metadata.uid).toBe(lastKnown.metadata.uid);
      folded.delete(lastKnown.metadata.name);
    },
  });
  return folded;
}

/** Identifies one state of a cache. */
export const versions = (objects: Iterable<Stored<ConfigMap>>) =>
  [...objects].map(({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.resourceVersion}`).sort();

/** Does to the server what the step says; waiting is left to the caller. */
export function take(
  step: Step,
  server: AdversarialServer,
  memory: { snapshot: ReturnType<AdversarialServer["snapshot"]> },
): void {
  if (step.do === "write") server.write(step.name, step.value);
  else if (step.do === "delete") server.delete(step.name);
  else if (step.do === "replace") {
    server.delete(step.name);
    server.write(step.name, "new");
  } else if (step.do === "compact") server.compact();
  else if (step.do === "snapshot") memory.snapshot = server.snapshot();
  else if (step.do === "restore") server.restore(memory.snapshot);
}
