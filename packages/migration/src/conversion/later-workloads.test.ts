/** A volume that was planned while no pod used it: a pod of a workload has taken it since. */
import { describe, expect, it } from "vitest";
import type { VolumeJournal } from "./conversion-types.ts";
import type { ConversionView } from "./conversion-view.ts";
import { laterWorkloadsOf } from "./later-workloads.ts";

const namespace = "shop";
const set = { metadata: { name: "db", namespace, uid: "set" }, spec: { replicas: 2 } };
const other = { kind: "Deployment", namespace, name: "web", uid: "web", replicas: 1 };
const owner = { controller: true, kind: "StatefulSet", name: "db", uid: "set" };
const podOf = (ownerReferences: readonly object[]) => ({
  metadata: { name: "db-0", namespace, ownerReferences },
  spec: { volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }] },
});
const viewOf = (...pods: readonly object[]) =>
  ({
    volumes: [{ metadata: { name: "pv" }, spec: {} }],
    claims: [{ metadata: { name: "data", namespace } }],
    pods,
    nodes: [],
    attachments: [],
    statefulSets: [set],
    deployments: [],
    replicaSets: [],
    snapshots: [],
    snapshotContents: [],
  }) as unknown as ConversionView;
const journalOf = (workloads: readonly object[] = [], begun?: object) =>
  ({
    planned: { volume: "pv", claim: { namespace, name: "data" }, workloads },
    done: [],
    ...(begun === undefined ? {} : { begun }),
  }) as unknown as VolumeJournal;
const scaled = (view: ConversionView, journal: VolumeJournal, wait = false) =>
  laterWorkloadsOf(view, [journal], { scaleDown: true, wait }).flatMap(({ planned }) =>
    planned.workloads.map(({ name, replicas }) => [name, replicas]),
  );

describe("workloads that use a volume since its conversion was planned", () => {
  it("are scaled by the run that goes on with it, beside those that it knows", () => {
    expect(scaled(viewOf(podOf([owner])), journalOf())).toEqual([["db", 2]]);
    expect(scaled(viewOf(podOf([owner])), journalOf([other]))).toEqual([
      ["web", 1],
      ["db", 2],
    ]);
  });

  it.each([
    ["no pod uses it", viewOf(), journalOf()],
    ["its pod has no owner: it ends by itself", viewOf(podOf([])), journalOf()],
    [
      "its pods are being scaled down: the replicas are those that were planned",
      viewOf(podOf([owner])),
      journalOf([], { step: "scale down", at: "2026-01-01T00:00:00Z" }),
    ],
    ["its claim is gone", { ...viewOf(podOf([owner])), claims: [] }, journalOf()],
  ])("are none where %s", (_why, view, journal) => {
    expect(scaled(view, journal, true)).toEqual([]);
  });
});
