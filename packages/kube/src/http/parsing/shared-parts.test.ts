/** The law: sharing changes nothing that can be read; and what it is for: equal parts are one. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { SharedParts } from "./shared-parts.ts";

/** Few enough values that parts are often equal, or nearly so. */
const name = fc.constantFrom("a", "b", "capacity", "__proto__", "constructor", "toString", "0");
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom<unknown>(null, true, 0, 1, "", "x", "0", "longer than ten characters"),
    fc.array(tie("value"), { maxLength: 2 }),
    fc.dictionary(name, tie("value"), { maxKeys: 3 }),
  ),
}));
const object = fc.record({ metadata: value, spec: value, status: value }, { requiredKeys: [] });

/** As lists of names and values, so that no name means anything. */
function inOrder(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(inOrder);
  if (typeof json !== "object" || json === null) return json;
  const members = Object.entries(json).sort(([a], [b]) => (a < b ? -1 : 1));
  return { members: members.map(([key, member]) => [key, inOrder(member)]) };
}

test("objects are what they were, whatever was seen before", () => {
  fc.assert(
    fc.property(fc.array(object, { minLength: 2, maxLength: 40 }), (objects) => {
      const parts = new SharedParts();
      const texts = objects.map((given) => JSON.stringify(given));
      const shared = texts.map((text) => JSON.parse(text) as object);
      for (const fresh of shared) parts.shareIn(fresh);
      // Later sharing changes no earlier object, either.
      expect(shared.map(inOrder)).toEqual(texts.map((text) => inOrder(JSON.parse(text))));
    }),
    { numRuns: 1000 },
  );
});

test("members that are called as what every object has are members like others", () => {
  const parts = new SharedParts();
  const texts = [
    '{"spec":{"a":{"x":1}}}',
    '{"spec":{"a":{"__proto__":{}}}}',
    '{"spec":{"a":{"toString":{}}}}',
  ];
  const shared = texts.map((text) => JSON.parse(text) as object);
  for (const fresh of shared) parts.shareIn(fresh);
  expect(shared.map((fresh) => JSON.stringify(fresh))).toEqual(texts);
});

const volume = (index: number, zone: string) => ({
  metadata: { name: `pv-${index}`, finalizers: ["kubernetes.io/pv-protection"] },
  spec: {
    accessModes: ["ReadWriteOnce"],
    claimRef: { name: `data-${index}` },
    nodeAffinity: { required: { nodeSelectorTerms: [{ key: "zone", values: [zone] }] } },
  },
});

test("of what volumes have in common there is one, in every zone, though their claims never are the same", () => {
  const parts = new SharedParts();
  const volumes = Array.from({ length: 1_000 }, (_, index) => volume(index, `zone ${index % 3}`));
  for (const fresh of volumes) parts.shareIn(fresh);
  const kept = (part: (given: (typeof volumes)[number]) => object) => new Set(volumes.map(part)).size;
  expect(kept(({ metadata }) => metadata.finalizers)).toBe(1);
  expect(kept(({ spec }) => spec.accessModes)).toBe(1);
  expect(kept(({ spec }) => spec.nodeAffinity)).toBe(3);
  expect(kept(({ spec }) => spec.claimRef)).toBe(1_000);
});

test("what begins to be alike is shared within some hundred objects", () => {
  const parts = new SharedParts();
  for (let index = 0; index < 1_000; index++) parts.shareIn(volume(index, `zone ${index}`));
  const volumes = Array.from({ length: 500 }, (_, index) => volume(index, "the zone"));
  for (const fresh of volumes) parts.shareIn(fresh);
  expect(volumes[499]?.spec.nodeAffinity).toBe(volumes[498]?.spec.nodeAffinity);
});

test("a kind whose members have any name is remembered in part", () => {
  const parts = new SharedParts();
  const strange = () => ({
    spec: Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`m${i}`, [i]])),
  });
  const [first, second] = [strange(), strange()];
  parts.shareIn(first);
  parts.shareIn(second);
  const shared = Object.keys(first.spec).filter((key) => first.spec[key] === second.spec[key]);
  expect(shared.length).toBeGreaterThan(0);
  expect(shared.length).toBeLessThanOrEqual(64);
});
