import type { CSINode, InformerHandler, Node, Stored, TopologySelectorTerm } from "@longshore/kube";
import { accessibilityRequirements } from "@longshore/storage";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { topologyView } from "./topology-view.ts";

const driverName = "disk.example.com";

/** A cache that a test fills. */
function fakeCache<T extends CSINode | Node>(objects: readonly Stored<T>[]) {
  const held = new Map(objects.map((object) => [object.metadata.name, object]));
  let handler: InformerHandler<T> | undefined;
  return {
    get: (name: string) => held.get(name),
    list: () => [...held.values()],
    onChange(listener: InformerHandler<T>) {
      handler = listener;
      return () => {};
    },
    set(object: Stored<T>) {
      const before = held.get(object.metadata.name);
      held.set(object.metadata.name, object);
      if (before === undefined) handler?.added?.(object, { initial: false });
      else handler?.updated?.(before, object);
    },
    remove(name: string) {
      const before = held.get(name);
      held.delete(name);
      if (before !== undefined) handler?.deleted?.(before, { tombstone: false });
    },
  };
}

const aNode = (name: string, labels: Record<string, string>) =>
  ({ metadata: { name, uid: name, resourceVersion: "1", labels } }) as Stored<Node>;
const aCsiNode = (name: string, topologyKeys: readonly string[]) =>
  ({
    metadata: { name, uid: name, resourceVersion: "1" },
    spec: { drivers: [{ name: driverName, nodeID: name, topologyKeys: [...topologyKeys] }] },
  }) as Stored<CSINode>;

const names = ["a", "b", "c", "d"];
const anyNodes = fc.array(
  fc.record({
    name: fc.constantFrom(...names),
    labels: fc.dictionary(fc.constantFrom("zone", "rack"), fc.constantFrom("1", "2", "3")),
  }),
);
const anyCsiNodes = fc.array(
  fc.record({
    name: fc.constantFrom(...names),
    keys: fc.uniqueArray(fc.constantFrom("zone", "rack", "host")),
  }),
);

describe("the topology seen at once", () => {
  it("gives what going through all nodes gives, after any changes", () => {
    fc.assert(
      fc.property(
        anyNodes,
        anyCsiNodes,
        fc.constantFrom(undefined, ...names),
        fc.boolean(),
        fc.constantFrom<readonly TopologySelectorTerm[]>(
          [],
          [{ matchLabelExpressions: [{ key: "zone", values: ["1", "2"] }] }],
        ),
        (nodes, csiNodes, selectedNode, strictTopology, allowedTopologies) => {
          const nodeCache = fakeCache<Node>([]);
          const csiNodeCache = fakeCache<CSINode>([]);
          const view = topologyView(driverName, csiNodeCache, nodeCache);
          const answer = (memory: ReturnType<typeof view.now>) => {
            const question = {
              driverName,
              pvcName: "data-web-3",
              allowedTopologies,
              selectedNode,
              strictTopology,
              immediateTopology: true,
              csiNodes: memory === undefined ? csiNodeCache.list() : [],
              nodes: memory === undefined ? nodeCache.list() : [],
              ...(memory === undefined ? {} : { memory }),
            };
            try {
              return accessibilityRequirements(question).requirements;
            } catch (error) {
              return String(error);
            }
          };
          const check = () => expect(answer(view.now(selectedNode))).toEqual(answer(undefined));
          check();
          for (const { name, labels } of nodes) {
            nodeCache.set(aNode(name, labels));
            check();
          }
          for (const { name, keys } of csiNodes) {
            csiNodeCache.set(aCsiNode(name, keys));
            check();
          }
          for (const name of ["a", "b"]) {
            nodeCache.remove(name);
            check();
            csiNodeCache.remove(name);
            check();
          }
        },
      ),
    );
  });
});
