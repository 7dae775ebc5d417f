import { KubeApiError } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { own } from "../api/own.ts";
import { applyStrategicPatch } from "./apply-strategic-patch.ts";

interface PatchCase {
  readonly name: string;
  readonly of?: { readonly group: string; readonly kind: string };
  readonly before: object;
  readonly patch: Readonly<Record<string, unknown>>;
  readonly after: object;
}

const pod = { group: "", kind: "Pod" };
const deployment = { group: "apps", kind: "Deployment" };
const node = { group: "", kind: "Node" };

/** A pod with these containers. */
const containers = (...list: readonly object[]) => ({ spec: { containers: list } });
const finalizers = (...list: readonly string[]) => ({ metadata: { finalizers: list } });
const main = { name: "main", image: "a" };
const side = { name: "side", image: "b" };

const cases: readonly PatchCase[] = [
  {
    name: "members are merged, null takes one away",
    before: { metadata: { labels: { a: "1", b: "2" }, name: "p" } },
    patch: { metadata: { labels: { a: null, c: "3" } } },
    after: { metadata: { labels: { b: "2", c: "3" }, name: "p" } },
  },
  {
    name: "null for a member that is not there is nothing",
    before: { metadata: { name: "p" } },
    patch: { metadata: { labels: null } },
    after: { metadata: { name: "p" } },
  },
  {
    name: "items with a known key are merged in place",
    before: containers(main, side),
    patch: containers({ name: "side", image: "c" }),
    after: containers(main, { name: "side", image: "c" }),
  },
  {
    name: "items with a new key join the list",
    before: containers(main),
    patch: {
      spec: { containers: [side], "$setElementOrder/containers": [{ name: "main" }, { name: "side" }] },
    },
    after: containers(main, side),
  },
  {
    name: "lists in merged items are merged by their own merge keys",
    before: containers({
      ...main,
      env: [
        { name: "A", value: "1" },
        { name: "B", value: "2" },
      ],
    }),
    patch: containers({ name: "main", env: [{ name: "B", value: "3" }] }),
    after: containers({
      ...main,
      env: [
        { name: "A", value: "1" },
        { name: "B", value: "3" },
      ],
    }),
  },
  {
    name: "ports are distinguished by containerPort, a number",
    before: containers({ ...main, ports: [{ containerPort: 80, name: "web" }] }),
    patch: containers({ name: "main", ports: [{ containerPort: 80, name: "http" }] }),
    after: containers({ ...main, ports: [{ containerPort: 80, name: "http" }] }),
  },
  {
    name: "mounts are distinguished by mountPath, so one volume may be mounted twice",
    before: containers({ ...main, volumeMounts: [{ name: "v", mountPath: "/a" }] }),
    patch: {
      spec: {
        containers: [
          {
            name: "main",
            volumeMounts: [{ name: "v", mountPath: "/b" }],
            "$setElementOrder/volumeMounts": [{ mountPath: "/a" }, { mountPath: "/b" }],
          },
        ],
      },
    },
    after: containers({
      ...main,
      volumeMounts: [
        { name: "v", mountPath: "/a" },
        { name: "v", mountPath: "/b" },
      ],
    }),
  },
  {
    name: "owners are distinguished by uid",
    before: { metadata: { ownerReferences: [{ uid: "1", name: "x" }] } },
    patch: { metadata: { ownerReferences: [{ uid: "1", controller: true }] } },
    after: { metadata: { ownerReferences: [{ uid: "1", name: "x", controller: true }] } },
  },
  {
    name: "conditions of a node are merged by type",
    of: node,
    before: { status: { conditions: [{ type: "Ready", status: "False", reason: "Starting" }] } },
    patch: { status: { conditions: [{ type: "Ready", status: "True" }] } },
    after: { status: { conditions: [{ type: "Ready", status: "True", reason: "Starting" }] } },
  },
  {
    name: "a list without a merge rule is replaced",
    of: node,
    before: { status: { volumesInUse: ["a", "b"] } },
    patch: { status: { volumesInUse: ["c"] } },
    after: { status: { volumesInUse: ["c"] } },
  },
  {
    name: "a list of objects without a merge rule is replaced",
    before: { spec: { tolerations: [{ key: "a" }] } },
    patch: { spec: { tolerations: [{ key: "b" }] } },
    after: { spec: { tolerations: [{ key: "b" }] } },
  },
  {
    name: "a list of plain values with a merge rule grows, without repeats",
    before: finalizers("a", "b"),
    patch: finalizers("b", "c"),
    after: finalizers("a", "b", "c"),
  },
  {
    name: "$patch: delete takes the item with its key away",
    before: containers(main, side),
    patch: containers({ name: "main", $patch: "delete" }),
    after: containers(side),
  },
  {
    name: "$patch: delete of an item that is not there is nothing",
    before: containers(main),
    patch: containers({ name: "side", $patch: "delete" }),
    after: containers(main),
  },
  {
    name: "$patch: delete in an object takes the object away",
    before: { metadata: { labels: { a: "1" }, name: "p" } },
    patch: { metadata: { labels: { $patch: "delete" } } },
    after: { metadata: { name: "p" } },
  },
  {
    name: "$patch: replace in an object puts the patch in its place",
    before: { metadata: { labels: { a: "1", b: "2" } } },
    patch: { metadata: { labels: { c: "3", $patch: "replace" } } },
    after: { metadata: { labels: { c: "3" } } },
  },
  {
    name: "$patch: replace in an item with its key replaces the list too, by the other items",
    before: containers({ ...main, command: ["x"] }, side),
    patch: containers({ name: "main", image: "c", $patch: "replace" }, { name: "new", image: "d" }),
    after: containers({ name: "new", image: "d" }),
  },
  {
    name: "$patch: replace as a separate item replaces the list",
    before: containers(main, side),
    patch: containers({ name: "new", image: "n" }, { $patch: "replace" }),
    after: containers({ name: "new", image: "n" }),
  },
  {
    name: "$patch: replace alone empties the list",
    before: { spec: { volumes: [{ name: "v" }] } },
    patch: { spec: { volumes: [{ $patch: "replace" }] } },
    after: { spec: { volumes: [] } },
  },
  {
    name: "$patch: merge says what happens anyway",
    before: { metadata: { labels: { a: "1" } } },
    patch: { metadata: { $patch: "merge", labels: { b: "2" } } },
    after: { metadata: { labels: { a: "1", b: "2" } } },
  },
  {
    name: "$retainKeys keeps of an object what it names",
    of: deployment,
    before: { spec: { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1 } }, replicas: 1 } },
    patch: { spec: { strategy: { $retainKeys: ["type"], type: "Recreate" } } },
    after: { spec: { strategy: { type: "Recreate" }, replicas: 1 } },
  },
  {
    name: "$retainKeys in an item changes the source of a volume",
    before: {
      spec: {
        volumes: [
          { name: "v", emptyDir: {} },
          { name: "w", emptyDir: {} },
        ],
      },
    },
    patch: {
      spec: { volumes: [{ name: "v", $retainKeys: ["name", "hostPath"], hostPath: { path: "/x" } }] },
    },
    after: {
      spec: {
        volumes: [
          { name: "v", hostPath: { path: "/x" } },
          { name: "w", emptyDir: {} },
        ],
      },
    },
  },
  {
    name: "$deleteFromPrimitiveList takes values away",
    before: finalizers("a", "b", "c"),
    patch: { metadata: { "$deleteFromPrimitiveList/finalizers": ["b", "x"] } },
    after: finalizers("a", "c"),
  },
  {
    name: "$deleteFromPrimitiveList beside new values does both",
    before: finalizers("a", "b"),
    patch: { metadata: { "$deleteFromPrimitiveList/finalizers": ["a"], finalizers: ["c"] } },
    after: finalizers("c", "b"),
  },
  {
    name: "$setElementOrder puts the items of the list in order",
    before: containers(main, side),
    patch: { spec: { "$setElementOrder/containers": [{ name: "side" }, { name: "main" }] } },
    after: containers(side, main),
  },
  {
    name: "$setElementOrder orders plain values",
    before: finalizers("a", "b", "c"),
    patch: { metadata: { "$setElementOrder/finalizers": ["c", "b", "a"] } },
    after: finalizers("c", "b", "a"),
  },
  {
    name: "$setElementOrder leaves an item it does not name before what it stood before",
    before: containers({ name: "1" }, { name: "2" }, { name: "3" }),
    patch: {
      spec: {
        "$setElementOrder/containers": [{ name: "3" }, { name: "4" }],
        containers: [{ name: "4" }],
      },
    },
    after: containers({ name: "1" }, { name: "2" }, { name: "3" }, { name: "4" }),
  },
  {
    name: "$setElementOrder for a list that is not there is nothing",
    before: { metadata: { name: "p" } },
    patch: { metadata: { "$setElementOrder/finalizers": ["a"] } },
    after: { metadata: { name: "p" } },
  },
  {
    name: "the object of a kind whose types are in another package is merged by its own rules",
    of: { group: "storage.k8s.io", kind: "CSINode" },
    before: { spec: { drivers: [{ name: "a", nodeID: "1" }] } },
    patch: { spec: { drivers: [{ name: "b", nodeID: "2" }] } },
    after: {
      spec: {
        drivers: [
          { name: "b", nodeID: "2" },
          { name: "a", nodeID: "1" },
        ],
      },
    },
  },
];

