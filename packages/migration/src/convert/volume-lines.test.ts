import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { vectorCases } from "../../../../scripts/vectors/location.ts";
import { convertObject } from "./convert-object.ts";
import { type ConversionNote, type ConversionTotals, convertManifests } from "./index.ts";
import { OutputBuffer } from "./manifest-output.ts";
import { encodingOf } from "./text-feed.ts";
import { VolumeLines } from "./volume-lines.ts";

interface Outcome {
  readonly text: string;
  readonly notes: readonly ConversionNote[];
  readonly totals: ConversionTotals;
}

async function convert(lines: readonly string[], chunkSize = 1 << 16): Promise<Outcome> {
  const written: Uint8Array[] = [];
  const notes: ConversionNote[] = [];
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  async function* input() {
    for (let at = 0; at < bytes.length; at += chunkSize) yield bytes.subarray(at, at + chunkSize);
  }
  const totals = await convertManifests(
    [{ name: "input", bytes: input() }],
    { write: (part) => void written.push(part) },
    {
      to: "csi",
      output: "jsonl",
      explain: false,
      keepProvisioner: false,
      inline: "report",
      note: (note) => notes.push(note),
    },
  );
  return { text: Buffer.concat(written).toString(), notes, totals };
}

/** The same by the long way: the short way passes by a line that begins with a blank. */
const convertLong = (lines: readonly string[]) => convert(lines.map((line) => ` ${line}`));

/** What the short way makes of one line, or `undefined` when it passes it by. */
async function short(line: string): Promise<string | undefined> {
  const written: Uint8Array[] = [];
  const out = new OutputBuffer({ write: (part) => void written.push(part) });
  const bytes = Buffer.from(`${line}\n`);
  const end = new VolumeLines(out).convert(bytes, 0, encodingOf(bytes) ?? "utf8");
  await out.flush();
  if (end === 0) {
    expect(written).toEqual([]);
    return undefined;
  }
  expect(end).toBe(bytes.length);
  return Buffer.concat(written).toString().trimEnd();
}

const recorded: readonly object[] = vectorCases<{ readonly input: { readonly pv?: object | null } }>(
  "translation",
)
  .map(({ input }) => input.pv)
  .filter((pv) => typeof pv === "object" && pv !== null)
  .map((pv) => ({ apiVersion: "v1", kind: "PersistentVolume", ...pv }));

const around = {
  managedFields: [
    { fieldsV1: { "f:spec": { "f:awsElasticBlockStore": {} } }, n: -1.5e3, ok: true, no: null },
  ],
  claimRef: { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace: "team", name: "data" },
};
const dressed = recorded.map((pv) => {
  const { metadata, spec, ...rest } = pv as { metadata?: object; spec?: object };
  return {
    ...rest,
    metadata: { ...metadata, managedFields: around.managedFields, note: 'é "\\ \u2028' },
    spec: { claimRef: around.claimRef, ...spec },
    status: { phase: "Bound", awsElasticBlockStore: {} },
  };
});

describe("the short way and the long one", () => {
  test("write the same bytes for every recorded volume, in any chunks, and report the same of it", {
    timeout: 120_000,
  }, async () => {
    const lines = [...recorded, ...dressed].map((pv) => JSON.stringify(pv));
    const long = await convertLong(lines);
    for (const size of [97, 5000, 1 << 20]) {
      const outcome = await convert(lines, size);
      expect(outcome.totals).toEqual(long.totals);
      expect(outcome.notes).toEqual(long.notes);
      const rows = long.text.split("\n").map((line) => line.trimStart());
      for (const [i, row] of outcome.text.split("\n").entries()) {
        // The long way rewrites a line where it is not certain of the places; the short way is certain.
        if (row !== rows[i]) expect(JSON.parse(row)).toEqual(JSON.parse(rows[i] as string));
      }
    }
    const taken = await Promise.all(lines.map(short));
    const longRows = long.text.split("\n");
    const translated = taken.filter((row, i) => row !== undefined && row !== lines[i]).length;
    expect(translated).toBe(long.totals.converted - droppedByShort(lines, taken, longRows));
  });

  test("agree on volumes that are written in any way, sound or not", { timeout: 120_000 }, async () => {
    const pv = fc.constantFrom(...recorded, ...dressed);
    await fc.assert(
      fc.asyncProperty(
        pv,
        fc.infiniteStream(fc.nat(1000)),
        fc.option(damage, { freq: 1 }),
        async (value, draws, harm) => {
          const next = (bound: number) => (draws.next().value as number) % bound;
          const line = harmed(writtenOddly(value, next), harm);
          const [fast, long] = [await convert([line]), await convertLong([line])];
          expect(fast.totals).toEqual(long.totals);
          expect(fast.notes.map(({ kind, object }) => [kind, object])).toEqual(
            long.notes.map(({ kind, object }) => [kind, object]),
          );
          expect(parsed(fast.text)).toEqual(parsed(long.text));
          // Both splice with the same scanner; what they must arrive at is known without it.
          expect(parsed(fast.text)[0]).toEqual(translatedByItself(line) ?? parsed(fast.text)[0]);
        },
      ),
      { numRuns: 1500 },
    );
  });
});

