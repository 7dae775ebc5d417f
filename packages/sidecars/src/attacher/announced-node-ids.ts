/**
 * The node id that a kubelet without CSINodes announces on its Node (annotation `csi.volume.kubernetes.io/nodeid`,
 * deprecated; CSI volume plugin design). Asked for only where a CSINode is missing, so it is not cached.
 */
import { KubeApiError, type Node, resources } from "@longshore/kube";
import type { SidecarEnv } from "../common/sidecar-env.ts";

/** Node annotation: JSON object from driver name to node id. */
const announcedAnnotation = "csi.volume.kubernetes.io/nodeid";

/** The id that the Node announces for `driver`; undefined when it announces none, or nothing readable. */
export function announcedNodeIdOf(node: Node | undefined, driver: string): string | undefined {
  try {
    const ids: unknown = JSON.parse(node?.metadata?.annotations?.[announcedAnnotation] ?? "{}");
    if (ids === null || typeof ids !== "object" || !Object.hasOwn(ids, driver)) return undefined;
    const id: unknown = (ids as Readonly<Record<string, unknown>>)[driver];
    return typeof id === "string" && id !== "" ? id : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns a function that reads the id from the Node. After the first 403 it reads no more Nodes: the reference's roles
 * do not grant this right.
 */
export function announcedNodeIds(
  env: Pick<SidecarEnv, "kube" | "logger">,
  driver: string,
): (nodeName: string, signal: AbortSignal) => Promise<string | undefined> {
  let isForbidden = false;
  return async (name, signal) => {
    if (isForbidden) return undefined;
    try {
      return announcedNodeIdOf(await env.kube.get(resources.nodes, { name }, { signal }), driver);
    } catch (error) {
      if (!(error instanceof KubeApiError) || error.code !== 403) throw error;
      isForbidden = true;
      env.logger.info("nodes without a CSINode are not looked up: no right to get nodes", { error });
      return undefined;
    }
  };
}
