/** Node (kubernetes pkg/registry/core/node, pkg/apis/core/validation ValidateNode and ValidateNodeUpdate). */
import { type KubeObject, parseQuantity, type Stored } from "@longshore/kube/basics";
import { type FieldProblem, forbiddenValue, invalidValue } from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import { sameJson } from "../../api/own.ts";
import { spendTime } from "../../api/work-time.ts";
import type { EmulatedVersion } from "../../versions/emulated-version.ts";
import { isAddress } from "./endpoints.ts";
import { taintProblems } from "./scheduling-rules.ts";
import {
  canonicalQuantities,
  type Loose,
  type LooseObject,
  withDefaults,
  withMember,
  without,
} from "./shaping.ts";

const spec = (object: KubeObject): Loose => (object as LooseObject).spec ?? {};

const notReady = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" };
const emptyNodeInfo = {
  machineID: "",
  systemUUID: "",
  bootID: "",
  kernelVersion: "",
  osImage: "",
  containerRuntimeVersion: "",
  kubeletVersion: "",
  kubeProxyVersion: "",
  operatingSystem: "",
  architecture: "",
};

/** One network and the list of them say the same; the one counts (core/v1 conversion). */
function withNetworks(given: Loose): Loose {
  const { podCIDR, podCIDRs = [] } = given;
  if (!podCIDR) return podCIDRs.length === 0 ? given : { ...given, podCIDR: podCIDRs[0] };
  return podCIDRs[0] === podCIDR ? given : { ...given, podCIDRs: [podCIDR] };
}

function isNetwork(text: string): boolean {
  const [address = "", bits = "", ...rest] = text.split("/");
  if (rest.length > 0 || !/^\d+$/.test(bits) || !isAddress(address)) return false;
  return Number(bits) <= (address.includes(":") ? 128 : 32);
}

function nodeProblems(object: KubeObject): FieldProblem[] {
  const { taints = [], podCIDRs = [] } = spec(object);
  // Not `spec.taints`: the path is the reference's.
  const problems = taintProblems(taints, "metadata.taints");
  const networks = podCIDRs as readonly string[];
  for (const [i, network] of networks.entries()) {
    spendTime();
    if (!isNetwork(network))
      problems.push(invalidValue(`spec.podCIDRs[${i}]`, network, "must be valid CIDR"));
  }
  if (networks.length > 2 || (networks.length === 2 && isV6(networks[0]) === isV6(networks[1]))) {
    const why = "may specify no more than one CIDR for each IP family";
    problems.push(invalidValue("spec.podCIDRs", networks, why));
  }
  return problems;
}

const isV6 = (network: string | undefined) => network?.includes(":") === true;

const updateRule = (version: EmulatedVersion) =>
  version.gate("DynamicKubeletConfig")
    ? "node updates may only change labels, taints, or capacity (or configSource, if the DynamicKubeletConfig feature gate is enabled)"
    : "node updates may only change labels, taints, or capacity";

/** Members that may be changed. */
const changeable = ["taints", "unschedulable", "configSource"];

function nodeUpdateProblems(next: KubeObject, old: Stored, version: EmulatedVersion): FieldProblem[] {
  const [now, before] = [spec(next), spec(old)];
  const problems: FieldProblem[] = [];
  // What was not set before may be set once, and is left out of the comparison.
  let fixed = now;
  if ((before.podCIDRs ?? []).length > 0 && !sameJson(now.podCIDRs, before.podCIDRs)) {
    const why = 'node updates may not change podCIDR except from "" to valid';
    problems.push(forbiddenValue("spec.podCIDRs", why));
  } else if ((before.podCIDRs ?? []).length === 0) fixed = without(without(fixed, "podCIDR"), "podCIDRs");
  if (before.providerID && now.providerID !== before.providerID) {
    const why = 'node updates may not change providerID except from "" to valid';
    problems.push(forbiddenValue("spec.providerID", why));
  } else if (!before.providerID) fixed = without(fixed, "providerID");
  const rest = (given: Loose) => changeable.reduce(without, given);
  if (!sameJson(rest(fixed), rest(before))) problems.push(forbiddenValue("[]", updateRule(version)));
  return problems;
}

function nodeStatusProblems(next: KubeObject): FieldProblem[] {
  const { capacity = {}, allocatable = {} } = (next as LooseObject).status ?? {};
  return Object.entries({ capacity, allocatable }).flatMap(([list, amounts]) =>
    Object.entries(amounts as Loose).flatMap(([name, value]) =>
      parseQuantity(String(value)).sign() < 0
        ? [invalidValue(`status.${list}[${name}]`, String(value), "must be greater than or equal to 0")]
        : [],
    ),
  );
}

/** Node. */
export const node = (version: EmulatedVersion): Kind => ({
  group: "",
  versions: ["v1"],
  kind: "Node",
  plural: "nodes",
  namespaced: false,
  shortNames: ["no"],
  statusSubresource: true,
  subresources: {
    proxy: {
      kind: "NodeProxyOptions",
      verbs: ["create", "delete", "get", "patch", "update"],
      isOfNode: true,
    },
  },
  fields: (o) => ({ "spec.unschedulable": String(spec(o).unschedulable ?? false) }),
  defaults: (o) =>
    withMember(
      withMember(withDefaults(o as LooseObject, { spec: {}, status: {} }), "spec", withNetworks),
      "status",
      (status) => {
        const canonical = withMember(
          withMember(status, "capacity", canonicalQuantities),
          "allocatable",
          canonicalQuantities,
        );
        const filled = withDefaults(canonical, {
          daemonEndpoints: { kubeletEndpoint: { Port: 0 } },
          nodeInfo: emptyNodeInfo,
          // What can be allocated is all there is, until the kubelet says less.
          ...(canonical.capacity === undefined ? {} : { allocatable: canonical.capacity }),
        });
        return withMember(filled, "nodeInfo", (info) => withDefaults(info, emptyNodeInfo));
      },
    ),
  // TaintNodesByCondition: nothing is scheduled before the node is known to be ready.
  prepareCreate: (o) => {
    const taints: readonly Loose[] = spec(o).taints ?? [];
    if (taints.some((t) => t.key === notReady.key && t.effect === notReady.effect)) return o;
    return { ...o, spec: { ...spec(o), taints: [...taints, notReady] } } as KubeObject;
  },
  validate: nodeProblems,
  validateUpdate: (next, old) => nodeUpdateProblems(next, old, version),
  validateStatusUpdate: nodeStatusProblems,
});
