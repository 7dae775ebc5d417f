/** Lists of any form and in any chunks, kinds of any version, and custom resources with templates of pods. */
import { describe, expect, it } from "vitest";
import { assess } from "./assess.ts";
import { collectManifests } from "./collect-manifests.ts";
import { parseTemplatePath, TemplatePathError } from "./template-paths.ts";

const now = new Date("2026-01-01T12:00:00Z");
async function* chunksOf(text: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
const collect = (text: string, templates: readonly string[] = [], chunk = 700) =>
  collectManifests([{ name: "dump", bytes: chunksOf(text, chunk) }], {
    now,
    templates: templates.map(parseTemplatePath),
  });

const disk = { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-0123456789abcdef0" } };
const claimTemplate = (name: string) => ({ metadata: { name }, spec: {} });
/** A set whose templates of claims look like items of the list, when they stand on one line. */
const statefulSet = (name: string) => ({
  metadata: { name, namespace: "default" },
  spec: {
    template: { spec: { volumes: [{ name: "v", ...disk }], containers: [{ name: 'a "}],[' }] } },
    volumeClaimTemplates: [claimTemplate("a"), claimTemplate("b"), claimTemplate("c")],
  },
});
const sets = ["x", "y", "z"].map(statefulSet);

describe("the items of a list", () => {
  const list = {
    kind: "StatefulSetList",
    apiVersion: "apps/v1",
    metadata: { resourceVersion: "1" },
    items: sets,
  };
  const texts: readonly (readonly [form: string, text: string])[] = [
    ["on one line", JSON.stringify(list)],
    ["indented", JSON.stringify(list, undefined, 4)],
    ["with tabs", JSON.stringify(list, undefined, "\t")],
    [
      "with the items first",
      JSON.stringify({ items: list.items, kind: list.kind, apiVersion: list.apiVersion }),
    ],
    ["indented unevenly", JSON.stringify(list, undefined, 1).replaceAll("\n     ", "\n")],
    [
      "that begin differently",
      JSON.stringify({ ...list, items: [{ spec: {}, metadata: { name: "w" } }, ...sets] }),
    ],
  ];

  it.each(texts)("are found %s, in chunks of any size", async (form, text) => {
    const names = form === "that begin differently" ? ["w", "x", "y", "z"] : ["x", "y", "z"];
    for (const chunk of [1, 7, 64, 1000, text.length]) {
      const inventory = await collect(form === "with the items first" ? text : `${text}\n`, [], chunk);
      // A kind behind the items comes too late for them.
      const found = form === "with the items first" ? [] : names;
      expect(inventory.workloads.map(({ metadata }) => metadata.name)).toEqual(found);
      expect(inventory.gaps.filter(({ code }) => code === "LS1004")).toEqual([]);
    }
  });

  it("are found up to where a dump was cut off", async () => {
    for (const indent of [undefined, 4]) {
      const text = JSON.stringify(list, undefined, indent);
      const inventory = await collect(text.slice(0, text.indexOf('"name":', text.length * 0.8)), []);
      expect(inventory.workloads.length).toBeGreaterThan(0);
      expect(inventory.gaps.map(({ code }) => code)).toContain("LS1004");
    }
  });
});

describe("kinds", () => {
  it("of other versions are read, and unknown ones are passed by", async () => {
    const objects = [
      { apiVersion: "policy/v1beta1", kind: "PodDisruptionBudget", metadata: { name: "b", namespace: "d" } },
      { apiVersion: "storage.k8s.io/v1beta1", kind: "CSIDriver", metadata: { name: "d" } },
      { apiVersion: "batch/v1beta1", kind: "CronJob", metadata: { name: "j", namespace: "d" } },
      { apiVersion: "example.com/v1", kind: "Unknown", metadata: { name: "u" } },
      { apiVersion: "example.com/v1", kind: "Node", metadata: { name: "no-node" } },
    ];
    const inventory = await collect(objects.map((each) => JSON.stringify(each)).join("\n"));
    const { budgets, csiDrivers, workloads, nodes } = inventory;
    expect([budgets.length, csiDrivers.length, workloads.length, nodes.length]).toEqual([1, 1, 1, 0]);
  });
});

describe("templates of pods in custom resources", () => {
  const job = (volumes: readonly object[]) => ({
    apiVersion: "batch.volcano.sh/v1alpha1",
    kind: "Job",
    metadata: { name: "train", namespace: "ml" },
    spec: { tasks: [{ template: { spec: { volumes: [] } } }, { template: { spec: { volumes } } }] },
  });
  const rollout = {
    apiVersion: "argoproj.io/v1alpha1",
    kind: "Rollout",
    metadata: { name: "web", namespace: "shop" },
    spec: { template: { spec: { volumes: [{ name: "v", ...disk }] } } },
  };
  const paths = [
    "batch.volcano.sh/v1alpha1/jobs:.spec.tasks[*].template",
    "argoproj.io/v1alpha1/rollouts:.spec.template",
  ];

  it("are judged where they stand", async () => {
    const dump = [job([{ name: "v", ...disk }]), rollout].map((each) => JSON.stringify(each)).join("\n");
    const fields = assess(await collect(dump, paths)).findings.filter(({ code }) => code === "LS1203");
    expect(fields.map(({ object, field }) => [object, field])).toEqual([
      ["Job ml/train", "spec.tasks[1].template.spec.volumes[0]"],
      ["Rollout shop/web", "spec.template.spec.volumes[0]"],
    ]);
    const without = assess(await collect(dump)).findings.map(({ code }) => code);
    expect(without).not.toContain("LS1203");
  });

  it("that lead nowhere are a finding", async () => {
    const inventory = await collect(JSON.stringify(rollout), ["argoproj.io/v1alpha1/rollouts:.spec.pod"]);
    expect(inventory.gaps).toContainEqual(
      expect.objectContaining({ code: "LS1004", object: "kind rollouts.argoproj.io" }),
    );
  });

  it.each(["rollouts:.spec", "argoproj.io/v1alpha1/rollouts", "a/v1/b:spec", "a/v1/b:.x[0]"])(
    "are refused as %s, with the form",
    (text) => expect(() => parseTemplatePath(text)).toThrow(TemplatePathError),
  );
});
