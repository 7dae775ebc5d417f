import type { PersistentVolumeClaim } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { ProvisionError } from "../create-outcome.ts";
import { isGranted } from "./content-source.ts";
import { cloneSourceKeyOf, dataSourceOf, snapshotSourceKeyOf } from "./data-source.ts";

const snapshots = "snapshot.storage.k8s.io";

function claimOf(spec: object): PersistentVolumeClaim {
  return { metadata: { name: "c", namespace: "default" }, spec } as PersistentVolumeClaim;
}

const cases: readonly [name: string, spec: object, crossNamespace: boolean, expected: object | undefined][] =
  [
    ["no source", {}, false, undefined],
    [
      "a claim",
      { dataSource: { kind: "PersistentVolumeClaim", name: "a" } },
      false,
      { kind: "clone", name: "a", namespace: "default", crossesNamespaces: false },
    ],
    [
      "a snapshot, also where only the newer field names it",
      { dataSourceRef: { apiGroup: snapshots, kind: "VolumeSnapshot", name: "a" } },
      false,
      { kind: "snapshot", name: "a", namespace: "default", crossesNamespaces: false },
    ],
    [
      "another namespace, with the gate",
      { dataSourceRef: { kind: "PersistentVolumeClaim", name: "a", namespace: "other" } },
      true,
      { kind: "clone", name: "a", namespace: "other", crossesNamespaces: true },
    ],
    [
      "the claim's own namespace by name crosses nothing",
      { dataSourceRef: { kind: "PersistentVolumeClaim", name: "a", namespace: "default" } },
      false,
      { kind: "clone", name: "a", namespace: "default", crossesNamespaces: false },
    ],
  ];

const refused: readonly [name: string, spec: object, ignored: boolean, text: RegExp][] = [
  [
    "another kind is a populator's business",
    { dataSourceRef: { apiGroup: "x.io", kind: "Gen", name: "a" } },
    true,
    /populator/,
  ],
  [
    "so is a claim of another group",
    { dataSourceRef: { apiGroup: "x.io", kind: "PersistentVolumeClaim", name: "a" } },
    true,
    /populator/,
  ],
  [
    "a snapshot of another group is a mistake",
    { dataSource: { apiGroup: "x.io", kind: "VolumeSnapshot", name: "a" } },
    false,
    /apiGroup/,
  ],
  ["so is one without a name", { dataSource: { kind: "PersistentVolumeClaim", name: "" } }, false, /no name/],
  [
    "another namespace without the gate must not become an empty volume",
    { dataSourceRef: { kind: "PersistentVolumeClaim", name: "a", namespace: "other" } },
    false,
    /CrossNamespaceVolumeDataSource/,
  ],
];

describe("the data source of a claim", () => {
  it.each(cases)("%s", (_, spec, crossNamespace, expected) => {
    expect(dataSourceOf(claimOf(spec), crossNamespace)).toEqual(expected);
  });

  it.each(refused)("%s", (_, spec, ignored, text) => {
    let thrown: unknown;
    try {
      dataSourceOf(claimOf(spec), false);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(ProvisionError);
    expect(thrown).toMatchObject({ state: "Finished", ignored, message: expect.stringMatching(text) });
  });

  it("is an index key that knows kinds and namespaces apart", () => {
    const clone = claimOf({ dataSource: { kind: "PersistentVolumeClaim", name: "a" } });
    const restore = claimOf({ dataSource: { apiGroup: snapshots, kind: "VolumeSnapshot", name: "a" } });
    const across = claimOf({
      dataSourceRef: { kind: "PersistentVolumeClaim", name: "a", namespace: "other" },
    });
    expect([clone, restore, across].map(cloneSourceKeyOf)).toEqual(["default/a", undefined, "other/a"]);
    expect([clone, restore, across].map(snapshotSourceKeyOf)).toEqual([undefined, "default/a", undefined]);
  });
});

describe("a ReferenceGrant", () => {
  const from = [{ group: "", kind: "PersistentVolumeClaim", namespace: "default" }];
  const source = { kind: "snapshot", name: "a" } as const;
  it.each<[string, object, boolean]>([
    ["of the kind", { from, to: [{ group: snapshots, kind: "VolumeSnapshot" }] }, true],
    ["of the very object", { from, to: [{ group: snapshots, kind: "VolumeSnapshot", name: "a" }] }, true],
    ["of another object", { from, to: [{ group: snapshots, kind: "VolumeSnapshot", name: "b" }] }, false],
    ["of another kind", { from, to: [{ group: "", kind: "PersistentVolumeClaim" }] }, false],
    [
      "for another namespace",
      {
        from: [{ ...from[0], namespace: "third" }],
        to: [{ group: snapshots, kind: "VolumeSnapshot" }],
      },
      false,
    ],
    ["for others than claims", { from: [{ ...from[0], kind: "Pod" }], to: [] }, false],
    ["that says nothing", {}, false],
  ])("%s", (_, spec, granted) => {
    expect(isGranted({ spec } as Parameters<typeof isGranted>[0], "default", source)).toBe(granted);
  });
});
