/** Patches that are small as text and much work where each step looks at the whole object. */
import { changing, corePath, type HeavyRequest, many, members } from "./heavy-request.ts";

const json = "application/json-patch+json";
const merge = "application/merge-patch+json";
const strategic = "application/strategic-merge-patch+json";
const apply = "application/apply-patch+yaml";

/** Most operations of a JSON patch. */
const operationsMax = 10_000;

const configMaps = corePath("configmaps");
const configMap = (name: string, keys: number) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name },
  data: members(keys, (i) => [`k${i}`, "v"]),
});
const finalizers = (from: number, count: number) => many(count, (i) => `a.b/${from + i}`);
const finalized = (name: string, count: number) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, finalizers: finalizers(0, count) },
});
const pod = (name: string, container: object) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name },
  spec: { containers: [{ name: "main", image: "x", ...container }] },
});
const environment = (from: number, count: number) =>
  many(count, (i) => ({ name: `E${from + i}`, value: "v" }));

/** Heavy requests with patches. */
export const heavyPatches: readonly HeavyRequest[] = [
  changing({
    name: "JSON patch: 10,000 additions to 40,000 members",
    path: configMaps,
    of: configMap("json-add", 40_000),
    contentType: json,
    body: () => many(operationsMax, (i) => ({ op: "add", path: `/data/n${i}`, value: "v" })),
  }),
  changing({
    name: "JSON patch: 10,000 removals from 40,000 members",
    path: configMaps,
    of: configMap("json-remove", 40_000),
    contentType: json,
    body: () => many(operationsMax, (i) => ({ op: "remove", path: `/data/k${i}` })),
  }),
  changing({
    name: "JSON patch: 10,000 tests of 40,000 members",
    path: configMaps,
    of: configMap("json-test", 40_000),
    contentType: json,
    body: () => many(operationsMax - 1, () => ({ op: "test", path: "/data/none", value: null })),
  }),
  changing({
    name: "JSON patch: 10,000 items put in front of a list of 30,000",
    path: configMaps,
    of: finalized("json-list", 30_000),
    contentType: json,
    body: () =>
      many(operationsMax, (i) => ({ op: "add", path: "/metadata/finalizers/0", value: `c.d/${i}` })),
  }),
  changing({
    name: "JSON patch: 1,000 members copied 10,000 times",
    path: configMaps,
    of: configMap("json-copy", 1_000),
    contentType: json,
    body: () => many(operationsMax, (i) => ({ op: "copy", from: "/data", path: `/metadata/x${i}` })),
  }),
  changing({
    name: "JSON patch: the object doubled 40 times",
    path: configMaps,
    of: configMap("json-double", 10),
    contentType: json,
    body: () => many(40, (i) => ({ op: "copy", from: "/data", path: `/data/x${i}` })),
  }),
  changing({
    name: "merge patch: 40,000 new members beside 40,000",
    path: configMaps,
    of: configMap("merge-add", 40_000),
    contentType: merge,
    body: () => ({ data: members(40_000, (i) => [`n${i}`, "v"]) }),
  }),
  changing({
    name: "merge patch: 40,000 members removed",
    path: configMaps,
    of: configMap("merge-remove", 40_000),
    contentType: merge,
    body: () => ({ data: members(40_000, (i) => [`k${i}`, null]) }),
  }),
  changing({
    name: "strategic patch: 40,000 finalizers",
    path: configMaps,
    of: finalized("strategic-finalizers", 1),
    contentType: strategic,
    body: () => ({ metadata: { finalizers: finalizers(1, 40_000) } }),
  }),
  changing({
    name: "strategic patch: 25,000 finalizers beside 25,000, in an order",
    path: configMaps,
    of: finalized("strategic-order", 25_000),
    contentType: strategic,
    body: () => ({
      metadata: {
        finalizers: finalizers(25_000, 25_000),
        "$setElementOrder/finalizers": finalizers(0, 50_000),
      },
    }),
  }),
  changing({
    name: "strategic patch: 100,000 values deleted from 30,000 finalizers",
    path: configMaps,
    of: finalized("strategic-delete", 30_000),
    contentType: strategic,
    body: () => ({ metadata: { "$deleteFromPrimitiveList/finalizers": finalizers(30_000, 100_000) } }),
  }),
  changing({
    name: "strategic patch: 40,000 environment variables of a template",
    path: corePath("podtemplates"),
    of: {
      apiVersion: "v1",
      kind: "PodTemplate",
      metadata: { name: "strategic-env" },
      template: { metadata: { labels: { a: "b" } }, spec: pod("x", { env: environment(0, 10_000) }).spec },
    } as { readonly metadata: { readonly name: string } },
    contentType: strategic,
    body: () => ({
      template: { spec: { containers: [{ name: "main", env: environment(10_000, 30_000) }] } },
    }),
  }),
  changing({
    name: "strategic patch: one container 10,000 times, with many limits",
    path: corePath("podtemplates"),
    of: {
      apiVersion: "v1",
      kind: "PodTemplate",
      metadata: { name: "strategic-again" },
      template: {
        metadata: { labels: { a: "b" } },
        spec: pod("x", { resources: { limits: members(5_000, (i) => [`x.y/r${i}`, "1"]) } }).spec,
      },
    } as { readonly metadata: { readonly name: string } },
    contentType: strategic,
    body: () => ({
      template: {
        spec: {
          containers: many(10_000, (i) => ({ name: "main", resources: { limits: { [`x.y/n${i}`]: "1" } } })),
        },
      },
    }),
  }),
  changing({
    name: "strategic patch: $retainKeys of 100,000",
    path: configMaps,
    of: configMap("strategic-retain", 20_000),
    contentType: strategic,
    body: () => ({
      data: { ...members(40_000, (i) => [`k${i}`, "w"]), $retainKeys: many(100_000, (i) => `k${i}`) },
    }),
  }),
  changing({
    name: "apply: 30,000 finalizers over 10,000 of another manager",
    path: configMaps,
    of: finalized("apply-finalizers", 10_000),
    contentType: apply,
    body: () => finalized("apply-finalizers", 30_000),
    query: "?fieldManager=heavy&force=true",
  }),
  changing({
    name: "apply: 20,000 finalizers in reverse",
    path: configMaps,
    of: finalized("apply-reverse", 20_000),
    contentType: apply,
    body: () => {
      const object = finalized("apply-reverse", 20_000);
      return {
        ...object,
        metadata: { ...object.metadata, finalizers: object.metadata.finalizers.toReversed() },
      };
    },
    query: "?fieldManager=heavy&force=true",
  }),
  changing({
    name: "apply: 30,000 conflicts",
    path: configMaps,
    of: configMap("apply-conflicts", 30_000),
    contentType: apply,
    body: () => ({ ...configMap("apply-conflicts", 0), data: members(30_000, (i) => [`k${i}`, "w"]) }),
    query: "?fieldManager=heavy",
  }),
];
