import type { KubeObject, Pod, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { type InlinePlanOptions, inlinePlanOf } from "./inline-plan.ts";
import type { InlineView } from "./inline-view.ts";

const ebs = (volumeID = "vol-1") => ({ name: "data", awsElasticBlockStore: { volumeID } });
const metadata = (name: string, more: object = {}) => ({ name, namespace: "shop", uid: name, ...more });

function workload(
  kind: string,
  name: string,
  volumes: readonly object[],
  spec: object = {},
  more: object = {},
) {
  const template = { spec: { containers: [{ name: "c", image: "i" }], volumes } };
  return {
    apiVersion: "apps/v1",
    kind,
    metadata: metadata(name, more),
    spec: kind === "CronJob" ? { jobTemplate: { spec: { template } } } : { replicas: 0, template, ...spec },
  } as unknown as Stored<KubeObject>;
}

function pod(name: string, volumes: readonly object[], more: object = {}) {
  return { metadata: metadata(name, more), spec: { volumes } } as unknown as Stored<Pod>;
}

const view = (changes: Partial<InlineView>): InlineView => ({
  volumes: [],
  claims: [],
  pods: [],
  csiNodes: [],
  csiDrivers: ["ebs.csi.aws.com", "pd.csi.storage.gke.io", "file.csi.azure.com"].map((name) => ({
    metadata: { name },
  })) as unknown as InlineView["csiDrivers"],
  workloads: [],
  ...changes,
});

const sizes = { others: "1Gi", byVolume: new Map<string, string>() };
function refusalsOf(changes: Partial<InlineView>, options: InlinePlanOptions = { sizes }) {
  const { templates, refused } = inlinePlanOf(view(changes), options);
  expect(templates).toEqual([]);
  return refused.map(
    ({ volume, refusals }) =>
      `${volume}: ${refusals.map(({ code, reason, remedy }) => `${code}: ${reason}; ${remedy}`).join(" | ")}`,
  );
}

describe("inlinePlanOf", () => {
  it("makes a claim of each in-tree volume, pre-bound on both sides and kept by policy Retain", () => {
    const other = { name: "tmp", emptyDir: {} };
    const { templates } = inlinePlanOf(view({ workloads: [workload("Deployment", "web", [other, ebs()])] }), {
      sizes,
    });
    expect(templates).toMatchObject([
      {
        workload: { kind: "Deployment", namespace: "shop", name: "web", uid: "web", replicas: 0 },
        volumes: [
          {
            name: "data",
            plugin: "kubernetes.io/aws-ebs",
            driver: "ebs.csi.aws.com",
            before: ebs(),
            after: { name: "data", persistentVolumeClaim: { claimName: "web-data" } },
            volume: {
              spec: {
                csi: { volumeHandle: "vol-1" },
                persistentVolumeReclaimPolicy: "Retain",
                claimRef: { namespace: "shop", name: "web-data" },
              },
            },
            claim: { metadata: { namespace: "shop", name: "web-data" }, spec: { storageClassName: "" } },
          },
        ],
      },
    ]);
  });

  it("lets pods share a claim that they only read, or whose volume many nodes may write", () => {
    const readOnly = { name: "data", gcePersistentDisk: { pdName: "disk", readOnly: true } };
    const share = { name: "data", azureFile: { shareName: "s", secretName: "x" } };
    const workloads = [
      workload("Deployment", "readers", [readOnly], { replicas: 3 }),
      workload("Deployment", "writers", [share], { replicas: 3 }),
    ];
    const { templates, refused } = inlinePlanOf(view({ workloads }), { sizes, scaleDown: true });
    expect(refused).toEqual([]);
    const modes = templates.map(({ volumes }) => volumes[0]?.claim.spec?.accessModes);
    expect(modes).toEqual([["ReadOnlyMany"], ["ReadWriteMany"]]);
    expect(templates[0]?.volumes[0]?.after).toEqual({
      name: "data",
      persistentVolumeClaim: { claimName: "readers-data", readOnly: true },
    });
  });

  it.each([
    ["DaemonSet", /^DaemonSet shop\/x: owner-needs-action: the pods of every node would share one claim/],
    ["Job", /^Job shop\/x: owner-needs-action: the template of a Job cannot be changed; let it end/],
    ["CronJob", /^CronJob shop\/x: owner-needs-action: its jobs may run at the same time.*; suspend it/],
    ["ReplicationController", /^ReplicationController shop\/x: .*; put a Deployment in its place/],
  ])("refuses a %s by name", (kind, words) => {
    expect(refusalsOf({ workloads: [workload(kind, "x", [ebs()])] })).toEqual([expect.stringMatching(words)]);
  });

  it("refuses a pod that no controller has made", () => {
    expect(refusalsOf({ pods: [pod("p", [ebs()])] })).toEqual([
      expect.stringMatching(/^Pod shop\/p: .*the volumes of a pod cannot be changed; translate its manifest/),
    ]);
  });

  it("names the operator that writes a template, and leaves what a Deployment has made to it", () => {
    const owned = (kind: string) => ({
      ownerReferences: [{ apiVersion: "x/v1", kind, name: "db", uid: "u", controller: true }],
    });
    const set = workload("StatefulSet", "db", [ebs()], {}, owned("Database"));
    expect(refusalsOf({ workloads: [set] })).toEqual([
      expect.stringMatching(/^StatefulSet shop\/db: .*Database db owns it and writes its template again/),
    ]);
    expect(
      refusalsOf({ workloads: [workload("ReplicaSet", "web-1", [ebs()], {}, owned("Deployment"))] }),
    ).toEqual([]);
  });

  it("refuses a disk of two templates, of a template and a PersistentVolume, and of two volumes", () => {
    const two = [workload("Deployment", "a", [ebs()]), workload("StatefulSet", "b", [ebs()])];
    expect(refusalsOf({ workloads: two })).toEqual([
      expect.stringMatching(/^Deployment shop\/a: disk-shared: StatefulSet shop\/b stands for the same disk/),
      expect.stringMatching(/^StatefulSet shop\/b: disk-shared: Deployment shop\/a stands for the same disk/),
    ]);
    const volumes = [
      {
        metadata: { name: "pv", uid: "u" },
        spec: { csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-1" } },
      },
    ] as unknown as InlineView["volumes"];
    expect(refusalsOf({ volumes, workloads: [workload("Deployment", "a", [ebs()])] })).toEqual([
      expect.stringMatching(/PersistentVolume pv stands for the same disk; have the template name the claim/),
    ]);
    const twice = workload("Deployment", "a", [ebs(), { ...ebs(), name: "again" }]);
    expect(refusalsOf({ workloads: [twice] })[0]).toMatch(/another volume of it stands for the same disk/);
  });

  it.each<readonly [string, object, RegExp]>([
    ["that is paused", { paused: true }, /it is paused: .*; resume it first/],
    [
      "whose pods below a partition keep the old template",
      { updateStrategy: { rollingUpdate: { partition: 2 } } },
      /it is 2: .*; set it to 0 first/,
    ],
    ["with replicas", { replicas: 1 }, /volume-in-use: it has 1 replicas; scale it to 0, .*`scaleDown`/],
  ])("refuses a workload %s", (_words, spec, expected) => {
    expect(refusalsOf({ workloads: [workload("StatefulSet", "x", [ebs()], spec)] })[0]).toMatch(expected);
  });

  it("refuses several pods that would share a claim of one node, and a size that is not given", () => {
    const options = { sizes, scaleDown: true };
    const many = workload("Deployment", "x", [ebs()], { replicas: 2 });
    expect(refusalsOf({ workloads: [many] }, options)[0]).toMatch(
      /2 replicas would share one claim of access mode ReadWriteOnce/,
    );
    expect(refusalsOf({ workloads: [workload("Deployment", "x", [ebs()])] }, {})[0]).toMatch(
      /does not say how large its disk is; give the size of the disk: `sizes`/,
    );
  });

  it("refuses a driver that is not there, and names that are taken", () => {
    const workloads = [workload("Deployment", "web", [ebs()])];
    expect(refusalsOf({ workloads, csiDrivers: [] })[0]).toMatch(/no node has the driver ebs.csi.aws.com/);
    const claims = [{ metadata: metadata("web-data") }] as unknown as InlineView["claims"];
    expect(refusalsOf({ workloads, claims })[0]).toMatch(/name-taken: it is there already/);
  });

  it("chooses by name, namespace, plugin and labels", () => {
    const workloads = [
      workload("Deployment", "a", [ebs("vol-a")], {}, { labels: { app: "a" } }),
      workload("Deployment", "b", [{ name: "data", gcePersistentDisk: { pdName: "b" } }]),
    ];
    const names = (options: InlinePlanOptions) =>
      inlinePlanOf(view({ workloads }), { sizes, ...options }).templates.map(({ workload: of }) => of.name);
    expect(names({})).toEqual(["a", "b"]);
    expect(names({ workloads: ["deployment/shop/b"] })).toEqual(["b"]);
    expect(names({ namespaces: ["other"] })).toEqual([]);
    expect(names({ plugins: ["kubernetes.io/aws-ebs"] })).toEqual(["a"]);
    expect(names({ selector: "app=a" })).toEqual(["a"]);
    expect(refusalsOf({ workloads: [] }, { sizes, workloads: ["Deployment/shop/none"] })).toEqual([
      expect.stringMatching(/^Deployment\/shop\/none: volume-not-found: it is not there/),
    ]);
  });
});
