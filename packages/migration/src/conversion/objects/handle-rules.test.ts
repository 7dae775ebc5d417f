/** Rules from one driver to another: what they make, what they refuse, and that schema and reader agree. */
import type { PersistentVolume } from "@longshore/kube";
import { Ajv2020 } from "ajv/dist/2020.js";
import { load } from "js-yaml";
import { describe, expect, test } from "vitest";
import { convertedVolume } from "./converted-volume.ts";
import { HandleRuleError, handleRulesSchema, parseHandleRules } from "./handle-rules.ts";

const file = `
version: 1
fromDriver: old.csi.example
toDriver: new.csi.example
handles:
  - pattern: ^vol-(?<id>[0-9a-f]+)$
    handle: disks/$<id>
    attributes: { disk: "$1", pool: fast }
  - pattern: legacy/(.*)
    handle: $1
attributes:
  keep: [tier]
  rename: { fstype: fsType, junk: "" }
topologyKeys:
  topology.old.csi.example/zone: topology.new.csi.example/zone
`;

const volume = (csi: object, key = "topology.old.csi.example/zone"): PersistentVolume => ({
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name: "pv-a" },
  spec: {
    accessModes: ["ReadWriteOnce"],
    capacity: { storage: "5Gi" },
    persistentVolumeReclaimPolicy: "Delete",
    csi: { driver: "old.csi.example", volumeHandle: "vol-0a", fsType: "xfs", ...csi },
    nodeAffinity: {
      required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: "In", values: ["a"] }] }] },
    },
    claimRef: { namespace: "shop", name: "data" },
  },
});

describe("rules", () => {
  const rule = parseHandleRules(file);

  test("give the disk its handle, attributes and topology of the other driver", () => {
    const volumeAttributes = {
      fstype: "x",
      tier: "1",
      junk: "j",
      "storage.kubernetes.io/csiProvisionerIdentity": "1",
    };
    const converted = convertedVolume(volume({ volumeAttributes }), { newName: "pv-b", rule });
    if ("failure" in converted) throw new Error(converted.failure);
    expect(converted.object.spec?.csi).toEqual({
      driver: "new.csi.example",
      volumeHandle: "disks/0a",
      fsType: "xfs",
      volumeAttributes: { fsType: "x", tier: "1", disk: "0a", pool: "fast" },
    });
    expect(JSON.stringify(converted.object.spec?.nodeAffinity)).toContain("topology.new.csi.example/zone");
    expect(converted.object.metadata?.annotations).toEqual({
      "pv.kubernetes.io/provisioned-by": "new.csi.example",
    });
    expect(converted.differences.map(({ field }) => field)).toContain("spec.csi");
  });

  test("the first pattern that matches the whole handle counts, and keys of Kubernetes stay", () => {
    const converted = rule.convert(volume({ volumeHandle: "legacy/vol-1" }, "topology.kubernetes.io/zone"));
    expect("object" in converted && converted.object.spec?.csi?.volumeHandle).toBe("vol-1");
    expect("object" in converted && converted.object.spec?.csi).not.toHaveProperty("volumeAttributes");
  });

  test.each([
    [volume({ driver: "x.csi.example" }), /the rules are for old\.csi\.example, and this is x\.csi\.example/],
    [volume({ volumeHandle: "disk-1" }), /no pattern of the rules matches "disk-1"; add one/],
    [volume({ volumeHandle: "vol-0a\n" }), /no pattern/],
    [volume({ volumeHandle: `vol-${"a".repeat(600)}` }), /longer than 512 characters/],
    [volume({ volumeAttributes: { size: "1" } }), /volumeAttributes\.size: the rules do not say/],
    [
      volume({}, "topology.old.csi.example/rack"),
      /key topology\.old\.csi\.example\/rack; add it to topologyKeys/,
    ],
  ])("a volume that they say nothing of is refused", (pv, message) => {
    expect(rule.convert(pv)).toHaveProperty("failure", expect.stringMatching(message));
  });
});

describe("a rule file", () => {
  const validate = new Ajv2020().compile(handleRulesSchema);
  const changed = (from: string, to: string) => file.replace(from, to);

  test("as above is valid", () => expect(validate(load(file))).toBe(true));

  test.each([
    [changed("version: 1", "version: 2"), /^version: it is not 1/],
    [changed("fromDriver: old.csi.example\n", ""), /^fromDriver: missing; write the driver of the volumes/],
    [changed("toDriver: new.csi.example", "toDriver: [1]"), /^toDriver: no text/],
    [changed("handles:", "handle:"), /^handle: not a field; there are version, fromDriver/],
    [changed("    handle: $1", "    handel: $1"), /^handles\[1\]\.handel: not a field/],
    [changed("  keep: [tier]", "  keep: tier"), /^attributes\.keep: no list/],
    [changed("pool: fast", "pool: 7"), /^handles\[0\]\.attributes\.pool: no text; write it in quotes/],
    ["version: 1\nfromDriver: a\ntoDriver: b\nhandles: []\n", /^handles: no list with an entry/],
    ["- 1\n", /^the file: it is no object/],
  ])("that is wrong is refused by the field, and by the schema", (text, message) => {
    expect(() => parseHandleRules(text)).toThrow(HandleRuleError);
    expect(() => parseHandleRules(text)).toThrow(message);
    expect(validate(load(text))).toBe(false);
  });

  test.each([
    ["a: [", /^it is no YAML/],
    [changed("legacy/(.*)", "legacy/("), /^handles\[1\]\.pattern: it is no regular expression/],
    [
      changed("toDriver: new.csi.example", "toDriver: old.csi.example"),
      /^toDriver: it is old\.csi\.example as well/,
    ],
  ])("that no schema can judge is refused as well", (text, message) => {
    expect(() => parseHandleRules(text)).toThrow(message);
  });
});
