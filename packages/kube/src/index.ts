/** The controller core: client, objects and resources. */
export type * from "./api-types.ts";
export * from "./client.ts";
export * from "./objects.ts";
export { apiVersionOf, type Resource, resources } from "./resources.ts";
