/** A sidecar that dies at a chosen point between its calls. */
import type { CsiConnection } from "@longshore/csi";
import { type Life, mortalClient, mortalSeam } from "@longshore/testing/kube";
import type { SidecarEnv } from "../common/sidecar-env.ts";

/** The seams of a component with this life: every API request and every CSI call is one of its calls. */
export function mortal(env: SidecarEnv, life: Life): SidecarEnv {
  return { ...env, kube: mortalClient(env.kube, life), csi: mortalConnection(env.csi, life) };
}

function mortalConnection(csi: CsiConnection, life: Life): CsiConnection {
  const service = <T extends object>(client: T): T => mortalSeam(client, life);
  return {
    identity: service(csi.identity),
    controller: service(csi.controller),
    groupController: service(csi.groupController),
    snapshotMetadata: csi.snapshotMetadata,
    node: service(csi.node),
    onLost: (listener) => csi.onLost(listener),
    close: () => csi.close(),
  };
}
