/** Talking CSI. */
export {
  create,
  type DescMessage,
  equals,
  fromJson,
  type JsonValue,
  type MessageInitShape,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
export * from "./connection.ts";
export { CsiEndpointError, socketPathOf } from "./endpoint.ts";
export * from "./errors.ts";
export * from "./gen/csi_pb.ts";
export { grpcConnector } from "./grpc-client.ts";
export { grpcListener } from "./grpc-server.ts";
export {
  type InProcessCall,
  type InProcessCsi,
  type InProcessHook,
  inProcessCsi,
  lostReply,
} from "./in-process.ts";
export { instrumentedConnection, instrumentedConnector } from "./instrumented.ts";
export { type CallInterceptor, interceptCalls } from "./intercepted.ts";
export { forwardingServices, observedServices, type ServedCall } from "./observed-services.ts";
export { EndlessListError, entriesOfPages, type ListPage } from "./pages.ts";
export { capabilitiesOf, type DriverCapabilities, driverNameOf, waitUntilReady } from "./probe.ts";
export { redact } from "./redact.ts";
export { checkAbsolutePath, checkName, checkRequest, type RequestLimits } from "./request-checks.ts";
