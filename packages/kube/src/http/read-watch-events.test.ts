/** Property: reading an event gives the same result as parsing its whole line, however the line is written. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { KubeTransportError } from "../kube-client.ts";
import { resources } from "../resources.ts";
import { SharedParts } from "./parsing/shared-parts.ts";
import { readWatchEvents } from "./read-watch-events.ts";

const form = { apiVersion: "v1", kind: "ConfigMap", dropManagedFields: true, sharedParts: undefined };

async function read(text: string, sharedParts?: SharedParts): Promise<unknown[]> {
  async function* body() {
    yield Buffer.from(text);
  }
  const events = readWatchEvents(body(), resources.configMaps, { ...form, sharedParts });
  const all: unknown[] = [];
  for (let next = await events.next(); next.done !== true; next = await events.next()) all.push(next.value);
  return all;
}

const awkward = fc.oneof(fc.string(), fc.constantFrom("}", '"}', '},"type":"DELETED"', '"object":', "é}}"));
const object = fc.record({
  kind: fc.constant("ConfigMap"),
  apiVersion: fc.constant("v1"),
  metadata: fc.record({ name: awkward, resourceVersion: fc.nat().map(String) }),
  spec: fc.dictionary(awkward, fc.oneof(awkward, fc.array(awkward)), { maxKeys: 3 }),
  status: fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom("x", "y"), { maxKeys: 2 }),
});
const type = fc.constantFrom("ADDED", "MODIFIED", "DELETED");
/** Ways to write an event; servers use the first. */
const written = fc.constantFrom(
  (of: string, text: string) => `{"type":"${of}","object":${text}}`,
  (of: string, text: string) => `{"type":"${of}","object":${text},"other":{"a":"}"}}`,
  (of: string, text: string) => `{"type":"${of}","object":${text},"type":"DELETED"}`,
  (of: string, text: string) => `{"type":"${of}","object":{},"object":${text}}`,
  (of: string, text: string) => `{"type":"${of}","object":${text}} `,
  (of: string, text: string) => `{"type": "${of}", "object": ${text} }`,
  (of: string, text: string) => `{"object":${text},"type":"${of}"}`,
);

test("an event is what its line says", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(type, object, written), { maxLength: 5 }), async (events) => {
      const lines = events.map(([of, given, write]) => write(of, JSON.stringify(given)));
      const decoded = await read(lines.map((line) => `${line}\n`).join(""), new SharedParts());
      const expected = lines.map((line) => JSON.parse(line) as { type: string; object: unknown });
      expect(decoded).toEqual(expected.map(({ type: of, object: given }) => ({ type: of, object: given })));
    }),
    { numRuns: 500 },
  );
});

test.each([
  ['{"type":"ADDED","object":{"metadata":{}}'],
  ['{"type":"ADDED","object":{"metadata":{}}]'],
  ['{"type":"ADDED","object":'],
  ['{"type":"ADDED","object":}'],
  ['{"type":"ADDED"'],
])("%s is no event", async (line) => {
  await expect(read(`${line}\n`)).rejects.toThrow(KubeTransportError);
});
