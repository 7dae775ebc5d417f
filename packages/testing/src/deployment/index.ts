/** Deployments of every form, and a client that records which access is used. */
export { deployForms, everything, minimal } from "./forms.ts";
export { type AccessLog, watchedClient } from "./watched-client.ts";
