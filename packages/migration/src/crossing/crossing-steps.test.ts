/** In which order nodes cross. */
import type { Node, Stored } from "@longshore/kube";
import { expect, test } from "vitest";
import { nodesInOrder } from "./crossing-steps.ts";

const node = (name: string, isCordoned = false) =>
  ({
    metadata: { name, annotations: isCordoned ? { "longshore.dev/cordoned-for-crossing": "aws-ebs" } : {} },
  }) as unknown as Stored<Node>;

test("nodes cross by name, and back the other way round", () => {
  const nodes = [node("b"), node("c"), node("a")];
  expect(nodesInOrder(nodes, "migrate")).toEqual(["a", "b", "c"]);
  expect(nodesInOrder(nodes, "rollback")).toEqual(["c", "b", "a"]);
});

test("nodes that a crossing has cordoned come first: without their room the others could not be drained", () => {
  const nodes = [node("a"), node("b", true), node("c"), node("d", true)];
  expect(nodesInOrder(nodes, "migrate")).toEqual(["b", "d", "a", "c"]);
  expect(nodesInOrder(nodes, "rollback")).toEqual(["d", "b", "c", "a"]);
});
