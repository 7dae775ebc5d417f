/** Property: cutting the text out gives the same result as parsing everything and deleting the member. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { parsePageWithoutManagedFields, parseWithoutManagedFields } from "./managed-fields-text.ts";

type Event = { object?: { metadata?: { managedFields?: unknown } } };

function parse(text: string): unknown {
  // Bytes before and after that belong to other lines.
  const before = Buffer.from('"managedFields":[{"é":1}]}\n');
  const line = Buffer.from(text);
  const bytes = Buffer.concat([before, line, Buffer.from('\n"managedFields":[]}')]);
  const parsed = parseWithoutManagedFields<Event>(
    bytes,
    before.length,
    before.length + line.length,
    (event) => event?.object,
  );
  return withoutManagedFields(parsed);
}

function withoutManagedFields(event: unknown): unknown {
  const copy = structuredClone(event) as Event;
  delete copy?.object?.metadata?.managedFields;
  return copy;
}

/** Text that makes the end of an array hard to find. */
const awkward = fc.oneof(
  fc.string(),
  fc.constantFrom(
    "]}",
    "]},",
    '"]}',
    '\\"]},\\"',
    "managedFields",
    '"managedFields":[',
    "[",
    "}]}",
    "\\",
    "é]}",
  ),
);
/** As fieldsV1 names its members. */
const fieldName = fc
  .tuple(fc.constantFrom("f:", "k:", "v:", "i:"), awkward)
  .map(([kind, rest]) => kind + rest);
const name = fc.oneof(fieldName, fc.constant("."));
const leaf = fc.dictionary(name, fc.constant({}), { maxKeys: 3 });
const fields = fc.dictionary(name, fc.oneof(leaf, fc.dictionary(name, leaf, { maxKeys: 3 })), { maxKeys: 3 });
const entry = fc.record({
  manager: awkward,
  operation: fc.constant("Update"),
  time: awkward,
  fieldsType: awkward,
  fieldsV1: fields,
  subresource: awkward,
});
const managed = fc.record({ managedFields: fc.array(entry, { maxLength: 3 }) });
const labels = fc.dictionary(awkward, awkward, { maxKeys: 3 });
const metadata = fc
  .tuple(
    fc.record({ name: awkward, annotations: labels }),
    fc.option(managed),
    fc.option(fc.record({ selfLink: awkward })),
  )
  .map(([first, second, third]) => ({ ...first, ...second, ...third }));
const event = fc.record({
  type: fc.constant("ADDED"),
  object: fc
    .tuple(
      fc.option(fc.record({ template: fc.record({ metadata }) })),
      metadata,
      fc.option(fc.record({ spec: fc.jsonValue(), data: labels })),
    )
    // A member of that name may stand before the metadata, too.
    .map(([first, own, last]) => ({ ...first, metadata: own, ...last })),
});

test("what is read is what there was, but for the managed fields", () => {
  fc.assert(
    fc.property(event, (given) => {
      const text = JSON.stringify(given);
      expect(parse(text)).toEqual(withoutManagedFields(JSON.parse(text)));
    }),
    { numRuns: 2000 },
  );
});

test("a page is read likewise, item by item", () => {
  type Page = { readonly items: readonly NonNullable<Event["object"]>[] };
  fc.assert(
    fc.property(fc.array(event, { maxLength: 4 }), metadata, (events, own) => {
      const text = JSON.stringify({ metadata: own, items: events.map(({ object }) => object) });
      const read = parsePageWithoutManagedFields<Page>(Buffer.from(text));
      const whole = JSON.parse(text) as Page;
      const forget = ({ items, ...rest }: Page) => ({
        ...rest,
        items: items.map((object) => withoutManagedFields({ object })),
      });
      expect(forget(read)).toEqual(forget(whole));
    }),
    { numRuns: 1000 },
  );
  const items = ["a", "b"].map((name) => ({ metadata: { name, managedFields: [{ manager: "x" }] } }));
  const { items: read } = parsePageWithoutManagedFields<Page>(Buffer.from(JSON.stringify({ items })));
  expect(read.map((item) => item?.metadata?.managedFields)).toEqual([0, 0]);
});

test("any JSON is read, and what is none is refused", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(parse(JSON.stringify(value))).toEqual(withoutManagedFields(JSON.parse(JSON.stringify(value))));
    }),
  );
  expect(() => parse('{"object":{"metadata":{"managedFields":[{}]}')).toThrow(SyntaxError);
});

test("the managed fields of an object that was written as servers do are never parsed", () => {
  const line =
    '{"type":"ADDED","object":{"metadata":{"name":"a","managedFields":[{"manager":"x"}]},"spec":{}}}';
  const bytes = Buffer.from(line);
  const parsed = parseWithoutManagedFields<Event>(bytes, 0, bytes.length, ({ object }) => object);
  expect(parsed.object?.metadata?.managedFields).toBe(0);
});
