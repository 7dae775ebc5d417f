/**
 * What a program needs that puts a transport of its own under the typed calls, and looks at every message that passes: an
 * entry beside the root, since callers and drivers need none of it (docs/decisions/0015-entries-beside-the-root.md).
 */
export {
  type DescEnum,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  ScalarType,
} from "@bufbuild/protobuf";
export { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
export { type StreamTransport, snapshotMetadataOver } from "./calls/stream-transport.ts";
export { clientOver, type UnaryTransport } from "./calls/unary-transport.ts";
export { formsOfSecret, holdsSecret, maskSecrets, type SecretForms } from "./secrets/mask-secrets.ts";
export { isSecretField, type RequestSecret, secretsOfRequest } from "./secrets/request-secrets.ts";
