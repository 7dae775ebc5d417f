/** What every component that talks to Kubernetes is given. */
import type { RuntimeEnv } from "@longshore/runtime";
import type { KubeClient } from "./client.ts";
import type { OwnWrites } from "./own-writes/seen.ts";

/** The seams of a component that talks to Kubernetes. */
export interface KubeEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  /** What the component wrote, where that is remembered (`trackWrites`): its queues wait until their caches show it. */
  readonly ownWrites?: OwnWrites;
}
