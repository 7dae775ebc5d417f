/** Which classes and StatefulSets are replaced, and why others are not. */
import type { Stored } from "@longshore/kube";
import { describe, expect, test } from "vitest";
import type { ConversionPlanOptions } from "../conversion-options.ts";
import type { ConversionView } from "../conversion-view.ts";
import { planReplacements } from "./plan-replacements.ts";
import type { ReplacementJournal } from "./replacement-types.ts";
import { undoOfReplacement } from "./undo-replacements.ts";

const inTree = "kubernetes.io/aws-ebs";
const settled = { observedGeneration: 1, currentRevision: "a", updateRevision: "a" };

const storageClass = (name: string, provisioner = inTree, more: object = {}) => ({
  metadata: { name, uid: `u-${name}`, resourceVersion: "1" },
  provisioner,
  parameters: { type: "gp2" },
  ...more,
});
const set = (
  name: string,
  className: string,
  more: { spec?: object; metadata?: object; status?: object } = {},
) => ({
  metadata: {
    namespace: "shop",
    name,
    uid: `u-${name}`,
    resourceVersion: "1",
    generation: 1,
    ...more.metadata,
  },
  spec: {
    volumeClaimTemplates: [{ metadata: { name: "data" }, spec: { storageClassName: className } }],
    ...more.spec,
  },
  status: more.status ?? settled,
});

const view = (more: object): ConversionView =>
  ({
    ...{ volumes: [], claims: [], pods: [], nodes: [], attachments: [], statefulSets: [], deployments: [] },
    ...{ replicaSets: [], csiNodes: [], snapshots: [], classes: [] },
    csiDrivers: [{ metadata: { name: "ebs.csi.aws.com" } }],
    ...more,
  }) as unknown as ConversionView;

function planned(more: object, options: ConversionPlanOptions) {
  const { replacements, refused } = planReplacements(view(more), options, []);
  return {
    replaced: replacements.map(({ key, after }) => `${key} ${after.metadata?.name}`),
    refused: refused.map(({ volume, refusals }) => [volume, ...refusals.map(({ code }) => code)]),
  };
}

const all = { classes: true, templates: true };
const beside = { ...all, classSuffix: "-csi" };

describe("classes", () => {
  test("that are in-tree ones are replaced where they are asked for, by plugin", () => {
    const classes = [
      storageClass("gp2"),
      storageClass("nfs", "nfs.example"),
      storageClass("done", "ebs.csi.aws.com"),
    ];
    expect(planned({ classes }, all)).toEqual({ replaced: ["StorageClass gp2 gp2"], refused: [] });
    expect(planned({ classes }, beside).replaced).toEqual(["StorageClass gp2 gp2-csi"]);
    expect(planned({ classes }, {}).replaced).toEqual([]);
    expect(planned({ classes }, { ...all, plugins: ["kubernetes.io/cinder"] }).replaced).toEqual([]);
  });

  test("are refused without their driver, with an owner, or where the name is taken", () => {
    const owned = storageClass("gp2", inTree, {
      metadata: {
        name: "gp2",
        uid: "u",
        ownerReferences: [{ apiVersion: "a/v1", kind: "Cloud", name: "c", uid: "x" }],
      },
    });
    const refused = (code: string) => ({ replaced: [], refused: [["StorageClass gp2", code]] });
    expect(planned({ classes: [storageClass("gp2")], csiDrivers: [] }, all)).toEqual(
      refused("driver-missing"),
    );
    expect(planned({ classes: [owned] }, all)).toEqual(refused("owner-needs-action"));
    expect(planned({ classes: [owned] }, { ...all, ownersPaused: true }).refused).toEqual([]);
    const taken = [storageClass("gp2"), storageClass("gp2-csi", "other.example")];
    expect(planned({ classes: taken }, beside)).toEqual(refused("name-taken"));
  });
});

