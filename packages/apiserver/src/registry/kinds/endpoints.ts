/** Endpoints and EndpointSlice (kubernetes pkg/apis/core/validation ValidateEndpoints, pkg/apis/discovery/validation). */
import type { KubeObject, Stored } from "@longshore/kube";
import {
  type FieldProblem,
  invalidValue,
  requiredValue,
  tooManyItems,
  unsupportedValue,
} from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import { labelProblems } from "../../api/names.ts";
import { spendTime } from "../../api/work-time.ts";
import type { EmulatedVersion } from "../../versions/emulated-version.ts";
import {
  immutable,
  type Loose,
  type LooseObject,
  mapItems,
  subdomainValue,
  withDefaults,
  withMember,
} from "./shaping.ts";

const protocols = ["SCTP", "TCP", "UDP"];

function endpointsDefaults(object: KubeObject): KubeObject {
  return withMember(object as LooseObject, "subsets", (subsets) =>
    mapItems(subsets, (subset) =>
      withMember(subset, "ports", (ports) =>
        mapItems(ports, (port) => withDefaults(port, { protocol: "TCP" })),
      ),
    ),
  );
}

function portProblems(port: Loose, at: string, requireName: boolean): FieldProblem[] {
  spendTime();
  const problems: FieldProblem[] = [];
  if (requireName && !port.name) problems.push(requiredValue(`${at}.name`));
  else if (port.name)
    problems.push(...labelProblems(port.name).map((why) => invalidValue(`${at}.name`, port.name, why)));
  if (!(port.port >= 1 && port.port <= 65_535)) {
    problems.push(invalidValue(`${at}.port`, port.port ?? 0, "must be between 1 and 65535, inclusive"));
  }
  if (!protocols.includes(port.protocol)) {
    problems.push(unsupportedValue(`${at}.protocol`, port.protocol, protocols));
  }
  return problems;
}

function endpointsProblems(object: KubeObject, version: EmulatedVersion): FieldProblem[] {
  const subsets: readonly Loose[] = (object as LooseObject).subsets ?? [];
  return subsets.flatMap((subset, i) => {
    const at = `subsets[${i}]`;
    const problems: FieldProblem[] = [];
    const { addresses = [], notReadyAddresses = [], ports = [] } = subset;
    if (addresses.length === 0 && notReadyAddresses.length === 0) {
      problems.push(requiredValue(at, "must specify `addresses` or `notReadyAddresses`"));
    }
    for (const [list, items] of [
      ["addresses", addresses],
      ["notReadyAddresses", notReadyAddresses],
    ] as const) {
      for (const [j, address] of items.entries())
        problems.push(...addressProblems(address, `${at}.${list}[${j}]`, version));
    }
    for (const [j, port] of ports.entries()) {
      // One port needs no name: names distinguish several.
      problems.push(...portProblems(port, `${at}.ports[${j}]`, ports.length > 1));
    }
    return problems;
  });
}

const ipPattern = /^(\d{1,3}(\.\d{1,3}){3}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)$/;

/** True for a text that is an IP address. */
export function isAddress(ip: unknown): boolean {
  spendTime();
  if (typeof ip !== "string" || !ipPattern.test(ip)) return false;
  // No leading zeros: some programs would read the number as an octal one.
  return ip.includes(":") || ip.split(".").every((part) => Number(part) <= 255 && !/^0\d/.test(part));
}

function addressProblems(
  { ip, hostname, nodeName }: Loose,
  at: string,
  version: EmulatedVersion,
): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (!isAddress(ip)) {
    const examples = version.has("addressExamples") ? ", (e.g. 10.9.8.7 or 2001:db8::ffff)" : "";
    problems.push(invalidValue(`${at}.ip`, ip ?? "", `must be a valid IP address${examples}`));
  } else if (/^127\.|^::1$/.test(ip)) {
    problems.push(invalidValue(`${at}.ip`, ip, "may not be in the loopback range (127.0.0.0/8, ::1/128)"));
  } else if (ip === "0.0.0.0" || ip === "::") {
    problems.push(invalidValue(`${at}.ip`, ip, `may not be unspecified (${ip})`));
  } else if (ip.startsWith("169.254.")) {
    problems.push(
      invalidValue(`${at}.ip`, ip, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
    );
  }
  if (nodeName !== undefined) problems.push(...subdomainValue(`${at}.nodeName`, nodeName));
  if (hostname)
    problems.push(...labelProblems(hostname).map((why) => invalidValue(`${at}.hostname`, hostname, why)));
  return problems;
}

/** Endpoints. */
export const endpoints = (version: EmulatedVersion): Kind => ({
  group: "",
  versions: ["v1"],
  kind: "Endpoints",
  plural: "endpoints",
  singular: "endpoints",
  shortNames: ["ep"],
  namespaced: true,
  createsOnUpdate: true,
  defaults: endpointsDefaults,
  validate: (object) => endpointsProblems(object, version),
});

const addressTypes = ["FQDN", "IPv4", "IPv6"];
const endpointsMax = 1000;

function validateSlice(object: KubeObject): FieldProblem[] {
  const { addressType, endpoints: list = [], ports = [] } = object as LooseObject;
  const problems: FieldProblem[] = [];
  if (!addressType) problems.push(requiredValue("addressType"));
  else if (!addressTypes.includes(addressType)) {
    problems.push(unsupportedValue("addressType", addressType, addressTypes));
  }
  if (list.length > endpointsMax) problems.push(tooManyItems("endpoints", list.length, endpointsMax));
  for (const [i, endpoint] of (list as readonly Loose[]).entries()) {
    spendTime();
    if ((endpoint.addresses ?? []).length === 0) {
      problems.push(requiredValue(`endpoints[${i}].addresses`, "must contain at least 1 address"));
    }
  }
  const names = new Set<string>();
  for (const [i, port] of (ports as readonly Loose[]).entries()) {
    if (names.has(port.name ?? "")) {
      problems.push({
        reason: "FieldValueDuplicate",
        message: `Duplicate value: ${JSON.stringify(port.name ?? "")}`,
        field: `ports[${i}].name`,
      });
    }
    names.add(port.name ?? "");
    if (!protocols.includes(port.protocol)) {
      problems.push(unsupportedValue(`ports[${i}].protocol`, port.protocol, protocols));
    }
  }
  return problems;
}

/** EndpointSlice. */
export const endpointSlice: Kind = {
  group: "discovery.k8s.io",
  versions: ["v1", "v1beta1"],
  kind: "EndpointSlice",
  plural: "endpointslices",
  namespaced: true,
  countsGenerations: true,
  defaults: (object) =>
    withMember(object as LooseObject, "ports", (ports) =>
      mapItems(ports, (port) => withDefaults(port, { name: "", protocol: "TCP" })),
    ),
  validate: validateSlice,
  validateUpdate: (next: KubeObject, old: Stored) =>
    (next as LooseObject).addressType === (old as LooseObject).addressType
      ? []
      : [invalidValue("addressType", (next as LooseObject).addressType, immutable)],
};
