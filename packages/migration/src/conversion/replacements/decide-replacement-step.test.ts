/** The decision of one class or StatefulSet that is replaced, as a table. */
import type {
  KubeObject,
  PersistentVolumeClaim,
  Pod,
  StatefulSet,
  StorageClass,
  Stored,
} from "@longshore/kube";
import { expect, test } from "vitest";
import { decideReplacementStep } from "./decide-replacement-step.ts";
import { replacedObject } from "./replaced-form.ts";
import type {
  PlannedReplacement,
  ReplacementJournal,
  ReplacementObservation,
  ReplacementStep,
} from "./replacement-types.ts";

type Live = Stored<KubeObject>;
const going = { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["orphan"] };
const settled = { observedGeneration: 1, currentRevision: "a", updateRevision: "a" };

const webSet = (
  className: string,
  metadata: object = {},
  spec: object = {},
  status: object = settled,
): Live =>
  ({
    metadata: { namespace: "shop", name: "web", uid: "u1", resourceVersion: "7", generation: 1, ...metadata },
    spec: {
      volumeClaimTemplates: [{ metadata: { name: "data" }, spec: { storageClassName: className } }],
      ...spec,
    },
    status,
  }) as unknown as Live;
const storageClass = (name: string, provisioner: string, metadata: object = {}): Live =>
  ({
    metadata: { name, uid: `u-${name}`, resourceVersion: "3", ...metadata },
    provisioner,
  }) as unknown as Live;
const isDefault = { annotations: { "storageclass.kubernetes.io/is-default-class": "true" } };
const inTree = "kubernetes.io/aws-ebs";
const csi = "ebs.csi.aws.com";

const planned = (
  before: Live,
  after: KubeObject,
  more: Partial<PlannedReplacement> = {},
): PlannedReplacement => ({
  key: "StatefulSet shop/web",
  kind: "StatefulSet",
  namespace: "shop",
  name: before.metadata.name,
  uid: before.metadata.uid,
  before,
  after,
  keepsOld: false,
  deletionBegun: false,
  differences: [],
  owners: [],
  ...more,
});
const ofSet = planned(webSet("gp2"), webSet("gp2-csi"));
const beside = planned(storageClass("gp2", inTree, isDefault), storageClass("gp2-csi", csi, isDefault), {
  key: "StorageClass gp2",
  kind: "StorageClass",
  keepsOld: true,
});
const back = planned(storageClass("gp2-csi", csi, isDefault), storageClass("gp2", inTree, isDefault), {
  key: "StorageClass gp2",
  kind: "StorageClass",
});

function decide(
  plan: PlannedReplacement,
  done: readonly ReplacementStep[],
  seen: Partial<ReplacementObservation>,
): string {
  const at = "2026-01-01T00:00:00Z";
  const journal: ReplacementJournal = {
    version: 1,
    clusterId: "c",
    direction: "convert",
    planned: plan,
    done: done.map((step) => ({ direction: "convert", step, at })),
    requests: 0,
  };
  const whole = { from: undefined, to: undefined, ownedClaims: [], orphans: [], ...seen };
  const decision = decideReplacementStep(journal, whole);
  if (decision.kind === "done") return "done";
  return decision.kind === "step"
    ? decision.step
    : `${decision.refusal.code} ${decision.refusal.field ?? ""}`.trim();
}

const saved = ["save object"] as const;
const deleted = ["save object", "delete old object"] as const;
const claim = { metadata: { name: "data-web-0" } } as Stored<PersistentVolumeClaim>;
const orphan = { metadata: { name: "web-0" } } as Stored<Pod>;
const rolling = { ...settled, updateRevision: "b" };

