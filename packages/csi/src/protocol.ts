/**
 * Every schema, enumeration, service and option of csi.proto, as it is generated: an entry beside the root, which has those that
 * callers and drivers work with (docs/decisions/0015-entries-beside-the-root.md).
 */
export * from "./gen/csi_pb.ts";