const ebs = '"awsElasticBlockStore":{"volumeID":"vol-1"}';
const wrap = (spec: string, head = '"kind":"PersistentVolume"') => `{${head},"spec":{${spec}}}`;

describe("a line", () => {
  test.each<[string, string]>([
    ["with blanks", `{ "kind" :\t"PersistentVolume", "spec" : { ${ebs} , "x" : [ 1 , -0.5E+3 ] } }`],
    ["with numbers that JavaScript cannot hold", wrap(`"n":12345678901234567890,${ebs}`)],
    ["with a duplicate member that no translation reads", wrap(`"x":{"a":1,"a":2},${ebs}`)],
    [
      "with the source's name elsewhere",
      wrap(ebs, '"kind":"PersistentVolume","a":{"awsElasticBlockStore":{}}'),
    ],
    ["with escapes and characters of any length", wrap(`"x":"\\u00e9é\\"€😀",${ebs}`)],
  ])("%s is taken, and everything but the source keeps its bytes", async (_name, line) => {
    const csi =
      '"csi":{"driver":"ebs.csi.aws.com","volumeHandle":"vol-1","volumeAttributes":{"partition":"0"}}';
    expect(await short(line)).toBe(line.replace(ebs, csi));
  });

  test("with a volume that has nothing to translate stays as it is", async () => {
    const line = wrap('"nfs" : {"server":"s"}');
    expect(await short(line)).toBe(line);
  });

  test.each<[string, string]>([
    ["of another kind", wrap(ebs, '"kind":"Pod"')],
    ["without a kind", wrap(ebs, '"x":1')],
    ["with its kind in escapes", wrap(ebs, '"kind":"Persistent\\u0056olume"')],
    ["with a name in escapes", wrap(`"\\u0063si":{},${ebs}`)],
    ["with its kind twice", wrap(ebs, '"kind":"Pod","kind":"PersistentVolume"')],
    ["with its source twice", wrap(`${ebs},${ebs}`)],
    ["with two sources", wrap(`${ebs},"cinder":{"volumeID":"v"}`)],
    ["with both forms", wrap(`${ebs},"csi":{}`)],
    ["whose source is no object", wrap('"cinder":null')],
    ["whose metadata is no object", wrap(ebs, '"kind":"PersistentVolume","metadata":1')],
    ["that cannot be translated", wrap('"awsElasticBlockStore":{"volumeID":"aws://z/x"}')],
    ["with something behind it", `${wrap(ebs)} `],
    ["that nests very deep", wrap(`"x":${"[".repeat(100)}${"]".repeat(100)},${ebs}`)],
    ...[
      "01",
      "1.",
      "-",
      "1e",
      ".5",
      "+1",
      "tru",
      "nul",
      "'a'",
      '"\\x"',
      '"\\u00g0"',
      '"\t"',
      "[1,]",
      "[1 2]",
      '{"a":1,}',
      '{"a"}',
      "{a:1}",
      "",
    ].map((value): [string, string] => [`that is no JSON for ${value}`, wrap(`"x":${value},${ebs}`)]),
  ])("%s is left to the long way", async (_name, line) => {
    expect(await short(line)).toBeUndefined();
  });

  test("that is no UTF-8 is left to the long way", async () => {
    expect(encodingOf(Buffer.from([0x22, 0xff, 0x22]))).toBeUndefined();
  });
});

