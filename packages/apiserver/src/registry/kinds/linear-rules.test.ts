/** The rules of kinds look at each item of a list a few times, however many there are: four times as many, four times the looks. */
import type { KubeObject, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { resourceKey } from "../../api/kind.ts";
import { emulatedVersion } from "../../versions/emulated-version.ts";
import { metadataProblems, metadataUpdateProblems } from "../metadata.ts";
import { builtInKinds } from "./index.ts";

/** The value, with all that is read of it counted. */
function counted<T>(value: T, counter: { looks: number }): T {
  if (typeof value !== "object" || value === null) return value;
  return new Proxy(value, {
    get(target, key) {
      counter.looks++;
      const member = Reflect.get(target, key);
      return typeof member === "function" ? member : counted(member, counter);
    },
    ownKeys(target) {
      const keys = Reflect.ownKeys(target);
      counter.looks += keys.length;
      return keys;
    },
    getOwnPropertyDescriptor(target, key) {
      return Reflect.getOwnPropertyDescriptor(target, key);
    },
  });
}

const kinds = builtInKinds(emulatedVersion());
const many = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));
const members = <T>(count: number, make: (index: number) => readonly [string, T]) =>
  Object.fromEntries(many(count, make));
const pod = (container: object, rest: object = {}) => ({
  spec: { containers: [{ name: "main", image: "x", ...container }], ...rest },
});

const lists: readonly (readonly [string, string, (count: number) => object])[] = [
  [
    "ports of a container",
    "pods",
    (n) => pod({ ports: many(n, (i) => ({ name: `p${i}`, containerPort: i + 1 })) }),
  ],
  ["environment", "pods", (n) => pod({ env: many(n, (i) => ({ name: `E${i}`, value: "v" })) })],
  [
    "mounts beside devices",
    "pods",
    (n) =>
      pod(
        {
          volumeMounts: many(n, (i) => ({ name: `v${i}`, mountPath: `/m/${i}` })),
          volumeDevices: many(n, (i) => ({ name: `w${i}`, devicePath: `/d/${i}` })),
        },
        { volumes: many(n, (i) => ({ name: `v${i}`, emptyDir: {} })) },
      ),
  ],
  ["containers", "pods", (n) => ({ spec: { containers: many(n, (i) => ({ name: `c${i}`, image: "x" })) } })],
  [
    "tolerations",
    "pods",
    (n) => pod({}, { tolerations: many(n, (i) => ({ key: `k${i}`, operator: "Exists" })) }),
  ],
  [
    "spread",
    "pods",
    (n) =>
      pod(
        {},
        {
          topologySpreadConstraints: many(n, (i) => ({
            maxSkew: 1,
            topologyKey: `k${i}`,
            whenUnsatisfiable: "DoNotSchedule",
          })),
        },
      ),
  ],
  [
    "addresses",
    "endpoints",
    (n) => ({ subsets: [{ addresses: many(n, (i) => ({ ip: `10.0.0.${i % 250}` })) }] }),
  ],
  [
    "taints",
    "nodes",
    (n) => ({ spec: { taints: many(n, (i) => ({ key: `k${i}`, effect: "NoSchedule" })) } }),
  ],
  [
    "drivers",
    "csinodes.storage.k8s.io",
    (n) => ({ spec: { drivers: many(n, (i) => ({ name: `d${i}`, nodeID: "n", topologyKeys: ["a"] })) } }),
  ],
  [
    "keys of a driver, all wrong",
    "csinodes.storage.k8s.io",
    (n) => ({ spec: { drivers: [{ name: "d", nodeID: "n", topologyKeys: many(n, (i) => `%${i}`) }] } }),
  ],
  [
    "topologies",
    "storageclasses.storage.k8s.io",
    (n) => ({
      provisioner: "x.y",
      allowedTopologies: many(n, (i) => ({ matchLabelExpressions: [{ key: "a", values: [`v${i}`] }] })),
    }),
  ],
  [
    "values of a topology",
    "storageclasses.storage.k8s.io",
    (n) => ({
      provisioner: "x.y",
      allowedTopologies: [{ matchLabelExpressions: [{ key: "a", values: many(n, (i) => `v${i}`) }] }],
    }),
  ],
  ["scopes of a quota, all wrong", "resourcequotas", (n) => ({ spec: { scopes: many(n, (i) => `s${i}`) } })],
  ["keys", "configmaps", (n) => ({ data: members(n, (i) => [`k${i}`, "v"]) })],
];

const linear = (looksOf: (count: number) => number) => {
  const few = looksOf(50);
  expect(few).toBeGreaterThan(50);
  expect(looksOf(200)).toBeLessThan(4.2 * few);
};

describe("the rules of a kind", () => {
  it.each(lists)("are linear in its %s", (_name, resource, make) => {
    const kind = kinds.find((candidate) => resourceKey(candidate) === resource);
    linear((count) => {
      const counter = { looks: 0 };
      const object = { apiVersion: "v1", kind: kind?.kind, metadata: { name: "x" }, ...make(count) };
      kind?.validate?.(counted(object as KubeObject, counter));
      return counter.looks;
    });
  });

  it.each([
    ["tolerations", "pods", (n: number) => pod({}, { tolerations: many(n, (i) => ({ key: `k${i}` })) })],
    [
      "drivers",
      "csinodes.storage.k8s.io",
      (n: number) => ({ spec: { drivers: many(n, (i) => ({ name: `d${i}`, nodeID: "n" })) } }),
    ],
  ] as const)("for changes are linear in its %s", (_name, resource, make) => {
    const kind = kinds.find((candidate) => resourceKey(candidate) === resource);
    linear((count) => {
      const counter = { looks: 0 };
      const object = { apiVersion: "v1", kind: kind?.kind, metadata: { name: "x" }, ...make(count) };
      const changed = structuredClone(object) as typeof object & { spec: object };
      const spec = { ...changed.spec, activeDeadlineSeconds: 5 };
      const next = counted({ ...changed, spec } as unknown as KubeObject, counter);
      kind?.validateUpdate?.(next, counted(object, counter) as unknown as Stored);
      return counter.looks;
    });
  });
});

describe("the rules of metadata", () => {
  const kind = kinds[0] as (typeof kinds)[number];
  const metadata = (n: number) => ({
    name: "x",
    labels: members(n, (i) => [`k${i}`, "v"]),
    finalizers: many(n, (i) => `a.b/${i}`),
    ownerReferences: many(n, (i) => ({ apiVersion: "v1", kind: "Pod", name: `p${i}`, uid: `u${i}` })),
  });

  it("are linear in its lists", () => {
    linear((count) => {
      const counter = { looks: 0 };
      metadataProblems(kind, counted(metadata(count), counter));
      return counter.looks;
    });
  });

  it("are linear for the finalizers of an object that is being deleted", () => {
    linear((count) => {
      const counter = { looks: 0 };
      const old = { metadata: { ...metadata(count), deletionTimestamp: "2026-01-01T00:00:00Z" } };
      metadataUpdateProblems(counted(metadata(count), counter), counted(old, counter) as unknown as Stored);
      return counter.looks;
    });
  });
});
