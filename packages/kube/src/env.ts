/** What every component that talks to Kubernetes is given. */
import type { RuntimeEnv } from "@longshore/runtime";
import type { KubeClient } from "./client.ts";

/** The seams of a component that talks to Kubernetes. */
export interface KubeEnv extends RuntimeEnv {
  readonly kube: KubeClient;
}
