/** Property: the object is what its text says, but for its kind and its managed fields. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { KubeObject } from "../../kube-objects.ts";
import { completed, type FreshForm, forgetManagedFields } from "./fresh-object.ts";
import { SharedParts } from "./shared-parts.ts";

const kind = "PersistentVolume";
const apiVersion = "v1";

/** The text of an object whose members come in any order; the managed fields of its metadata in any place, or none. */
function textOf(names: readonly string[]): fc.Arbitrary<string> {
  const members = fc.uniqueArray(fc.constantFrom(...names));
  return fc.tuple(members, fc.array(fc.jsonValue({ maxDepth: 2 }), { minLength: names.length })).map(
    ([present, values]) =>
      // Written by hand: a literal with the member `__proto__` would have another prototype.
      `{${present.map((name, index) => `${JSON.stringify(name)}:${JSON.stringify(values[index])}`).join()}}`,
  );
}
const metadata = textOf(["name", "labels", "managedFields", "0", "__proto__", "constructor"]);
const spec = textOf(["capacity", "managedFields", "__proto__"]);
/** As objects come: whole, as items of a list, and partial. */
const type = fc.constantFrom(
  "",
  `"apiVersion":"${apiVersion}","kind":"${kind}",`,
  '"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata",',
);
const object = fc.tuple(type, metadata, spec).map((parts) => {
  const [head, ofMetadata, ofSpec] = parts;
  return { text: `{${head}"metadata":${ofMetadata},"spec":${ofSpec}}`, ofMetadata, ofSpec };
});

const parse = (text: string): KubeObject & { readonly spec?: unknown } => JSON.parse(text);
const formed = (form: Partial<FreshForm>): FreshForm => ({
  apiVersion,
  kind,
  dropManagedFields: false,
  sharedParts: undefined,
  ...form,
});

/** The text of the metadata without its managed fields; the other members keep their order. */
function withoutManagedFields(text: string): string {
  const members = Object.entries(JSON.parse(text)).filter(([name]) => name !== "managedFields");
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join()}}`;
}

test("an object gets its kind and loses its managed fields, and nothing else", () => {
  fc.assert(
    fc.property(object, fc.boolean(), fc.boolean(), ({ text, ofMetadata, ofSpec }, drops, shares) => {
      const parsed = parse(text);
      const sharedParts = shares ? new SharedParts() : undefined;
      const done = completed(parsed, formed({ dropManagedFields: drops, sharedParts }));
      expect(done).toBe(parsed);
      expect([done.apiVersion, done.kind]).toEqual([apiVersion, kind]);
      const kept = drops ? withoutManagedFields(ofMetadata) : JSON.stringify(JSON.parse(ofMetadata));
      expect(JSON.stringify(done.metadata)).toBe(kept);
      expect(JSON.stringify(done.spec)).toBe(JSON.stringify(JSON.parse(ofSpec)));
      expect(Object.keys(done).sort()).toEqual(["apiVersion", "kind", "metadata", "spec"]);
    }),
  );
});

test("managed fields go from any place, and an object without them stays as it is", () => {
  fc.assert(
    fc.property(object, ({ text, ofMetadata }) => {
      const parsed = parse(text);
      const before = parsed.metadata;
      const hasThem = Object.hasOwn(JSON.parse(ofMetadata), "managedFields");
      expect(forgetManagedFields(parsed)).toBe(parsed);
      expect(JSON.stringify(parsed.metadata)).toBe(withoutManagedFields(ofMetadata));
      if (!hasThem) expect(parsed.metadata).toBe(before);
    }),
  );
});

test("an object of the right kind keeps its version", () => {
  const parsed = parse(`{"apiVersion":"snapshot.storage.k8s.io/v1beta1","kind":"${kind}"}`);
  expect(completed(parsed, formed({})).apiVersion).toBe("snapshot.storage.k8s.io/v1beta1");
});

test("an object without metadata is none the worse for it", () => {
  expect(forgetManagedFields(parse("{}"))).toEqual({});
  expect(completed(parse("{}"), formed({ dropManagedFields: true }))).toEqual({ apiVersion, kind });
});
