import { describe, expect, it } from "vitest";
import { TemplateError } from "./resolve-template.ts";
import { ParameterError } from "./secret-reference.ts";
import {
  type SnapshotSecretKind,
  snapshotSecretReference,
  stripSnapshotParameters,
} from "./snapshot-parameters.ts";

const snapshot = { name: "daily", namespace: "shop" };
const values = { contentName: "snapcontent-1", snapshot };
/** A token of a template. */
const token = (name: string) => ["$", "{", name, "}"].join("");
const keys = (kind: string, name: string, namespace: string) => ({
  [`csi.storage.k8s.io/${kind}-secret-name`]: name,
  [`csi.storage.k8s.io/${kind}-secret-namespace`]: namespace,
});

describe("the secret of a call about snapshots", () => {
  it("is none where the class names none, or one for another call", () => {
    expect(snapshotSecretReference("snapshotter", {}, values)).toBeUndefined();
    const other = keys("snapshotter-list", "a", "b");
    expect(snapshotSecretReference("snapshotter", other, values)).toBeUndefined();
    expect(snapshotSecretReference("snapshotter-list", other, values)).toEqual({
      name: "a",
      namespace: "b",
    });
  });

  const templates: readonly [SnapshotSecretKind, string, string, object | typeof Error][] = [
    [
      "snapshotter",
      token("volumesnapshot.name"),
      token("volumesnapshot.namespace"),
      { name: "daily", namespace: "shop" },
    ],
    [
      "snapshotter",
      token("volumesnapshotcontent.name"),
      "shop",
      { name: "snapcontent-1", namespace: "shop" },
    ],
    // A user chooses the name of a snapshot: no namespace follows from it.
    ["snapshotter", "a", token("volumesnapshot.name"), TemplateError],
    ["snapshotter", token("pvc.name"), "shop", TemplateError],
    ["snapshotter", "Not_A_Name", "shop", ParameterError],
    ["snapshotter", "a", "no.namespace", ParameterError],
    ["snapshotter", "", "shop", ParameterError],
    ["snapshotter", "a", "", ParameterError],
    [
      "group-snapshotter",
      token("volumegroupsnapshot.name"),
      token("volumegroupsnapshot.namespace"),
      { name: "daily", namespace: "shop" },
    ],
    ["group-snapshotter", token("volumesnapshot.name"), "shop", TemplateError],
    [
      "group-snapshotter-get",
      token("volumegroupsnapshotcontent.name"),
      "shop",
      { name: "snapcontent-1", namespace: "shop" },
    ],
  ];
  it.each(templates)("%s: name %j and namespace %j", (kind, name, namespace, expected) => {
    const ask = () => snapshotSecretReference(kind, keys(kind, name, namespace), values);
    if (typeof expected === "function") expect(ask).toThrow(expected as typeof Error);
    else expect(ask()).toEqual(expected);
  });

  it("needs both keys", () => {
    const [nameOnly] = Object.entries(keys("snapshotter", "a", "b"));
    expect(() =>
      snapshotSecretReference("snapshotter", Object.fromEntries([nameOnly ?? []]), values),
    ).toThrow(ParameterError);
  });

  it("cannot speak of a snapshot that may be gone", () => {
    const parameters = keys("snapshotter-list", token("volumesnapshot.name"), "shop");
    const ask = () => snapshotSecretReference("snapshotter-list", parameters, { contentName: "c" });
    expect(ask).toThrow(TemplateError);
  });
});

describe("the parameters for the driver", () => {
  it("are those of the class without the sidecars' own", () => {
    const own = { ...keys("snapshotter", "a", "b"), ...keys("group-snapshotter-get", "a", "b") };
    expect(stripSnapshotParameters({ kind: "fast", ...own })).toEqual({ kind: "fast" });
  });

  it("are refused with an unknown reserved key", () => {
    expect(() => stripSnapshotParameters({ "csi.storage.k8s.io/snapshoter-secret-name": "a" })).toThrow(
      ParameterError,
    );
  });
});
