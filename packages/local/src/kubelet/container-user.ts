/** The user of a container, from the security contexts of pod and container. Pure. Source: core/v1 PodSecurityContext, SecurityContext. */
import type { Container, Pod, Stored } from "@longshore/kube";
import type { ContainerUser, NodeUser } from "../containers/pod-runtime.ts";
import { PodSpecError } from "./pod-spec-error.ts";

/**
 * The container's user and groups; undefined: those of the node agent. What the container says wins over what the pod says.
 *
 * @param field the field of the pod's spec that holds the container
 * @param node the user that containers have unless they ask for another
 * @throws PodSpecError when it asks for a user that this node cannot give it, or for none of root's rights where it has them
 */
export function containerUserOf(
  pod: Stored<Pod>,
  { container, field }: { readonly container: Container; readonly field: string },
  node: NodeUser,
): ContainerUser | undefined {
  const ofPod = pod.spec?.securityContext ?? {};
  const ofContainer = container.securityContext ?? {};
  const refuse = (name: "runAsUser" | "runAsGroup" | "runAsNonRoot", why: string) => {
    const holder = ofContainer[name] === undefined ? "spec" : field;
    const of = `pod ${pod.metadata.namespace ?? "default"}/${pod.metadata.name}`;
    return new PodSpecError(`${of}, ${holder}.securityContext.${name}: ${why}`);
  };
  const uid = ofContainer.runAsUser ?? ofPod.runAsUser;
  const gid = ofContainer.runAsGroup ?? ofPod.runAsGroup;
  if ((ofContainer.runAsNonRoot ?? ofPod.runAsNonRoot) === true && (uid ?? node.uid) === 0) {
    throw refuse("runAsNonRoot", "the container would run as root: set runAsUser to another user's number");
  }
  if (!node.mayChange) {
    const why = (what: string, asked: number, own: number) =>
      `${asked} is not the ${what} of this node's agent, ${own}, which cannot change it: leave it out, or bring the cluster up as root`;
    if (uid !== undefined && uid !== node.uid) throw refuse("runAsUser", why("user", uid, node.uid));
    if (gid !== undefined && gid !== node.gid) throw refuse("runAsGroup", why("group", gid, node.gid));
    return undefined;
  }
  const { supplementalGroups = [], fsGroup } = ofPod;
  const groups = [...new Set([...supplementalGroups, ...(fsGroup === undefined ? [] : [fsGroup])])];
  if (uid === undefined && gid === undefined && groups.length === 0) return undefined;
  return { uid: uid ?? node.uid, ...(gid === undefined ? {} : { gid }), groups };
}