test.each<readonly [string, readonly ReplacementStep[], Partial<ReplacementObservation>, string]>([
  ["it is saved first", [], { from: webSet("gp2") }, "save object"],
  ["then deleted", saved, { from: webSet("gp2") }, "delete old object"],
  [
    "what has changed since is saved again",
    saved,
    { from: webSet("gp2", { resourceVersion: "8" }) },
    "save object",
  ],
  [
    "a claim that it owns is waited for",
    saved,
    { from: webSet("gp2"), ownedClaims: [claim] },
    "await free claims",
  ],
  [
    "a set that takes its claims along stays",
    saved,
    { from: webSet("gp2", {}, { persistentVolumeClaimRetentionPolicy: { whenDeleted: "Delete" } }) },
    "owner-needs-action spec.persistentVolumeClaimRetentionPolicy.whenDeleted",
  ],
  ["a rollout is waited for", saved, { from: webSet("gp2", {}, {}, rolling) }, "await rollout"],
  [
    "with OnDelete pods of an older revision are no rollout",
    saved,
    { from: webSet("gp2", {}, { updateStrategy: { type: "OnDelete" } }, rolling) },
    "delete old object",
  ],
  [
    "a set that its controller has not seen",
    saved,
    { from: webSet("gp2", { generation: 2 }) },
    "await rollout",
  ],
  ["its end is waited for", deleted, { from: webSet("gp2", going) }, "await old object gone"],
  [
    "a deletion of another is not the run's",
    saved,
    { from: webSet("gp2", going) },
    "changed-by-others metadata.deletionTimestamp",
  ],
  ["it is made again", deleted, {}, "create new object"],
  ["one that another took away is not made", saved, {}, "changed-by-others metadata.name"],
  [
    "another made it again in its old form",
    deleted,
    { from: webSet("gp2", { uid: "u2" }) },
    "changed-by-others metadata.uid",
  ],
  [
    "its pods are waited for",
    deleted,
    { from: webSet("gp2-csi", { uid: "u2" }), orphans: [orphan] },
    "await pods adopted",
  ],
  ["it controls its pods", deleted, { from: webSet("gp2-csi", { uid: "u2" }) }, "done"],
])("of a set: %s", (_name, done, seen, expected) => {
  expect(decide(ofSet, done, seen)).toBe(expected);
});

const [old, made] = [storageClass("gp2", inTree, isDefault), storageClass("gp2-csi", csi, isDefault)];
test.each<
  readonly [string, PlannedReplacement, readonly ReplacementStep[], Partial<ReplacementObservation>, string]
>([
  ["it is made", beside, [], { from: old }, "create new object"],
  ["the old one ceases to be the default", beside, [], { from: old, to: made }, "hand default over"],
  ["the old one stays", beside, [], { from: storageClass("gp2", inTree), to: made }, "done"],
  ["its name is taken", beside, [], { from: old, to: storageClass("gp2-csi", "x") }, "name-taken"],
  [
    "on the way back the old one becomes the default first",
    back,
    [],
    { from: made, to: storageClass("gp2", inTree) },
    "hand default over",
  ],
  ["then the new one is saved", back, ["hand default over"], { from: made, to: old }, "save object"],
  ["and deleted", back, saved, { from: made, to: old }, "delete old object"],
  ["until it is gone", back, deleted, { to: old }, "done"],
  [
    "another under its name stays",
    back,
    saved,
    { from: storageClass("gp2-csi", csi, { uid: "x" }), to: old },
    "changed-by-others metadata.uid",
  ],
])("of a class beside another: %s", (_name, plan, done, seen, expected) => {
  expect(decide(plan, done, seen)).toBe(expected);
});

test("what was changed since the plan stays, and what the server and the collector wrote does not", () => {
  const now = webSet("gp2", { labels: { a: "b" }, finalizers: ["orphan", "example.com/f"] }, { replicas: 5 });
  const object = replacedObject("StatefulSet", now, webSet("gp2-csi")) as StatefulSet;
  expect(object.metadata).toEqual({
    namespace: "shop",
    name: "web",
    labels: { a: "b" },
    finalizers: ["example.com/f"],
  });
  expect(object.spec?.replicas).toBe(5);
  expect(object.spec?.volumeClaimTemplates?.[0]?.spec?.storageClassName).toBe("gp2-csi");
  expect(object).not.toHaveProperty("status");
  const grown = { ...storageClass("gp2", inTree), allowVolumeExpansion: true } as KubeObject;
  expect(replacedObject("StorageClass", grown, storageClass("gp2", csi)) as StorageClass).toEqual({
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name: "gp2" },
    provisioner: csi,
    allowVolumeExpansion: true,
  });
});
