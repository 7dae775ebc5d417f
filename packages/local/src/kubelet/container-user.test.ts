import type { Pod, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { containerUserOf } from "./container-user.ts";
import { PodSpecError } from "./pod-spec-error.ts";

const root = { uid: 0, gid: 0, mayChange: true };
const alice = { uid: 1000, gid: 100, mayChange: false };

function userOf(ofPod: object, ofContainer: object, node: typeof root) {
  const container = { name: "c", securityContext: ofContainer };
  const pod = {
    metadata: { name: "p", namespace: "ns", uid: "u", resourceVersion: "1" },
    spec: { securityContext: ofPod, containers: [container] },
  } as Stored<Pod>;
  return containerUserOf(pod, { container, field: "spec.containers[0]" }, node);
}

describe("the user of a container", () => {
  it.each([
    ["nothing is asked for", {}, {}, root, undefined],
    ["the pod's", { runAsUser: 7 }, {}, root, { uid: 7, groups: [] }],
    [
      "the container's before the pod's",
      { runAsUser: 7, runAsGroup: 8 },
      { runAsUser: 9 },
      root,
      { uid: 9, gid: 8, groups: [] },
    ],
    ["a group alone", {}, { runAsGroup: 8 }, root, { uid: 0, gid: 8, groups: [] }],
    [
      "further groups, that of the volumes among them, each once",
      { supplementalGroups: [5, 6], fsGroup: 6 },
      {},
      root,
      { uid: 0, groups: [5, 6] },
    ],
    ["one that is not root", { runAsNonRoot: true }, { runAsUser: 7 }, root, { uid: 7, groups: [] }],
    ["that may be root after all", { runAsNonRoot: true }, { runAsNonRoot: false }, root, undefined],
    ["the node's own", { runAsUser: 1000, runAsGroup: 100, fsGroup: 5 }, {}, alice, undefined],
    ["the node's own, which is not root", { runAsNonRoot: true }, {}, alice, undefined],
  ])("%s", (_, ofPod, ofContainer, node, user) => {
    expect(userOf(ofPod, ofContainer, node)).toEqual(user);
  });

  it.each([
    [
      { runAsNonRoot: true },
      {},
      root,
      "pod ns/p, spec.securityContext.runAsNonRoot: the container would run as root",
    ],
    [
      {},
      { runAsNonRoot: true, runAsUser: 0 },
      root,
      "pod ns/p, spec.containers[0].securityContext.runAsNonRoot: ",
    ],
    [
      { runAsUser: 7 },
      {},
      alice,
      "spec.securityContext.runAsUser: 7 is not the user of this node's agent, 1000",
    ],
    [{}, { runAsGroup: 7 }, alice, "spec.containers[0].securityContext.runAsGroup: 7 is not the group of"],
  ])("is refused by name: %j %j", (ofPod, ofContainer, node, text) => {
    expect(() => userOf(ofPod, ofContainer, node)).toThrow(PodSpecError);
    expect(() => userOf(ofPod, ofContainer, node)).toThrow(text);
  });
});
