import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ConversionNote, convertManifests, type ManifestOptions } from "./index.ts";
import { formatYaml, parseYaml } from "./yaml-text.ts";

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
    [{ name: "input", bytes: inChunks(text, chunkSize) }],
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

  test.each(["0x_", "0b_", "0o_", "-0x_"])("%s is a text: a number has digits", async (text) => {
    const input = `kind: PersistentVolume\nat: ${text}\nbits: 0x_f\nnone: [0, 0_, -0_]\nspec:\n  cinder: {volumeID: v}\n`;
    const converted = await convert(input, { output: "jsonl" });
    expect(JSON.parse(converted.text)).toMatchObject({ at: text, bits: 15, none: [0, 0, 0] });
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

  test("comments of a document that is translated are said to be lost, and only those", async () => {
    const volume = (head: string, text: string) =>
      `${head}kind: PersistentVolume\nmetadata:\n  name: pv\n${text}spec:\n  cinder: {volumeID: v}\n`;
    const note = {
      kind: "dropped",
      object: 'PersistentVolume "pv"',
      text: "the comments of its document are not kept",
    };
    expect((await convert(volume("# why\n", ""))).notes).toEqual([note]);
    expect((await convert(volume("", "spare: a # b\n"))).notes).toEqual([note]);
    expect((await convert(volume("", "spare: 'a # b'\nmore: |\n  # text\nlast: c#d\n"))).notes).toEqual([]);
    expect((await convert("# kept\nkind: Other\n")).notes).toEqual([]);
    const list = `apiVersion: v1\nitems:\n- kind: PersistentVolume # why\n  metadata: {name: pv}\n  spec: {cinder: {volumeID: v}}\nkind: List\n`;
    expect((await convert(list)).notes).toEqual([note]);
  });

  test("aliases that would make gigabytes of a few hundred bytes are refused at once", async () => {
    const bomb = ["a: &a [x,x,x,x,x,x,x,x,x,x]"];
    for (const [from, to] of ["ab", "bc", "cd", "de", "ef", "fg", "gh", "hi"]) {
      bomb.push(`${to}: &${to} [${Array(10).fill(`*${from}`).join(",")}]`);
    }
    const { text, notes, failed } = await convert(
      `kind: PersistentVolume\nspec: {cinder: {volumeID: v}}\n${bomb.join("\n")}\n`,
    );
    expect(failed).toBe(1);
    expect(notes[0]?.text).toContain("its aliases would make far more of it than it holds");
    expect(text).toContain("&i");
    const itself = await convert(
      "kind: PersistentVolume\nspec: &s\n  cinder: {volumeID: v}\n  more: [*s]\n",
      { output: "json" },
    );
    expect(itself.failed).toBe(1);
    const plain = "kind: PersistentVolume\nspec:\n  cinder: {volumeID: &v v}\n  more: [*v, *v]\n";
    expect(parseYaml((await convert(plain)).text)).toMatchObject({ spec: { more: ["v", "v"] } });
  });

  test("a document that is not YAML is named, written as it is, and does not stop the others", async () => {
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

  test.each([
    ["json", undefined],
    ["json", 2],
    ["yaml", undefined],
  ])("items of a PersistentVolumeList get the kind that they go without (%s, %s)", async (form, indent) => {
    const { kind: _, apiVersion: __, ...item } = ebs("pv");
    const list = { kind: "PersistentVolumeList", apiVersion: "v1", metadata: {}, items: [item, item] };
    const text = form === "json" ? JSON.stringify(list, undefined, indent) : formatYaml(list);
    for (const output of ["json", "jsonl", "yaml"] as const) {
      for (const size of [3, 1 << 16]) {
        const { text: made, failed, converted } = await convert(text, { output }, size);
        expect({ failed, converted }).toEqual({ failed: 0, converted: 2 });
        const items =
          output === "jsonl"
            ? parsedLines(made)
            : output === "json"
              ? JSON.parse(made).items
              : form === "yaml"
                ? (parseYaml(made) as { items: unknown[] }).items
                : made.split("---\n").map(parseYaml);
        expect(items).toEqual(Array(2).fill({ ...ebs("pv"), spec: { csi } }));
      }
    }
  });

  test("an item that neither has a kind nor gets one from its list is named", async () => {
    const list = {
      apiVersion: "v1",
      items: [{ spec: { cinder: { volumeID: "v" } } }],
      kind: "PersistentVolumeList",
    };
    const { notes, failed } = await convert(JSON.stringify(list, undefined, 1));
    expect(failed).toBe(1);
    expect(notes[0]?.object).toMatch(/^input at line \d+$/);
    expect(notes[0]?.text).toContain("a list's item has no kind");
  });

  test("several inputs are converted one after the other, each named in what is said", async () => {
    const texts = [
      "kind: A\nx: 1",
      "kind: B\n",
      JSON.stringify(ebs("pv")),
      "kind: List\nitems:\n- kind: C\n",
      "x: [1\n",
    ];
    const written: Uint8Array[] = [];
    const notes: ConversionNote[] = [];
    const totals = await convertManifests(
      texts.map((text, i) => ({ name: `file-${i}`, bytes: inChunks(text, 1 << 16) })),
      { write: (bytes) => void written.push(bytes) },
      {
        to: "csi",
        explain: false,
        keepProvisioner: false,
        inline: "report",
        note: (note) => notes.push(note),
      },
    );
    expect(totals).toEqual({ objects: 4, converted: 1, failed: 1 });
    const documents = Buffer.concat(written).toString().split("---\n").slice(0, 4).map(parseYaml);
    expect(documents).toMatchObject([
      { kind: "A" },
      { kind: "B" },
      { kind: "PersistentVolume" },
      { items: [{ kind: "C" }] },
    ]);
    expect(notes[0]?.object).toMatch(/^file-4 at line /);
  });

  test("gzip is read; other forms are refused, not written as they are", async () => {
    const zipped = gzipSync(lines(ebs("pv")));
    const read = (bytes: Uint8Array) => {
      const written: Uint8Array[] = [];
      const input = {
        name: "file",
        bytes: (async function* () {
          for (const byte of bytes) yield Uint8Array.of(byte);
        })(),
      };
      const options = {
        to: "csi",
        output: "jsonl",
        explain: false,
        keepProvisioner: false,
        inline: "report",
        note: () => {},
      } as const;
      return convertManifests([input], { write: (part) => void written.push(part) }, options).then(() =>
        Buffer.concat(written).toString(),
      );
    };
    expect(JSON.parse(await read(zipped)).spec).toEqual({ csi });
    await expect(read(zipped.subarray(0, 40))).rejects.toThrow(/^file is not sound gzip .*: fetch it again$/);
    await expect(read(Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 1, 2]))).rejects.toThrow(
      "file is zstd-compressed: decompress it first",
    );
    await expect(read(Buffer.from("\ufeffkind: A\n", "utf16le"))).rejects.toThrow("file is UTF-16 text");
    await expect(read(Buffer.from("kind\0A"))).rejects.toThrow("file is not text: give YAML or JSON");
  });

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
    const totals = await convertManifests([{ name: "input", bytes: endless() }], writer, options);
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
    expect(notes[1]?.text).toMatch(/^spec\.awsElasticBlockStore\.volumeID: is missing; set it/);
  });

  test.each([
    ["csi", { vsphereVolume: {} }, "spec.vsphereVolume.volumePath: is missing"],
    ["csi", { cinder: { volumeID: 7 } }, "spec.cinder.volumeID: is not a text"],
    ["csi", { rbd: { monitors: [], image: "i" } }, "spec.rbd.monitors: is not a list of texts"],
    [
      "in-tree",
      { csi: { driver: "rbd.csi.ceph.com", volumeHandle: "0001-x" } },
      'spec.csi.volumeHandle: "0001-x" does not contain spec.rbd.monitors',
    ],
    [
      "in-tree",
      { csi: { driver: "csi.vsphere.vmware.com", volumeHandle: "8e8c" } },
      "spec.csi.volumeHandle: ",
    ],
    ["in-tree", { csi: { driver: "ebs.csi.aws.com" } }, "spec.csi.volumeHandle: is missing"],
  ] as const)("to %s %j: names the field and changes nothing", async (to, spec, problem) => {
    const pv = lines({ kind: "PersistentVolume", metadata: { name: "pv" }, spec });
    const { text, notes, failed } = await convert(pv, { to });
    expect({ text, failed }).toEqual({ text: pv, failed: 1 });
    expect(notes[0]?.text).toContain(problem);
  });

  test("a vSphere path comes back from the handle, and what is dropped is said", async () => {
    const volumeHandle = "[ds] dir/disk.vmdk";
    const volumeAttributes = { "storage.kubernetes.io/csiProvisionerIdentity": "1-x" };
    const pv = { csi: { driver: "csi.vsphere.vmware.com", volumeHandle, volumeAttributes } };
    const { text, notes, failed } = await convert(lines({ kind: "PersistentVolume", spec: pv }), {
      to: "in-tree",
    });
    expect(JSON.parse(text).spec).toEqual({ vsphereVolume: { volumePath: volumeHandle } });
    expect({ failed, kinds: notes.map(({ kind }) => kind) }).toEqual({ failed: 0, kinds: ["dropped"] });
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

  test("--explain names each field, and what a hash was made from", async () => {
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

  const withClaims = { inline: "claim", claimSizes: { others: "20Gi", byVolume: new Map() } } as const;

  test("become no claim as long as the size of the disk is not known", async () => {
    const { text, notes, failed } = await convert(lines(pod), { inline: "claim" });
    expect({ text, failed }).toEqual({ text: lines(pod), failed: 1 });
    expect(notes[0]?.text).toMatch(/^spec\.volumes\[1\]: .* how large the disk of "data" is; give the size/);
    const byVolume = new Map([["data", "7Gi"]]);
    const [pv] = parsedLines((await convert(lines(pod), { inline: "claim", claimSizes: { byVolume } })).text);
    expect(pv.spec.capacity).toEqual({ storage: "7Gi" });
  });

  test("without a field that names the disk are named, not made into claims", async () => {
    const odd = { ...pod, spec: { volumes: [{ name: "data", cinder: { fsType: "ext4" } }] } };
    const { text, notes } = await convert(lines(odd), withClaims);
    expect(text).toBe(lines(odd));
    expect(notes[0]?.text).toMatch(/^spec\.volumes\[0\]\.cinder\.volumeID: is missing; /);
  });

  test("are reported and left alone", async () => {
    const { text, notes, failed } = await convert(lines(pod));
    expect(text).toBe(lines(pod));
    expect(failed).toBe(0);
    expect(notes).toEqual([expect.objectContaining({ kind: "inline", object: 'Pod "ns/web"' })]);
    expect(notes[0]?.text).toContain('spec.volumes[1] ("data")');
  });

  test("become a volume and a claim bound to each other, which the pod uses", async () => {
    const [pv, claim, changed] = parsedLines((await convert(lines(pod), withClaims)).text);
    expect(pv.spec.capacity).toEqual({ storage: "20Gi" });
    expect(claim.spec.resources).toEqual({ requests: { storage: "20Gi" } });
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
    expect(parsedLines((await convert(lines(template(1)), withClaims)).text)).toHaveLength(3);
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
    const made = parsedLines((await convert(lines({ ...pod, spec: { volumes: two } }), withClaims)).text);
    const names = made.filter(({ kind }) => kind === "PersistentVolume").map(({ metadata }) => metadata.name);
    expect(new Set(names).size).toBe(2);
    for (const name of names) expect(name).toMatch(/^[a-z0-9][-a-z0-9.]*[a-z0-9]$/);
  });
});
