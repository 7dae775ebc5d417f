import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ConversionNote, convertManifests, type ManifestOptions } from "./index.ts";
import { parseYaml } from "./yaml-text.ts";

interface Outcome {
  readonly text: string;
  readonly notes: readonly ConversionNote[];
  readonly failed: number;
  readonly converted: number;
  readonly objects: number;
}

async function* inChunks(text: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function convert(
  text: string,
  options: Partial<ManifestOptions> = {},
  chunkSize = 1 << 16,
): Promise<Outcome> {
  const written: Uint8Array[] = [];
  const notes: ConversionNote[] = [];
  const totals = await convertManifests(
    inChunks(text, chunkSize),
    { write: (bytes) => void written.push(bytes) },
    {
      to: "csi",
      explain: false,
      keepProvisioner: false,
      inline: "report",
      note: (note) => notes.push(note),
      ...options,
    },
  );
  return { text: Buffer.concat(written).toString("utf8"), notes, ...totals };
}

const ebs = (name: string, volumeID = "vol-1") => ({
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name },
  spec: { awsElasticBlockStore: { volumeID } },
});
const csi = { driver: "ebs.csi.aws.com", volumeHandle: "vol-1", volumeAttributes: { partition: "0" } };
const lines = (...objects: readonly unknown[]) =>
  objects.map((object) => `${JSON.stringify(object)}\n`).join("");
const parsedLines = (text: string) =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

const untouched = `# head
%YAML 1.1
--- # first
kind: ConfigMap   # a comment
data: {x: 'y'}
# foot
---
# nothing but a comment
---
a: |
  --- not a separator
  items:
  - x
...
---
kind: Secret
metadata:
    name:   odd
`;

describe("YAML", () => {
  test("what is not changed is written byte for byte, however it arrives", async () => {
    for (const size of [1, 7, 64, 1 << 16]) {
      const { text, failed } = await convert(untouched, {}, size);
      expect(text).toBe(untouched);
      expect(failed).toBe(0);
    }
  });

  test("a changed document stands between its untouched neighbours", async () => {
    const input =
      "kind: A # a\n---\nkind: PersistentVolume\nspec:\n  cinder: {volumeID: v}\n---\nkind: B # b\n";
    const { text } = await convert(input);
    expect(text.startsWith("kind: A # a\n---\n")).toBe(true);
    expect(text.endsWith("---\nkind: B # b\n")).toBe(true);
    expect(parseYaml(text.split("---\n")[1] as string)).toEqual({
      kind: "PersistentVolume",
      spec: { csi: { driver: "cinder.csi.openstack.org", volumeHandle: "v" } },
    });
  });

  test("is read as Kubernetes reads it: yes is true, 0644 is octal, a time stays text", async () => {
    const input =
      "kind: PersistentVolume\nat: 2021-01-01T00:00:00Z\nmode: 0644\nspec:\n  cinder: {volumeID: v, readOnly: no}\n";
    const { text } = await convert(input, { output: "jsonl" });
    expect(JSON.parse(text)).toMatchObject({ at: "2021-01-01T00:00:00Z", mode: 420 });
    expect(JSON.parse(text).spec.csi).not.toHaveProperty("readOnly");
  });

  test("a list stays a list, item by item, with the comments of items that are not changed", async () => {
    const input = `apiVersion: v1
items:
# about a
- kind: A   # stays
  text: |
    - x
- kind: PersistentVolume
  spec: {cinder: {volumeID: v}}
# about b
- kind: B
kind: List
`;
    for (const size of [1, 1 << 16]) {
      const { text, objects, converted } = await convert(input, {}, size);
      const volume =
        "- kind: PersistentVolume\n  spec:\n    csi:\n      driver: cinder.csi.openstack.org\n      volumeHandle: v\n";
      expect(text).toBe(input.replace("- kind: PersistentVolume\n  spec: {cinder: {volumeID: v}}\n", volume));
      expect({ objects, converted }).toEqual({ objects: 3, converted: 1 });
    }
  });

  test("a document that is no YAML is named, written as it is, and does not stop the others", async () => {
    const input = `kind: A\n---\nx: [1\n---\n${JSON.stringify(ebs("pv"))}\n`;
    const { text, notes, failed } = await convert(input);
    expect(failed).toBe(1);
    expect(notes[0]?.object).toMatch(/^input at line [345]$/);
    expect(text).toContain("x: [1\n");
    expect(text).toContain("ebs.csi.aws.com");
  });
});

