/** The volume subsystem. */

export * from "./framework/node-errors.ts";
export * from "./framework/plugin.ts";
export * from "./framework/ports.ts";
export * from "./framework/spec.ts";
export * from "./framework/volume-host.ts";
export * from "./node/index.ts";
export {
  type AwsEbsNodeHalf,
  type AwsEbsNodeHalfOptions,
  createAwsEbsNodeHalf,
} from "./plugins/aws-ebs/aws-ebs-node-half.ts";
export { type CsiNodeHalf, type CsiNodeHalfOptions, createCsiNodeHalf } from "./plugins/csi/csi-node-half.ts";
