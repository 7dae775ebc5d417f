/** What the node service says of itself: capabilities, id, limits, topology. */
import {
  equals,
  NodeGetCapabilitiesResponseSchema,
  NodeGetInfoResponseSchema,
  NodeServiceCapability_RPC_Type as Rpc,
} from "@longshore/csi";
import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { endingOf, must, mustAnswer } from "../expect.ts";
import { controllerCan, hasNode, pluginCan, topologyKnown } from "../needs.ts";

const nodeIdBytes = 256;
const label = /^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$/;
const prefix = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;

const optionalCalls: readonly (readonly [
  capabilities: readonly string[],
  rpc: string,
  call: (context: CheckContext) => Promise<unknown>,
])[] = [
  [["STAGE_UNSTAGE_VOLUME"], "NodeStageVolume", ({ node }) => node.nodeStageVolume({})],
  [["STAGE_UNSTAGE_VOLUME"], "NodeUnstageVolume", ({ node }) => node.nodeUnstageVolume({})],
  [["GET_VOLUME_STATS", "VOLUME_CONDITION"], "NodeGetVolumeStats", ({ node }) => node.nodeGetVolumeStats({})],
  [["EXPAND_VOLUME"], "NodeExpandVolume", ({ node }) => node.nodeExpandVolume({})],
];

/** Why the topology breaks a rule of the specification, or undefined. */
export function topologyProblem(segments: Readonly<Record<string, string>>): string | undefined {
  const keys = Object.keys(segments);
  const prefixes = new Set(keys.map((key) => (key.includes("/") ? key.slice(0, key.lastIndexOf("/")) : "")));
  if (prefixes.size > 1) return `its keys have different prefixes: ${[...prefixes].join(", ")}`;
  if (new Set(keys.map((key) => key.toLowerCase())).size < keys.length) {
    return "its keys differ in case only";
  }
  for (const [key, value] of Object.entries(segments)) {
    const at = key.lastIndexOf("/");
    const name = key.slice(at + 1);
    if (at > 0 && (at > 63 || !prefix.test(key.slice(0, at)))) {
      return `the prefix of the key "${key}" must be a lower-case DNS name of at most 63 characters`;
    }
    if (name.length > 63 || !label.test(name)) {
      return `the name of the key "${key}" must have at most 63 characters, alphanumeric at both ends, with -_. between`;
    }
    if (value.length > 63 || !label.test(value)) {
      return `the value "${value}" of ${key} must have at most 63 characters, alphanumeric at both ends, with -_. between`;
    }
  }
  return undefined;
}

/** The checks of NodeGetCapabilities and NodeGetInfo. */
export const nodeInfoChecks: readonly Check[] = [
  {
    id: "node.capabilities.known",
    sentence: "NodeGetCapabilities declares no capability without a type, or of type UNKNOWN",
    spec: "NodeGetCapabilities",
    needs: [hasNode],
    async run({ node }) {
      const { capabilities } = await mustAnswer("NodeGetCapabilities", node.nodeGetCapabilities({}));
      for (const [index, { type }] of capabilities.entries()) {
        must(type.case === "rpc", `capabilities[${index}] has no type`);
        must(type.value.type !== Rpc.UNKNOWN, `capabilities[${index}] is UNKNOWN`);
      }
    },
  },
  {
    id: "node.capabilities.same-answer",
    sentence: "NodeGetCapabilities answers the same whenever it is asked",
    spec: "NodeGetCapabilities",
    needs: [hasNode],
    async run({ node }) {
      const ask = () => mustAnswer("NodeGetCapabilities", node.nodeGetCapabilities({}));
      must(
        equals(NodeGetCapabilitiesResponseSchema, await ask(), await ask()),
        "two calls of NodeGetCapabilities got different answers",
      );
    },
  },
  {
    id: "node.capabilities.undeclared-refused",
    sentence: "a call whose capability is not declared ends with UNIMPLEMENTED, or is refused as any other",
    spec: "Error Scheme",
    needs: [
      hasNode,
      ({ node }) =>
        optionalCalls.every(([capabilities]) => capabilities.some((capability) => node.has(capability)))
          ? "every capability is declared"
          : undefined,
    ],
    async run(context) {
      for (const [capabilities, rpc, call] of optionalCalls) {
        if (capabilities.some((capability) => context.target.node.has(capability))) continue;
        const { code } = await endingOf(call(context));
        // An empty request may be found invalid before its capability is looked at.
        must(
          ["UNIMPLEMENTED", "INVALID_ARGUMENT"].includes(code),
          `${capabilities[0]} is not declared, and an empty ${rpc} ended with ${code}; must be UNIMPLEMENTED`,
        );
      }
    },
  },
  {
    id: "node.get-info.node-id",
    sentence: "NodeGetInfo gives the node's id, of at most 256 bytes",
    spec: "NodeGetInfo",
    needs: [hasNode, controllerCan("PUBLISH_UNPUBLISH_VOLUME")],
    async run({ node }) {
      const { nodeId } = await mustAnswer("NodeGetInfo", node.nodeGetInfo({}));
      must(nodeId !== "", "node_id is empty; it is REQUIRED");
      const bytes = new TextEncoder().encode(nodeId).length;
      must(bytes <= nodeIdBytes, `node_id has ${bytes} bytes; at most ${nodeIdBytes} are allowed`);
    },
  },
  {
    id: "node.get-info.same-answer",
    sentence: "NodeGetInfo answers the same while nothing about the node changes",
    spec: "NodeGetInfo",
    needs: [hasNode, controllerCan("PUBLISH_UNPUBLISH_VOLUME")],
    async run({ node }) {
      const ask = () => mustAnswer("NodeGetInfo", node.nodeGetInfo({}));
      must(
        equals(NodeGetInfoResponseSchema, await ask(), await ask()),
        "two calls of NodeGetInfo got different answers",
      );
    },
  },
  {
    id: "node.get-info.max-volumes",
    sentence: "max_volumes_per_node is not negative",
    spec: "NodeGetInfo",
    needs: [hasNode, ({ nodeInfo }) => (nodeInfo === undefined ? "NodeGetInfo is not answered" : undefined)],
    async run({ node }) {
      const { maxVolumesPerNode } = await mustAnswer("NodeGetInfo", node.nodeGetInfo({}));
      must(maxVolumesPerNode >= 0n, `max_volumes_per_node is ${maxVolumesPerNode}`);
    },
  },
  {
    id: "node.get-info.topology-given",
    sentence: "a plugin with VOLUME_ACCESSIBILITY_CONSTRAINTS says where the node is",
    spec: "NodeGetInfo",
    needs: [hasNode, pluginCan("VOLUME_ACCESSIBILITY_CONSTRAINTS")],
    async run({ node }) {
      const { accessibleTopology } = await mustAnswer("NodeGetInfo", node.nodeGetInfo({}));
      must(
        Object.keys(accessibleTopology?.segments ?? {}).length > 0,
        "VOLUME_ACCESSIBILITY_CONSTRAINTS is declared, and NodeGetInfo gives no accessible_topology",
      );
    },
  },
  {
    id: "node.get-info.topology-form",
    sentence: "keys and values of the topology have the form that the specification asks for",
    spec: "NodeGetInfo",
    needs: [hasNode, topologyKnown],
    async run({ node }) {
      const { accessibleTopology } = await mustAnswer("NodeGetInfo", node.nodeGetInfo({}));
      const problem = topologyProblem(accessibleTopology?.segments ?? {});
      must(problem === undefined, `accessible_topology: ${problem}`);
    },
  },
];