describe("JSON", () => {
  test("lines stay lines, and what is not touched keeps every byte", async () => {
    const odd = '{"kind" : "ConfigMap", "n":12345678901234567890, "s":"\\u0041"}';
    const { text } = await convert(`${odd}\n${lines(ebs("pv"))}`);
    const [first, second] = text.trim().split("\n");
    expect(first).toBe(odd);
    expect(JSON.parse(second as string).spec).toEqual({ csi });
  });

  test("numbers that JavaScript cannot hold survive beside a translated source", async () => {
    const line = '{"kind":"PersistentVolume","x":12345678901234567890,"spec":{"cinder":{"volumeID":"v"}}}\n';
    expect((await convert(line)).text).toContain('"x":12345678901234567890');
  });

  test("a member's name in a text, or twice, does not lead the splicing astray", async () => {
    const tricky = {
      ...ebs("pv"),
      metadata: { name: "pv", annotations: { last: JSON.stringify(ebs("pv")), awsElasticBlockStore: "x" } },
    };
    const { text } = await convert(lines(tricky));
    const { awsElasticBlockStore: _, ...rest } = tricky.spec;
    expect(JSON.parse(text)).toEqual({ ...tricky, spec: { ...rest, csi } });
  });

  test.each([1, 3, 50, 1 << 16])(
    "a List of any size, in chunks of %i bytes, becomes one List",
    async (size) => {
      const list = {
        items: [ebs("é"), { kind: "Other", a: ["}", '"', "\\"] }],
        apiVersion: "v1",
        kind: "List",
      };
      for (const text of [JSON.stringify(list), JSON.stringify(list, undefined, 2)]) {
        const output = JSON.parse((await convert(text, {}, size)).text);
        expect(output.kind).toBe("List");
        expect(output.items).toEqual([{ ...ebs("é"), spec: { csi } }, list.items[1]]);
      }
    },
  );

  test("holds one item at a time, whatever the length of the list", async () => {
    const item = Buffer.from(`${JSON.stringify(ebs("pv"))},`);
    let written = 0;
    async function* endless(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('{"kind":"List","items":[');
      for (let i = 0; i < 20_000; i++) {
        yield item;
        // All but what fits into the buffers has been written by the time more is asked for.
        if (i % 1000 === 999) expect(i * item.length - written).toBeLessThan(400_000);
      }
      yield Buffer.from('{"kind":"End"}]}');
    }
    const writer = {
      write(bytes: Uint8Array) {
        written += bytes.length;
      },
    };
    const options = {
      to: "csi",
      explain: false,
      keepProvisioner: false,
      inline: "report",
      note: () => {},
    } as const;
    const totals = await convertManifests(endless(), writer, options);
    expect(totals).toEqual({ objects: 20_001, converted: 20_000, failed: 0 });
  });

  test("broken values are named by line and skipped", async () => {
    const { text, notes } = await convert(`${lines(ebs("a"))}{"a": }\n{"b": "open\n${lines(ebs("c"))}`);
    expect(notes.map(({ object }) => object)).toEqual(["input at line 2", "input at line 3"]);
    expect(parsedLines(text).map(({ metadata }) => metadata.name)).toEqual(["a", "c"]);
    const cut = await convert('{"kind":"List","items":[{"kind":"A"},{"ki');
    expect(cut.failed).toBe(1);
    expect(JSON.parse(cut.text).items).toEqual([{ kind: "A" }]);
  });

  test("any mixture of values comes out the same in every form and chunking", async () => {
    const values = fc.array(fc.record({ kind: fc.constant("Thing"), value: fc.jsonValue() }), {
      minLength: 1,
      maxLength: 5,
    });
    await fc.assert(
      fc.asyncProperty(values, fc.integer({ min: 1, max: 40 }), fc.nat(2), async (objects, size, indent) => {
        const plain = JSON.parse(JSON.stringify(objects));
        const text = plain.map((object: unknown) => JSON.stringify(object, undefined, indent)).join("\n");
        expect(JSON.parse((await convert(text, { output: "json" }, size)).text).items).toEqual(plain);
        expect(parsedLines((await convert(text, { output: "jsonl" }, size)).text)).toEqual(plain);
      }),
    );
  });
});