test("the number of a broken line counts the lines that went the short way", async () => {
  const { notes } = await convert([wrap(ebs), wrap(ebs), '{"a": }', wrap(ebs), '{"b": }']);
  expect(notes.map(({ object }) => object)).toEqual(["input at line 3", "input at line 5"]);
});

test("an affinity met before is renamed for each driver on its own, and never mixed up", async () => {
  const zone = (name: string) =>
    `"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["${name}"]}]}]}}`;
  const lines = ["a", "b"].flatMap((name) => [
    wrap(`${ebs},${zone(name)}`),
    wrap(`"cinder":{"volumeID":"v"},${zone(name)}`),
    wrap(`${zone(name)},${ebs}`),
  ]);
  const [fast, long] = [await convert([...lines, ...lines]), await convertLong([...lines, ...lines])];
  expect(fast.text).toBe(long.text.replace(/^ /gm, ""));
  expect(fast.text).toContain('"key":"topology.ebs.csi.aws.com/zone","operator":"In","values":["b"]');
  expect(fast.text).toContain(
    '"key":"topology.cinder.csi.openstack.org/zone","operator":"In","values":["a"]',
  );
});

/** What the translation makes of the parsed line; `undefined` for one that is no JSON. */
function translatedByItself(line: string): unknown {
  const [value] = parsed(line);
  if (typeof value === "string") return undefined;
  const options = { to: "csi", explain: false, keepProvisioner: false, inline: "report" } as const;
  return convertObject(value, options, () => {})?.[0] ?? value;
}

function droppedByShort(
  lines: readonly string[],
  taken: readonly (string | undefined)[],
  longRows: readonly string[],
): number {
  return taken.filter((row, i) => row === undefined && longRows[i]?.trimStart() !== lines[i]).length;
}

interface Damage {
  readonly at: number;
  readonly length: number;
  readonly put: string;
}

const damage = fc.record<Damage>({
  at: fc.nat(2000),
  length: fc.nat(2),
  put: fc.constantFrom("", ",", '"', "{", "}", "[", "]", ":", "\\", "0", "x", "\u0001", " "),
});

function harmed(line: string, harm: Damage | null): string {
  if (harm === null) return line;
  const at = harm.at % line.length;
  return line.slice(0, at) + harm.put + line.slice(at + harm.length);
}

/** JSON in one line with members in any order, some twice, blanks anywhere and any character in escapes. */
function writtenOddly(value: unknown, next: (bound: number) => number): string {
  const blank = () => ["", "", "", "", "", " ", "\t", "  "][next(8)] as string;
  const text = (plain: string) => {
    if (next(10) > 0) return JSON.stringify(plain);
    const at = next(plain.length + 1);
    const unit = plain.charCodeAt(at);
    if (Number.isNaN(unit)) return JSON.stringify(plain);
    const escaped = `\\u${unit.toString(16).padStart(4, "0")}`;
    const [before, after] = [plain.slice(0, at), plain.slice(at + 1)].map((part) =>
      JSON.stringify(part).slice(1, -1),
    );
    return `"${before}${escaped}${after}"`;
  };
  const write = (part: unknown): string => {
    if (typeof part === "string") return text(part);
    if (typeof part !== "object" || part === null) return JSON.stringify(part);
    if (Array.isArray(part)) return `[${part.map((item) => blank() + write(item) + blank()).join(",")}]`;
    const members = Object.entries(part);
    if (next(3) === 0) members.sort(() => next(3) - 1);
    if (members.length > 0 && next(40) === 0)
      members.push(members[next(members.length)] as [string, unknown]);
    const written = members.map(([name, item]) => `${text(name)}${blank()}:${blank()}${write(item)}`);
    return `{${blank()}${written.join(`${blank()},${blank()}`)}${blank()}}`;
  };
  return write(value);
}

/** Lines as values; what is no JSON, as it is. */
function parsed(text: string): readonly unknown[] {
  return text.split("\n").map((line) => {
    try {
      return JSON.parse(line);
    } catch {
      return line.trim();
    }
  });
}
