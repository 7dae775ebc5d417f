/** An embedded Kubernetes API server: in memory or durable, in process or over HTTPS. */

export { adminUser, nodeUser, type UserInfo } from "./api/api-request.ts";
export { type ApiServer, type ApiServerOptions, createApiServer } from "./api-server.ts";
export { parseTokenFile, TokenFileError } from "./authentication/parse-token-file.ts";
export type { StaticToken } from "./authentication/token-authenticator.ts";
export { type AuthorizationMode, authorizationModes } from "./authorization/authorization-modes.ts";
export {
  type ClusterCredentials,
  ensureCredentials,
  kubeconfig,
  writePrivateFile,
} from "./http/cluster-credentials.ts";
export { type HttpsOptions, type HttpsServer, serveHttps } from "./http/https-server.ts";
export {
  type CertificateRequest,
  createAuthority,
  issueCertificate,
  type KeyPair,
} from "./http/issue-certificate.ts";
export { DefinitionFileError, readDefinitions } from "./http/read-definitions.ts";
export type { RequestLimits } from "./http/request-limits.ts";
export { type RunApiServerOptions, type RunningApiServer, runApiServer } from "./run-api-server.ts";
export {
  startTestApiServer,
  type TestApiServer,
  type TestApiServerOptions,
} from "./start-test-api-server.ts";
export { type BackupSummary, backupStore, restoreStore } from "./storage/disk/backup-store.ts";
export { type DurableStoreOptions, openDurableStore } from "./storage/disk/open-durable-store.ts";
export {
  type MemoryBackup,
  type MemoryStore,
  memoryStore,
  restoredMemoryStore,
  type StoreOptions,
} from "./storage/object-store.ts";
export { type Store, StoreError } from "./storage/store.ts";
export {
  type EmulatedVersion,
  EmulatedVersionError,
  emulatedVersion,
} from "./versions/emulated-version.ts";