describe("objects", () => {
  test("volumes go back in-tree", async () => {
    const { text } = await convert(lines({ ...ebs("pv"), spec: { csi } }), { to: "in-tree" });
    expect(JSON.parse(text)).toEqual(ebs("pv"));
    const foreign = lines({
      kind: "PersistentVolume",
      spec: { csi: { driver: "other", volumeHandle: "v" } },
    });
    expect((await convert(foreign, { to: "in-tree" })).text).toBe(foreign);
  });

  test("one that cannot be translated is named with field and remedy, and written as it is", async () => {
    const bad = lines(ebs("bad", "aws://z/x"), {
      kind: "PersistentVolume",
      metadata: { name: "odd" },
      spec: { awsElasticBlockStore: {} },
    });
    const { text, notes, failed } = await convert(bad);
    expect(failed).toBe(2);
    expect(text).toBe(bad);
    expect(notes[0]?.object).toBe('PersistentVolume "bad"');
    expect(notes[0]?.text).toMatch(/^spec\.awsElasticBlockStore\.volumeID: .*; write it as/);
    expect(notes[1]?.object).toBe('PersistentVolume "odd"');
  });

  const storageClass = {
    kind: "StorageClass",
    metadata: { name: "gp2" },
    provisioner: "kubernetes.io/aws-ebs",
    parameters: { fsType: "xfs" },
  };
  test("a class gets the driver as provisioner, unless it shall keep its own", async () => {
    const parameters = { "csi.storage.k8s.io/fstype": "xfs" };
    expect(JSON.parse((await convert(lines(storageClass))).text)).toEqual({
      ...storageClass,
      provisioner: "ebs.csi.aws.com",
      parameters,
    });
    const kept = await convert(lines(storageClass), { keepProvisioner: true });
    expect(JSON.parse(kept.text)).toEqual({ ...storageClass, parameters });
    const portworx = {
      kind: "StorageClass",
      provisioner: "kubernetes.io/portworx-volume",
      parameters: { repl: "2" },
    };
    expect(JSON.parse((await convert(lines(portworx), { keepProvisioner: true })).text)).toEqual(portworx);
  });

  test("--explain tells each field, and what a hash was made from", async () => {
    const rbd = {
      kind: "PersistentVolume",
      metadata: { name: "r" },
      spec: { rbd: { image: "i", monitors: ["a", "b"] } },
    };
    const { notes } = await convert(lines(rbd, storageClass), { explain: true });
    const texts = notes.map(({ object, text }) => `${object}: ${text}`);
    expect(texts.find((text) => text.includes("clusterID"))).toContain('computed from "a,b"');
    expect(texts.find((text) => text.startsWith('StorageClass "gp2": provisioner -> provisioner'))).toContain(
      "ebs.csi.aws.com",
    );
  });
});

describe("volumes in pods", () => {
  const volumes = [
    { name: "scratch", emptyDir: {} },
    { name: "data", awsElasticBlockStore: { volumeID: "vol-1" } },
  ];
  const pod = { kind: "Pod", metadata: { name: "web", namespace: "ns" }, spec: { volumes } };

  test("are reported and left alone", async () => {
    const { text, notes, failed } = await convert(lines(pod));
    expect(text).toBe(lines(pod));
    expect(failed).toBe(0);
    expect(notes).toEqual([expect.objectContaining({ kind: "inline", object: 'Pod "ns/web"' })]);
    expect(notes[0]?.text).toContain('spec.volumes[1] ("data")');
  });

  test("become a volume and a claim bound to each other, which the pod uses", async () => {
    const [pv, claim, changed] = parsedLines((await convert(lines(pod), { inline: "claim" })).text);
    expect(pv.spec).toMatchObject({
      csi,
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Retain",
    });
    expect(pv.spec.claimRef).toMatchObject({ namespace: "ns", name: "web-data" });
    expect(claim).toMatchObject({
      kind: "PersistentVolumeClaim",
      metadata: { name: "web-data", namespace: "ns" },
    });
    expect(claim.spec).toMatchObject({
      volumeName: pv.metadata.name,
      storageClassName: "",
      accessModes: ["ReadWriteOnce"],
    });
    expect(changed.spec.volumes).toEqual([
      volumes[0],
      { name: "data", persistentVolumeClaim: { claimName: "web-data" } },
    ]);
  });

  test("of a template do so only where there is one replica", async () => {
    const template = (replicas: number) => ({
      kind: "Deployment",
      metadata: { name: "d" },
      spec: { replicas, template: { spec: { volumes } } },
    });
    expect(parsedLines((await convert(lines(template(1)), { inline: "claim" })).text)).toHaveLength(3);
    const many = await convert(lines(template(3)), { inline: "claim" });
    expect(many.text).toBe(lines(template(3)));
    expect(many.notes[0]).toMatchObject({ kind: "failed", object: 'Deployment "d"' });
    const daemons = { kind: "DaemonSet", spec: { template: { spec: { volumes } } } };
    expect((await convert(lines(daemons), { inline: "claim" })).failed).toBe(1);
  });

  test("have names that the API accepts, one for each disk", async () => {
    const uri = (disk: string) =>
      `/subscriptions/1/resourceGroups/g/providers/Microsoft.Compute/disks/${disk}`;
    const two = ["a", "b"].map((disk) => ({ name: disk, azureDisk: { diskName: disk, diskURI: uri(disk) } }));
    const made = parsedLines(
      (await convert(lines({ ...pod, spec: { volumes: two } }), { inline: "claim" })).text,
    );
    const names = made.filter(({ kind }) => kind === "PersistentVolume").map(({ metadata }) => metadata.name);
    expect(new Set(names).size).toBe(2);
    for (const name of names) expect(name).toMatch(/^[a-z0-9][-a-z0-9.]*[a-z0-9]$/);
  });
});
