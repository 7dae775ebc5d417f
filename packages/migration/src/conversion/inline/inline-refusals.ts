/** Why the inline volumes of one object do not become claims: pure functions. Each says what to do. */
import type { Pod, Stored } from "@longshore/kube";
import type { Refusal } from "../conversion-types.ts";
import type { TemplateWorkload } from "./inline-types.ts";

/** The kinds whose template the API server lets change, and whose replicas can be taken to none and back. */
const kinds: ReadonlySet<string> = new Set(["Deployment", "StatefulSet", "ReplicaSet"]);

const remedies: Readonly<Record<string, readonly [reason: string, remedy: string]>> = {
  Pod: [
    "the volumes of a pod cannot be changed",
    "translate its manifest with claims in place of the disks, delete it, and create the new one",
  ],
  Job: [
    "the template of a Job cannot be changed",
    "let it end, translate its manifest with claims in place of the disks, and create that",
  ],
  CronJob: [
    "its jobs may run at the same time and cannot be waited for",
    "suspend it, let its jobs end, and apply its manifest translated with claims in place of the disks",
  ],
  DaemonSet: [
    "the pods of every node would share one claim, and it has no replicas to take away meanwhile",
    "make a claim by hand whose access modes allow many nodes, and name that in the template",
  ],
  ReplicationController: [
    "it cannot be converted while it exists",
    "put a Deployment in its place, and convert that",
  ],
};

/** An object of a kind that cannot be converted, or one whose template is another's. */
export function kindRefusal({ kind = "", metadata }: Stored, object: string): Refusal | undefined {
  const owner = metadata.ownerReferences?.find((each) => each.controller === true);
  if (owner !== undefined) {
    return {
      code: "owner-needs-action",
      object,
      field: "metadata.ownerReferences",
      reason: `${owner.kind} ${owner.name} owns it and writes its template again`,
      remedy: `change the volumes in ${owner.kind} ${owner.name}: translate the manifest with claims in place of the disks`,
    };
  }
  if (kinds.has(kind)) return undefined;
  const [reason, remedy] = remedies[kind] ?? ["it has no replicas to take away meanwhile", "leave it out"];
  return { code: "owner-needs-action", object, field: "kind", reason, remedy };
}

/** What the state of the workload has against it. @param users pods that have the disks */
export function stateRefusals(
  stored: Stored,
  object: string,
  users: readonly Stored<Pod>[],
  { scaleDown = false, wait = false }: { readonly scaleDown?: boolean; readonly wait?: boolean },
): readonly Refusal[] {
  const { metadata } = stored;
  const { spec } = stored as Stored<TemplateWorkload>;
  if (metadata.deletionTimestamp !== undefined) {
    const remedy = "let it go, or leave it out";
    const field = "metadata.deletionTimestamp";
    return [{ code: "changed-by-others", object, field, reason: "it is being deleted", remedy }];
  }
  if (spec?.paused === true) {
    const reason = "it is paused: its pods would come back from the old template";
    return [{ code: "owner-needs-action", object, field: "spec.paused", reason, remedy: "resume it first" }];
  }
  const { partition = 0 } = spec?.updateStrategy?.rollingUpdate ?? {};
  if (partition > 0) {
    const field = "spec.updateStrategy.rollingUpdate.partition";
    const reason = `it is ${partition}: pods below it would come back from the old template`;
    return [{ code: "owner-needs-action", object, field, reason, remedy: "set it to 0 first" }];
  }
  const { replicas = 1 } = spec ?? {};
  if (wait || (replicas === 0 && users.length === 0) || (scaleDown && replicas > 0)) return [];
  const names = users.map((pod) => `Pod ${pod.metadata.namespace}/${pod.metadata.name}`);
  const reason =
    names.length > 0 ? `its disks are in use by ${names.join(", ")}` : `it has ${replicas} replicas`;
  const remedy = "scale it to 0, or let the run do so: `scaleDown`";
  return [{ code: "volume-in-use", object, field: "spec.replicas", reason, remedy }];
}
