/** Faults of the identity service, and those that every RPC shows. */
import {
  ControllerGetCapabilitiesResponseSchema,
  ControllerServiceCapability_RPC_Type as ControllerRpc,
  CsiStatusError,
  create,
  GetPluginCapabilitiesResponseSchema,
  NodeGetCapabilitiesResponseSchema,
  NodeServiceCapability_RPC_Type as NodeRpc,
  PluginCapability_Service_Type as Plugin,
} from "@longshore/csi";
import { all, around, changes, everyCall, everyFailure, type Fault } from "./fault.ts";
import type { FaultName } from "./fault-descriptions.ts";

const longText = 128;
const longMap = 4096;

function withoutControllerCapability(...left: readonly ControllerRpc[]): Fault {
  return changes("controller", "controllerGetCapabilities", (answer) => {
    const message = create(ControllerGetCapabilitiesResponseSchema, answer);
    const capabilities = message.capabilities.filter(
      ({ type }) => type.case !== "rpc" || !left.includes(type.value.type),
    );
    return { ...message, capabilities };
  });
}

function withoutNodeCapability(left: NodeRpc): Fault {
  return changes("node", "nodeGetCapabilities", (answer) => {
    const message = create(NodeGetCapabilitiesResponseSchema, answer);
    const capabilities = message.capabilities.filter(
      ({ type }) => type.case !== "rpc" || type.value.type !== left,
    );
    return { ...message, capabilities };
  });
}

const namedSo = (name: (own: string) => string): Fault =>
  changes("identity", "getPluginInfo", (answer) => ({ ...answer, name: name(answer.name ?? "") }));

/** Cut at a whole character. */
function cut(text: string, bytesMax: number): string {
  let kept = "";
  for (const char of text) {
    if (Buffer.byteLength(kept + char) > bytesMax) return kept;
    kept += char;
  }
  return kept;
}

const isMap = (value: unknown): value is Readonly<Record<string, string>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !("$typeName" in value);

const bytesOf = (map: Readonly<Record<string, string>>) =>
  Object.entries(map).reduce((sum, [key, value]) => sum + Buffer.byteLength(`${key}${value}`), 0);

/** By name. */
export const identityFaults = {
  "plugin-name-empty": namedSo(() => ""),
  "plugin-name-malformed": namedSo(() => "not a name-"),
  "plugin-name-too-long": namedSo((own) => `${own}${"x".repeat(64)}`.slice(0, 64)),
  "plugin-capability-unknown": changes("identity", "getPluginCapabilities", (answer) => {
    const message = create(GetPluginCapabilitiesResponseSchema, answer);
    const unknown = { type: { case: "service" as const, value: { type: Plugin.UNKNOWN } } };
    return { capabilities: [...message.capabilities, unknown] };
  }),
  "plugin-capabilities-change": around("identity", "getPluginCapabilities", () => {
    let calls = 0;
    return async ({ next }) => {
      const message = create(GetPluginCapabilitiesResponseSchema, await next());
      return calls++ % 2 === 0 ? message : { capabilities: message.capabilities.slice(0, -1) };
    };
  }),
  "controller-service-not-declared": changes("identity", "getPluginCapabilities", (answer) => {
    const message = create(GetPluginCapabilitiesResponseSchema, answer);
    const capabilities = message.capabilities.filter(
      ({ type }) => type.case !== "service" || type.value.type !== Plugin.CONTROLLER_SERVICE,
    );
    return { capabilities };
  }),
  "expansion-declared-without-rpc": all(
    withoutControllerCapability(ControllerRpc.EXPAND_VOLUME),
    withoutNodeCapability(NodeRpc.EXPAND_VOLUME),
  ),
  "probe-fails-internal": around("identity", "probe", () => async () => {
    throw new CsiStatusError("INTERNAL", "the driver does not know how it is");
  }),

  "status-without-message": everyFailure(({ code }) => new CsiStatusError(code, "")),
  "every-failure-internal": everyFailure(({ message }) => new CsiStatusError("INTERNAL", message)),
  "secrets-in-error-text": everyFailure(({ code, message }, { request }) => {
    const secrets = Object.values((request.secrets ?? {}) as Readonly<Record<string, string>>);
    const text = secrets.length === 0 ? message : `${message} (${secrets.join(", ")})`;
    return new CsiStatusError(code, text);
  }),
  "unoffered-rpc-internal": all(
    withoutControllerCapability(ControllerRpc.GET_CAPACITY),
    around("controller", "getCapacity", () => async () => {
      throw new CsiStatusError("INTERNAL", "no such thing here");
    }),
  ),
  "pending-call-internal": everyFailure((error, { rpc }) =>
    error.code === "ABORTED" && !rpc.startsWith("list")
      ? new CsiStatusError("INTERNAL", error.message)
      : error,
  ),
  "overlong-strings-accepted": everyCall(({ request, next }) => {
    const entries = Object.entries(request).map(([field, value]) => {
      const isCut = typeof value === "string" && !/path|nodeId|token/i.test(field) && field !== "$typeName";
      return [field, isCut ? cut(value, longText) : value];
    });
    return next(Object.fromEntries(entries));
  }),
  "overlong-maps-accepted": everyCall(({ request, next }) => {
    const entries = Object.entries(request).map(([field, value]) => {
      return [field, isMap(value) && bytesOf(value) > longMap ? {} : value];
    });
    return next(Object.fromEntries(entries));
  }),

  "controller-capability-unknown": changes("controller", "controllerGetCapabilities", (answer) => {
    const message = create(ControllerGetCapabilitiesResponseSchema, answer);
    const unknown = { type: { case: "rpc" as const, value: { type: ControllerRpc.UNKNOWN } } };
    return { capabilities: [...message.capabilities, unknown] };
  }),
  "published-nodes-without-publish": withoutControllerCapability(ControllerRpc.PUBLISH_UNPUBLISH_VOLUME),
  "declared-capacity-unimplemented": around("controller", "getCapacity", () => async () => {
    throw new CsiStatusError("UNIMPLEMENTED", "GetCapacity is not implemented");
  }),
} as const satisfies Partial<Record<FaultName, Fault>>;
