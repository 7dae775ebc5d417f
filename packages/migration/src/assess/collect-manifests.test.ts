import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { assess } from "./assess.ts";
import { collectManifests } from "./collect-manifests.ts";

const now = new Date("2026-01-01T12:00:00Z");
async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 100) yield bytes.subarray(at, at + 100);
}
const input = (name: string, content: string | Uint8Array) => ({
  name,
  bytes: chunksOf(typeof content === "string" ? Buffer.from(content) : content),
});
const collect = (contents: Readonly<Record<string, string | Uint8Array>>, checkSecrets = false) =>
  collectManifests(
    Object.entries(contents).map(([name, content]) => input(name, content)),
    { now, checkSecrets },
  );

const node = {
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "n1" },
  status: { nodeInfo: { kubeletVersion: "v1.27.1" } },
};
const csiNode = {
  apiVersion: "storage.k8s.io/v1",
  kind: "CSINode",
  metadata: { name: "n1" },
  spec: { drivers: [] },
};
const pv = {
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name: "pv1" },
  spec: { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-0123456789abcdef0" } },
};
const claim = {
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: "c1", namespace: "default" },
  spec: {},
};
const pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p1", namespace: "default" },
  spec: { volumes: [] },
};
const all = [node, csiNode, pv, claim, pod];
const list = (items: readonly object[]) =>
  JSON.stringify({ apiVersion: "v1", kind: "List", items }, undefined, 2);

describe("an inventory from files", () => {
  const forms: Readonly<Record<string, string | Uint8Array>> = {
    "a list": list(all),
    "JSON lines": all.map((each) => JSON.stringify(each)).join("\n"),
    "YAML documents": all.map((each) => `---\n${JSON.stringify(each, undefined, 1)}\n`).join(""),
    gzip: gzipSync(list(all)),
  };

  it.each(Object.entries(forms))("reads %s", async (_form, content) => {
    const inventory = await collect({ "dump.json": content });
    expect(inventory.gaps).toEqual([]);
    expect(
      [inventory.nodes, inventory.csiNodes, inventory.volumes, inventory.claims, inventory.pods].map(
        (l) => l.length,
      ),
    ).toEqual([1, 1, 1, 1, 1]);
    expect(assess(inventory).findings.map(({ code }) => code)).toContain("LS1101");
  });

  it("reads lists whose items name no kind, as those of a cluster dump", async () => {
    const { kind: _kind, apiVersion: _version, ...bare } = node;
    const text = JSON.stringify({ kind: "NodeList", apiVersion: "v1", items: [bare] });
    expect((await collect({ "nodes.json": text })).nodes).toHaveLength(1);
  });

  it("keeps an object once that comes in several files", async () => {
    expect((await collect({ a: list(all), b: JSON.stringify(node) })).nodes).toHaveLength(1);
  });

  it("has no verdict without a kind that it needs, and one with an empty list of it", async () => {
    const without = await collect({ a: list(all.filter(({ kind }) => kind !== "CSINode")) });
    expect(without.gaps).toMatchObject([{ code: "LS1002", object: "kind CSINode" }]);
    expect(assess(without).verdict).toBe("CANNOT DETERMINE");
    const empty = JSON.stringify({ kind: "CSINodeList", apiVersion: "storage.k8s.io/v1", items: [] });
    const withEmpty = await collect({ a: list(all.filter(({ kind }) => kind !== "CSINode")), b: empty });
    expect(withEmpty.gaps).toEqual([]);
    expect(assess(withEmpty).verdict).toBe("NOT READY");
  });

  it("names file and line of what cannot be read, and reads the rest", async () => {
    const cut = list(all).slice(0, -30);
    const inventory = await collect({ "cut.json": cut, "nodes.json": JSON.stringify(node) });
    expect(inventory.nodes).toHaveLength(1);
    expect(inventory.gaps).toMatchObject([
      { code: "LS1004", object: expect.stringMatching(/^cut\.json at line \d+$/) },
      { code: "LS1002" },
    ]);
    const binary = await collect({ "x.json": Buffer.from([0x50, 0x4b, 0x03, 0x04, 0, 0]) });
    expect(binary.gaps[0]).toMatchObject({
      code: "LS1004",
      evidence: "x.json is a zip archive: unpack it first",
    });
  });

  it("survives members of any type", async () => {
    const odd = all.map((each) => ({
      ...each,
      spec: { drivers: 7, volumes: 7, source: null, accessModes: 7, awsElasticBlockStore: 7 },
    }));
    const { verdict, findings } = assess(await collect({ a: list(odd) }));
    expect(verdict).not.toBe("READY");
    expect(findings.map(({ code }) => code)).toContain("LS1004");
  });

  it("keeps nothing of a Secret but its name", async () => {
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "s", namespace: "default" },
      data: { key: "aGlkZGVu" },
    };
    const inventory = await collect({ a: list([secret]) }, true);
    expect([...(inventory.secrets ?? [])]).toEqual(["default/s"]);
    expect(JSON.stringify(inventory)).not.toContain("aGlkZGVu");
  });

  it("says how far it is in a large input", async () => {
    const line = Buffer.from(`${JSON.stringify({ kind: "Other", text: "x".repeat(1_000_000) })}\n`);
    const said: string[] = [];
    const bytes = (async function* () {
      for (let index = 0; index < 205; index++) yield line;
    })();
    await collectManifests([{ name: "big", bytes }], { now, onProgress: (text) => said.push(text) });
    expect(said).toEqual(["100 MB of big", "200 MB of big"]);
  });
});
