import { describe, expect, it } from "vitest";
import { resourceKey } from "../api/kind.ts";
import { own } from "../api/own.ts";
import { builtInKinds } from "../registry/kinds/index.ts";
import { humanDuration } from "../tables/human-duration.ts";
import { columnsOf } from "../tables/index.ts";
import { emulatedVersion } from "../versions/emulated-version.ts";
import { negotiate } from "./negotiate.ts";
import { type Rendered, renderList, renderObject } from "./render-object.ts";
import { toYaml } from "./yaml.ts";

const now = new Date("2026-01-01T01:00:00Z");
const emulated = emulatedVersion();
const seconds = 1000;
const minutes = 60 * seconds;
const hours = 60 * minutes;
const days = 24 * hours;

function kindOf(resource: string) {
  const kind = builtInKinds(emulatedVersion()).find((k) => resourceKey(k) === resource);
  if (kind === undefined) throw new Error(`${resource} is not served`);
  return kind;
}

function context(resource: string, accept: string, includeObject?: string) {
  const form = negotiate(accept);
  return { kind: kindOf(resource), version: "v1", emulated, form, includeObject, now };
}

const textOf = ({ parts }: Rendered) => Buffer.concat([...parts]).toString();

const table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const created = "2026-01-01T00:58:00Z";
const metadata = (name: string) => ({ name, uid: "u", creationTimestamp: created, resourceVersion: "7" });

/** The cells of one object by the names of their columns. */
function cells(resource: string, object: object): Readonly<Record<string, unknown>> {
  const rendered = JSON.parse(textOf(renderObject(own(object) as never, context(resource, table))));
  const names = rendered.columnDefinitions.map((column: { name: string }) => column.name);
  return Object.fromEntries(names.map((name: string, i: number) => [name, rendered.rows[0].cells[i]]));
}

describe("tables", () => {
  it.each([
    [
      "persistentvolumes",
      {
        spec: {
          capacity: { storage: "1Gi" },
          accessModes: ["ReadWriteOnce", "ReadOnlyMany"],
          persistentVolumeReclaimPolicy: "Retain",
          claimRef: { namespace: "n", name: "c" },
          storageClassName: "gp2",
        },
        status: { phase: "Bound" },
      },
      {
        Capacity: "1Gi",
        "Access Modes": "RWO,ROX",
        Status: "Bound",
        Claim: "n/c",
        StorageClass: "gp2",
        Age: "2m",
      },
    ],
    [
      "persistentvolumeclaims",
      { spec: { volumeName: "pv" }, status: { phase: "Bound", capacity: { storage: "2Gi" } } },
      { Status: "Bound", Volume: "pv", Capacity: "2Gi" },
    ],
    [
      "pods",
      {
        spec: { containers: [{ name: "a" }, { name: "b" }], nodeName: "node-1" },
        status: {
          phase: "Running",
          containerStatuses: [
            { ready: true, restartCount: 2, state: { running: {} } },
            { ready: false, restartCount: 1, state: { waiting: { reason: "CrashLoopBackOff" } } },
          ],
        },
      },
      { Ready: "1/2", Status: "CrashLoopBackOff", Restarts: "3", Node: "node-1" },
    ],
    ["pods", { status: { phase: "Failed", reason: "Evicted" } }, { Ready: "0/0", Status: "Evicted" }],
    [
      "nodes",
      {
        metadata: { ...metadata("n"), labels: { "node-role.kubernetes.io/master": "" } },
        spec: { unschedulable: true },
        status: { conditions: [{ type: "Ready", status: "True" }], nodeInfo: { kubeletVersion: "v1.20.2" } },
      },
      { Status: "Ready,SchedulingDisabled", Roles: "master", Version: "v1.20.2" },
    ],
    [
      "volumeattachments.storage.k8s.io",
      {
        spec: { attacher: "d", nodeName: "n", source: { persistentVolumeName: "pv" } },
        status: { attached: true },
      },
      { Attacher: "d", PV: "pv", Node: "n", Attached: true },
    ],
    ["secrets", { type: "Opaque", data: { a: "c2VjcmV0" } }, { Type: "Opaque", Data: 1 }],
    ["statefulsets.apps", { spec: { replicas: 3 }, status: { readyReplicas: 2 } }, { Ready: "2/3" }],
  ])("of %s show what there is to see", (resource, object, expected) => {
    expect(cells(resource, { metadata: metadata("x"), ...object })).toMatchObject(expected);
  });

  it("say so when an object is being deleted", () => {
    const leaving = { metadata: { ...metadata("x"), deletionTimestamp: created } };
    for (const resource of ["persistentvolumes", "persistentvolumeclaims", "pods"]) {
      expect(cells(resource, leaving).Status).toBe("Terminating");
    }
  });

  it("of every kind can be made of an object that has nothing but a name", () => {
    for (const kind of builtInKinds(emulatedVersion())) {
      const columns = columnsOf(kind, kind.versions[0], emulated);
      const rendered = cells(resourceKey(kind), { metadata: { name: "bare" } });
      expect(Object.keys(rendered)).toEqual(columns.map((column) => column.name));
      expect(Object.values(rendered)).toContain("bare");
    }
  });

  it("never show the content of a secret", () => {
    const secret = own({ metadata: metadata("x"), data: { password: "aHVudGVyMg==" } });
    expect(textOf(renderObject(secret as never, context("secrets", table)))).not.toContain("aHVudGVyMg==");
  });

  it.each([
    ["None", null],
    ["Metadata", { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: metadata("x") }],
    ["Object", { apiVersion: "v1", kind: "Secret", metadata: metadata("x") }],
  ])("carry with includeObject=%s what was asked for", (includeObject, object) => {
    const secret = own({ apiVersion: "v1", kind: "Secret", metadata: metadata("x") });
    const rendered = renderObject(secret as never, context("secrets", table, includeObject));
    expect(JSON.parse(textOf(rendered)).rows[0].object).toEqual(object);
  });
});

