import { KubeApiError, type KubeClient, type Node } from "@longshore/kube";
import { silentLogger } from "@longshore/runtime";
import { expect, it } from "vitest";
import { announcedNodeIdOf, announcedNodeIds } from "./announced-node-ids.ts";

const node = (text: string): Node => ({
  metadata: { name: "n", annotations: { "csi.volume.kubernetes.io/nodeid": text } },
});

it.each([
  ["the id of the driver", node('{"d":"i-1","e":"i-2"}'), "i-1"],
  ["not that of another", node('{"e":"i-2"}'), undefined],
  ["nothing from what is no JSON", node("d=i-1"), undefined],
  ["nothing from what is no object", node('["d"]'), undefined],
  ["nothing from null", node("null"), undefined],
  ["no number", node('{"d":7}'), undefined],
  ["nothing empty", node('{"d":""}'), undefined],
  ["nothing without the annotation", { metadata: { name: "n" } }, undefined],
  ["nothing without a Node", undefined, undefined],
])("a Node announces %s", (_, given, id) => {
  expect(announcedNodeIdOf(given, "d")).toBe(id);
});

it("is asked for once only where the right to read Nodes is missing", async () => {
  let asked = 0;
  const get = async () => {
    asked++;
    throw new KubeApiError({
      kind: "Status",
      apiVersion: "v1",
      status: "Failure",
      code: 403,
      reason: "Forbidden",
    });
  };
  const announced = announcedNodeIds({ kube: { get } as unknown as KubeClient, logger: silentLogger }, "d");
  const { signal } = new AbortController();
  expect(await announced("n", signal)).toBeUndefined();
  expect(await announced("n", signal)).toBeUndefined();
  expect(asked).toBe(1);
});
