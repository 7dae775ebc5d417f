/** Which rights a client asks for, held against those that a conversion prints. */
import type { KubeClient, KubeObject, Resource } from "@longshore/kube";
import { conversionRoles } from "@longshore/migration";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** The client, and what it is asked for, as `delete /persistentvolumeclaims`. */
export function recordingClient(kube: KubeClient): {
  readonly kube: KubeClient;
  readonly asked: ReadonlySet<string>;
} {
  const asked = new Set<string>();
  const recording = new Proxy(kube, {
    get(target, name) {
      const method = Reflect.get(target, name) as (...args: readonly unknown[]) => unknown;
      if (typeof method !== "function") return method;
      return (resource: Resource<KubeObject>, ...args: readonly unknown[]) => {
        const verb = name === "updateStatus" ? "update" : String(name);
        if (verb !== "servedVersion") asked.add(`${verb} ${resource.group}/${resource.plural}`);
        return method.call(target, resource, ...args);
      };
    },
  });
  return { kube: recording, asked };
}

/** Those that no printed role has. */
export function missingRights(asked: Iterable<string>): readonly string[] {
  const allowed = new Set(
    conversionRoles().flatMap((role) =>
      (role as unknown as { rules: readonly Rule[] }).rules.flatMap(({ apiGroups, resources, verbs }) =>
        apiGroups.flatMap((group) =>
          resources.flatMap((plural) => verbs.map((verb) => `${verb} ${group}/${plural}`)),
        ),
      ),
    ),
  );
  return [...asked].filter((each) => !allowed.has(each));
}