describe("the form of an answer", () => {
  it.each([
    [undefined, { encoding: "json", version: "v1" }],
    ["*/*", { encoding: "json", version: "v1" }],
    ["application/yaml", { encoding: "yaml", version: "v1" }],
    ["application/vnd.kubernetes.protobuf,application/json", { encoding: "protobuf", version: "v1" }],
    [
      "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json",
      { encoding: "json", version: "v1" },
    ],
    ["application/json;q=0,application/yaml", { encoding: "yaml", version: "v1" }],
    ["application/yaml;q=0.5, application/json;q=0.9", { encoding: "json", version: "v1" }],
    [
      "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
      { encoding: "json", as: "Table", version: "v1beta1" },
    ],
    ["application/json;as=Chair;v=v1;g=meta.k8s.io,application/json", { encoding: "json", version: "v1" }],
    [
      "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
      { encoding: "json", as: "PartialObjectMetadataList", version: "v1" },
    ],
  ])("that %s asks for", (accept, form) => {
    expect(negotiate(accept)).toEqual(form);
  });

  it.each([
    "text/html",
    "application/json;q=0",
    "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
    ";;;",
    "application/json;as=Table;v=v9;g=meta.k8s.io",
  ])("cannot be %s", (accept) => {
    expect(() => negotiate(accept)).toThrow(expect.objectContaining({ code: 406 }));
  });

  it("is JSON for a kind without a form in protobuf, and never YAML for a stream", () => {
    const accept = "application/vnd.kubernetes.protobuf,application/yaml,application/json";
    expect(negotiate(accept, { protobuf: false }).encoding).toBe("yaml");
    expect(negotiate(accept, { protobuf: false, stream: true }).encoding).toBe("json");
  });

  it("lists objects without repeating their kind", () => {
    const items = [own({ apiVersion: "v1", kind: "Secret", metadata: metadata("x") })] as never;
    const text = renderList(
      { type: "list", items, resourceVersion: "9", continue: "c", remaining: 2 },
      context("secrets", "application/json"),
    );
    expect(JSON.parse(textOf(text))).toEqual({
      kind: "SecretList",
      apiVersion: "v1",
      metadata: { resourceVersion: "9", continue: "c", remainingItemCount: 2 },
      items: [{ metadata: metadata("x") }],
    });
  });

  it("is YAML with its members in order, and texts that look like numbers in quotes", () => {
    expect(toYaml('{"b":"1","a":{"d":null,"c":[1,"x: y"]}}')).toBe(
      'a:\n  c:\n    - 1\n    - "x: y"\n  d: null\nb: "1"\n',
    );
  });
});

describe("an age", () => {
  it.each([
    [-5 * seconds, "<invalid>"],
    [-500, "0s"],
    [0, "0s"],
    [119 * seconds, "119s"],
    [2 * minutes, "2m"],
    [9 * minutes + 59 * seconds, "9m59s"],
    [10 * minutes + 5 * seconds, "10m"],
    [3 * hours - seconds, "179m"],
    [3 * hours, "3h"],
    [7 * hours + 30 * minutes, "7h30m"],
    [8 * hours + 30 * minutes, "8h"],
    [47 * hours, "47h"],
    [2 * days, "2d"],
    [7 * days + 3 * hours, "7d3h"],
    [8 * days + 3 * hours, "8d"],
    [729 * days, "729d"],
    [730 * days, "2y"],
    [3 * 365 * days + 30 * days, "3y30d"],
    [9 * 365 * days, "9y"],
  ])("of %i ms is shown as %s", (ms, text) => {
    expect(humanDuration(ms)).toBe(text);
  });
});

describe("a list of many objects", () => {
  const items = (count: number) =>
    Array.from({ length: count }, (_, i) =>
      own({
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: metadata(`c${i}`),
        data: { text: `a\n\n  b: "${i}"\n`, empty: "", no: "- x" },
      }),
    );
  const answer = (count: number) => ({
    type: "list" as const,
    items: items(count) as never,
    resourceVersion: "9",
    continue: "x",
    remaining: 3,
  });

  it.each([0, 1, 3])("of %d is the same YAML as when it is written at once", (count) => {
    const json = textOf(renderList(answer(count), context("configmaps", "application/json")));
    const yaml = textOf(renderList(answer(count), context("configmaps", "application/yaml")));
    expect(yaml).toBe(toYaml(json));
  });

  it.each(["application/yaml", table])("is made as it is taken, as %s", (accept) => {
    const taken: number[] = [];
    const watched = new Proxy(items(50) as unknown[], {
      get: (list, key) => {
        if (typeof key === "string" && /^\d+$/.test(key)) taken.push(Number(key));
        return Reflect.get(list, key);
      },
    });
    const { parts } = renderList({ ...answer(0), items: watched as never }, context("configmaps", accept));
    let pieces = 0;
    for (const _ of parts) if (++pieces === 5) break;
    expect(taken.length).toBeLessThan(6);
  });
});
