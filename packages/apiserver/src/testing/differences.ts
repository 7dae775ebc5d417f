/** Sends the same writes to two servers and reports where their answers differ. */
import { mutationsOf } from "./mutations.ts";
import { type SoundObject, soundObjects } from "./sound-objects.ts";

/** An answer of a server. */
export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: bodies of any kind are compared
  readonly body: any;
}

/** One server: a request as its administrator. */
export type Call = (method: string, path: string, body?: unknown, contentType?: string) => Promise<Answer>;

/** One write that was answered differently. */
export interface Difference {
  readonly what: string;
  readonly reference: string;
  readonly ours: string;
}

const noise = ["uid", "creationTimestamp", "resourceVersion", "managedFields", "selfLink"];

/** Values that are no scalars are shown in the syntax of Go, with addresses in memory: their place is what counts. */
function withoutGoValues(text: string): string {
  return text
    .replaceAll(/((?:Invalid|Unsupported) value: )(?![-"\d]|true|false|null:).*?(: [a-z`'])/g, "$1…$2")
    .replaceAll(/((?:Invalid|Unsupported) value: )null(: )/g, "$1…$2");
}

/** True when the texts differ at most where the reference shows a value in Go's syntax. */
function same(reference: string, ours: string): boolean {
  if (reference === ours) return true;
  const plain = (text: string) =>
    text
      .replaceAll(
        /(value: )(?:…|"(?:\\.|[^"\\])*"|[{[][^\n]*?[}\]](?=: | \(|$)|v1\.[^\n]*?\}(?= \(|$)|-?\d+)/gm,
        "$1…",
      )
      .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "uid");
  return plain(reference) === plain(ours);
}

/** What clients see of an answer, without what differs between any two servers. */
function essence({ status, body }: Answer): string {
  if (typeof body !== "object" || body === null) return `${status} ${body}`;
  if (body.kind === "Status") {
    // The reference repeats some causes; each is compared once.
    const causes: string[] = (body.details?.causes ?? []).map(
      (c: Record<string, string>) => `${c.field}: ${c.message?.split("\n")[0]} (${c.reason})`,
    );
    return withoutGoValues(
      [
        `${status} ${body.reason}: ${body.message?.split("\n")[0].replace(/\]$/, "")}`,
        ...[...new Set(causes)].sort(),
      ].join("\n"),
    );
  }
  const metadata = Object.fromEntries(
    Object.entries(body.metadata ?? {}).filter(([key]) => !noise.includes(key)),
  );
  return `${status} ${JSON.stringify(sorted({ ...body, metadata }))}`;
}

/** In one order; Go writes some lists that are empty as null, which clients take for none. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null && !(Array.isArray(member) && member.length === 0))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)]),
  );
}

/** Every mutation of the sound objects, created as a dry run, and written over the sound object as a dry run. */
export async function* differences(
  reference: Call,
  ours: Call,
  only: (sound: SoundObject) => boolean = () => true,
): AsyncIterable<Difference> {
  for (const sound of soundObjects.filter(only)) {
    const { path, object } = sound;
    const kind = String(object.kind);
    const one = `${path}/${object.metadata.name}`;
    const compare = async (
      what: string,
      method: string,
      at: string,
      body: object,
    ): Promise<Difference | undefined> => {
      const [theirs, own] = await Promise.all([reference(method, at, body), ours(method, at, body)]);
      const [a, b] = [essence(theirs), essence(own)];
      return a === b
        ? undefined
        : { what: `${method} ${kind} ${object.metadata.name}: ${what}`, reference: a, ours: b };
    };
    for (const mutation of mutationsOf(object)) {
      const found = await compare(mutation.name, "POST", `${path}?dryRun=All`, mutation.object);
      if (found !== undefined) yield found;
    }
    const created = await compare("as it is", "POST", path, object);
    if (created !== undefined) yield created;
    const versions = await Promise.all(
      [reference, ours].map(
        async (call) => (await call("GET", one)).body?.metadata?.resourceVersion as string,
      ),
    );
    const versioned =
      (call: Call, i: number): Call =>
      (method, at, body) => {
        const { metadata = {}, ...rest } = (body ?? {}) as { metadata?: object };
        return call(method, at, { ...rest, metadata: { ...metadata, resourceVersion: versions[i] } });
      };
    const [theirs, own] = [versioned(reference, 0), versioned(ours, 1)];
    for (const mutation of mutationsOf(object)) {
      const [a, b] = await Promise.all([
        theirs("PUT", `${one}?dryRun=All`, mutation.object),
        own("PUT", `${one}?dryRun=All`, mutation.object),
      ]);
      if (!same(essence(a), essence(b))) {
        yield {
          what: `PUT ${kind} ${object.metadata.name}: ${mutation.name}`,
          reference: essence(a),
          ours: essence(b),
        };
      }
    }
    for (const call of [reference, ours]) {
      await call("DELETE", one, { gracePeriodSeconds: 0 });
      // No controller runs here that would remove the finalizers.
      await call("PATCH", one, { metadata: { finalizers: null } }, "application/merge-patch+json");
    }
  }
}
