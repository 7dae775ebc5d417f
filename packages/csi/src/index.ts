/** Talking CSI. */
export * from "./connection.ts";
export { CsiEndpointError, socketPathOf } from "./endpoint.ts";
export * from "./errors.ts";
export * from "./gen/csi_pb.ts";
export {
  type InProcessCall,
  type InProcessCsi,
  type InProcessHook,
  inProcessCsi,
  lostReply,
} from "./in-process.ts";