describe("a strategic merge patch", () => {
  it.each(cases)("$name", ({ of = pod, before, patch, after }) => {
    expect(applyStrategicPatch(own(before), patch, of)).toEqual(after);
  });

  it("shares with the object whatever it does not name", () => {
    const before = own({
      metadata: { name: "p" },
      spec: { containers: [main, side], volumes: [{ name: "v" }] },
    });
    const after = applyStrategicPatch(before, containers({ name: "side", image: "c" }), pod) as typeof before;
    expect(after.metadata).toBe(before.metadata);
    expect(after.spec.volumes).toBe(before.spec.volumes);
    expect(after.spec.containers[0]).toBe(before.spec.containers[0]);
  });

  it.each([
    ["an unknown directive", { metadata: { $patch: "explode" } }, /unknown patch type: explode/],
    ["an item without its key", containers({ image: "x" }), /does not contain declared merge key: name/],
    ["a list of objects with a plain value in it", containers(main, "x" as never), /holds objects only/],
    [
      "$retainKeys that leaves out what is set",
      { spec: { strategy: { $retainKeys: [], type: "Recreate" } } },
      /\$retainKeys list must name every member/,
      deployment,
    ],
  ] as const)("refuses %s", (_name, patch, message, of = pod) => {
    const attempt = () => applyStrategicPatch(containers(main), patch as never, of);
    expect(attempt).toThrow(message);
    expect(attempt).toThrow(KubeApiError);
  });
});
