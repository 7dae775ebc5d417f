/** What a driver changes on the Node, as a table. Source: docs/behaviour/node-agent.md 2.2, 2.3. */
import type { Node, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { expect, it } from "vitest";
import {
  decideNodeInfoStep,
  NodeInfoError,
  type NodeInfoGoal,
  type NodeInfoStep,
  nodeIDAnnotation,
} from "./decide-node-info-step.ts";

const decide = pureDecision(decideNodeInfoStep);
const info = { nodeID: "i-1", maxVolumes: 0n, topology: { zone: "a" } };
const install: NodeInfoGoal = { kind: "install", name: "d", info };
const uninstall: NodeInfoGoal = { kind: "uninstall", name: "d" };
const settle = { step: "settle" };

function node(nodeIDs?: string, labels: Readonly<Record<string, string>> = {}): Stored<Node> {
  const annotations = nodeIDs === undefined ? {} : { [nodeIDAnnotation]: nodeIDs };
  return { metadata: { name: "n", annotations, labels } } as unknown as Stored<Node>;
}
const patch = (nodeIDs: string | null | undefined, labels?: object) => ({
  step: "patch",
  metadata: {
    ...(nodeIDs === undefined ? {} : { annotations: { [nodeIDAnnotation]: nodeIDs } }),
    ...(labels === undefined ? {} : { labels }),
  },
});

it.each<[string, NodeInfoGoal, Stored<Node> | undefined, object]>([
  ["a driver that comes is written with its topology", install, node(), patch('{"d":"i-1"}', { zone: "a" })],
  [
    "a driver that comes is written beside another",
    install,
    node('{"e":"i-9"}', { zone: "a" }),
    patch('{"e":"i-9","d":"i-1"}'),
  ],
  [
    "a driver that comes with another node ID replaces its own",
    install,
    node('{"d":"i-0"}', { zone: "a" }),
    patch('{"d":"i-1"}'),
  ],
  [
    "a driver that is there gets the label that is missing",
    install,
    node('{"d":"i-1"}'),
    patch(undefined, { zone: "a" }),
  ],
  ["a driver that is there changes nothing", install, node('{"d":"i-1"}', { zone: "a" }), settle],
  ["a driver that comes before its Node waits", install, undefined, { step: "waitForNode" }],
  [
    "a driver that goes takes its node ID along",
    uninstall,
    node('{"d":"i-1","e":"i-9"}'),
    patch('{"e":"i-9"}'),
  ],
  [
    "the last driver that goes takes the annotation along, and leaves labels",
    uninstall,
    node('{"d":"i-1"}', { zone: "a" }),
    patch(null),
  ],
  ["a driver that goes and is not there changes nothing", uninstall, node('{"e":"i-9"}'), settle],
  ["a driver that goes after its Node waits for nothing", uninstall, undefined, settle],
])("%s", (_name, goal, stored, step) => {
  expect(decide({ goal, node: stored })).toEqual(step);
});

it.each<[string, NodeInfoGoal, Stored<Node>, RegExp]>([
  ["a label of another value", install, node(undefined, { zone: "b" }), /topology value collision/],
  ["a damaged annotation", install, node("{"), /not a JSON object/],
  ["a damaged annotation, also when the driver goes", uninstall, node("[]"), /not a JSON object/],
])("%s is refused", (_name, goal, stored, message) => {
  const step = decide({ goal, node: stored }) as Extract<NodeInfoStep, { readonly step: "refuse" }>;
  expect(step.step).toBe("refuse");
  expect(step.error).toBeInstanceOf(NodeInfoError);
  expect(step.error.message).toMatch(message);
});