describe("StatefulSets", () => {
  const classes = [storageClass("gp2")];
  const planOf = (one: object, options: ConversionPlanOptions = beside) =>
    planned({ classes, statefulSets: [one] }, options);

  test("are replaced where a template names what gets another name", () => {
    expect(planOf(set("web", "gp2")).replaced).toEqual([
      "StorageClass gp2 gp2-csi",
      "StatefulSet shop/web web",
    ]);
    expect(planOf(set("web", "gp2"), all).replaced).toEqual(["StorageClass gp2 gp2"]);
    expect(planOf(set("web", "nfs")).replaced).toEqual(["StorageClass gp2 gp2-csi"]);
    expect(planOf(set("web", "gp2"), { ...beside, namespaces: ["other"] }).replaced).toHaveLength(1);
    expect(planOf(set("web", "gp2"), { ...beside, selector: "a=b" }).replaced).toHaveLength(1);
  });

  test("whose template names a volume that has been converted get its new name", () => {
    const volumes = [
      { metadata: { name: "pv-1-csi", annotations: { "longshore.dev/converted-from": "pv-1" } } },
    ];
    const named = set("web", "x", {
      spec: { volumeClaimTemplates: [{ metadata: { name: "data" }, spec: { volumeName: "pv-1" } }] },
    });
    const { replacements } = planReplacements(view({ volumes, statefulSets: [named] }), all, []);
    expect(replacements[0]?.after).toMatchObject({
      spec: { volumeClaimTemplates: [{ spec: { volumeName: "pv-1-csi" } }] },
    });
  });

  test("are refused while they own claims, roll out, or are being deleted", () => {
    const deleting = { persistentVolumeClaimRetentionPolicy: { whenDeleted: "Delete" } };
    const cases = [
      set("web", "gp2", { spec: deleting }),
      set("web", "gp2", { status: { ...settled, updateRevision: "b" } }),
    ];
    for (const one of cases)
      expect(planOf(one).refused).toEqual([["StatefulSet shop/web", "owner-needs-action"]]);
    // The run waits until the controller has seen it.
    expect(planOf(set("web", "gp2", { status: {} })).refused).toEqual([]);
    const going = set("web", "gp2", { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } });
    expect(planOf(going).refused).toEqual([["StatefulSet shop/web", "changed-by-others"]]);
    // One whose templates stay is left alone.
    expect(planOf(set("web", "nfs", { spec: deleting })).refused).toEqual([]);
  });

  test("name the change to commit for the tool that made them", () => {
    const labels = { "app.kubernetes.io/managed-by": "Helm" };
    const one = set("web", "gp2", { metadata: { labels } });
    const { replacements } = planReplacements(view({ classes, statefulSets: [one] }), beside, []);
    const owner = replacements.at(-1)?.owners[0];
    expect(owner?.kind).toBe("Helm");
    expect(owner?.change).toContain("storageClassName: gp2-csi");
  });
});

describe("the way back", () => {
  const [plan] = planReplacements(view({ classes: [storageClass("gp2")] }), beside, []).replacements;
  if (plan === undefined) throw new Error("no plan");
  const journal: ReplacementJournal = {
    ...({ version: 1, clusterId: "c", direction: "convert", requests: 0, done: [] } as const),
    planned: plan,
    finishedAt: "2026-01-01T00:00:00Z",
  };
  const now = { ...plan.after, metadata: { name: "gp2-csi", uid: "n", resourceVersion: "2" } } as Stored;

  test("is refused while templates that stay name the class", () => {
    expect(undoOfReplacement(journal, now, ["StatefulSet shop/web"])).toMatchObject({
      refusals: [{ code: "owner-needs-action", reason: "templates of StatefulSet shop/web name gp2-csi" }],
    });
    expect(undoOfReplacement(journal, now)).toMatchObject({ name: "gp2-csi", uid: "n", keepsOld: false });
  });

  test("is refused where an object made in its place has gone since", () => {
    const inPlace = { ...journal, planned: { ...plan, after: { ...plan.after, metadata: { name: "gp2" } } } };
    expect(undoOfReplacement(inPlace, undefined)).toMatchObject({
      refusals: [{ code: "changed-by-others" }],
    });
    const { finishedAt: _, ...open } = inPlace;
    const begun = { step: "delete old object", at: "2026-01-01T00:00:00Z" } as const;
    expect(undoOfReplacement({ ...open, begun }, undefined)).toMatchObject({ uid: "", deletionBegun: true });
  });
});
