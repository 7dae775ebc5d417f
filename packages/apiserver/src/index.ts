/** An embedded Kubernetes API server: in memory or durable, in process or over HTTPS. */
export { type ApiServer, type ApiServerOptions, createApiServer } from "./api-server.ts";
export { adminUser, type UserInfo } from "./registry/request.ts";
export { memoryStore } from "./storage/object-store.ts";
export { type Store, StoreError } from "./storage/store.ts";
