/** Bringing objects to the cluster with server-side apply, after a look at what that would change. */
import {
  apiVersionOf,
  isInvalid,
  isNotFound,
  type KubeObject,
  type Resource,
  resources,
  type Stored,
} from "@longshore/kube";
import { fieldText } from "../deploy-fields.ts";
import { resourceOf } from "../deployed-kinds.ts";
import { assertOurs, nameOf } from "./deployed-objects.ts";
import { persistently, type Rollout, RolloutError } from "./rollout.ts";

/** In whose name fields are managed. */
const fieldManager = "longshore";

/** What applying an object would do. */
export type Change = "create" | "change" | "none";

/** Asks the server what applying the object would do, without doing it. @throws RolloutError when it would be refused */
export async function changeOf(
  rollout: Rollout,
  driver: string,
  object: KubeObject,
  adopt = false,
): Promise<Change> {
  const { kube } = rollout.env;
  const resource = resourceOf(object);
  const ref = refOf(resource, object);
  const current = await persistently(rollout, (signal) => kube.get(resource, ref, { signal }));
  if (current !== undefined) assertOurs({ resource, object: current }, driver, adopt);
  try {
    const after = await applied(rollout, resource, object, true);
    if (current === undefined) return "create";
    return sameObject(current, after) ? "none" : "change";
  } catch (error) {
    // Its namespace, or the role that it refers to, comes with it.
    if (isNotFound(error)) return "create";
    if (!isInvalid(error)) throw error;
    throw new RolloutError(`${nameOf({ resource, object })} is refused${remedyFor(resource)}`, {
      cause: error,
    });
  }
}

/** Applies the object. */
export async function apply(rollout: Rollout, object: KubeObject): Promise<void> {
  await applied(rollout, resourceOf(object), object, false);
}

async function applied(
  rollout: Rollout,
  resource: Resource<KubeObject>,
  object: KubeObject,
  dryRun: boolean,
): Promise<Stored> {
  const { kube } = rollout.env;
  return persistently(rollout, async (signal) => {
    const version = await kube.servedVersion(resource, { signal });
    if (version === undefined) {
      throw new RolloutError(`the cluster has no ${resource.kind}${missingKindRemedy(resource)}`);
    }
    const body = { ...object, apiVersion: apiVersionOf(resource, version) };
    // Forced: a field that another tool has set since becomes what was asked for.
    const patch = { type: "apply", body, fieldManager, force: true } as const;
    return kube.patch(resource, refOf(resource, object), dryRun ? { ...patch, dryRun } : patch, { signal });
  });
}

function missingKindRemedy({ group }: Resource<KubeObject>): string {
  return group.endsWith("snapshot.storage.k8s.io")
    ? `: install the definitions of snapshots first, or leave out ${fieldText("snapshot")}`
    : "";
}

/** What cannot be changed in place, and how to get there. */
function remedyFor(resource: Resource<KubeObject>): string {
  if (resource.kind === resources.storageClasses.kind) {
    return ": what a class asks of the driver cannot be changed: give the new one another name, or delete the old one, whose volumes stay";
  }
  if (resource.kind === resources.csiDrivers.kind) {
    return ": delete it once no pod uses a volume of the driver, and upgrade again";
  }
  return "";
}

function refOf(resource: Resource<KubeObject>, object: KubeObject) {
  const { name = "", namespace } = object.metadata ?? {};
  return resource.namespaced && namespace !== undefined ? { name, namespace } : { name };
}

/** Whether both are the same but for what every write changes. */
function sameObject(a: KubeObject, b: KubeObject): boolean {
  return canonical(withoutBookkeeping(a)) === canonical(withoutBookkeeping(b));
}

function withoutBookkeeping({ metadata = {}, ...rest }: KubeObject): object {
  const { managedFields: _, resourceVersion: __, generation: ___, ...kept } = metadata;
  return { ...rest, metadata: kept };
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    member !== null && typeof member === "object" && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
