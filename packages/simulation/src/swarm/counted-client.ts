/** A client whose requests are counted. */
import type { KubeClient } from "@longshore/kube";

/** The client, with every request that names an object or a kind reported as it is made. */
export function countedClient(
  kube: KubeClient,
  onRequest: (verb: string, object: string) => void,
): KubeClient {
  const asked = (verb: string, plural: string, name = "") => onRequest(verb, `${plural} ${name}`);
  return {
    ...kube,
    get: (resource, ref, options) => {
      asked("get", resource.plural, ref.name);
      return kube.get(resource, ref, options);
    },
    list: (resource, options) => {
      asked("list", resource.plural);
      return kube.list(resource, options);
    },
    watch: (resource, options) => {
      asked("watch", resource.plural);
      return kube.watch(resource, options);
    },
    update: (resource, object, options) => {
      asked("update", resource.plural, object.metadata?.name);
      return kube.update(resource, object, options);
    },
    patch: (resource, ref, patch, options) => {
      asked("patch", resource.plural, ref.name);
      return kube.patch(resource, ref, patch, options);
    },
  };
}
