import fc from "fast-check";
import { expect, test } from "vitest";
import type { ConfigMap } from "../api-types.ts";
import type { Stored } from "../objects.ts";
import { withSharedParts } from "./shared-parts.ts";

const json = fc.jsonValue({ maxDepth: 3 });
const anObject = fc.record({
  metadata: fc.record({
    name: fc.constant("a"),
    uid: fc.constant("u"),
    resourceVersion: fc.nat().map(String),
    labels: json,
  }),
  spec: json,
  status: json,
}) as unknown as fc.Arbitrary<Stored<ConfigMap>>;

test("the result equals the new state, changes nothing, and is the old one where both are equal", () => {
  fc.assert(
    fc.property(anObject, anObject, fc.boolean(), fc.boolean(), (before, other, keepsSpec, keepsLabels) => {
      const copy = structuredClone(before) as Stored<ConfigMap> & { spec: unknown };
      const after = {
        ...other,
        ...(keepsSpec ? { spec: copy.spec } : {}),
        metadata: { ...other.metadata, ...(keepsLabels ? { labels: copy.metadata.labels } : {}) },
      } as Stored<ConfigMap> & { spec: unknown };
      const texts = [JSON.stringify(before), JSON.stringify(after)];
      const shared = withSharedParts(before, after) as typeof after;
      expect(JSON.stringify(shared)).toBe(texts[1]);
      expect([JSON.stringify(before), JSON.stringify(after)]).toEqual(texts);
      if (keepsSpec) expect(shared.spec).toBe((before as typeof after).spec);
      if (keepsLabels) expect(shared.metadata.labels).toBe(before.metadata.labels);
    }),
  );
});
