/** The `scale` sub-resource of workloads: autoscaling/v1 Scale over `spec.replicas`. */
import type { KubeObject, LabelSelector, Stored } from "@longshore/kube";
import { labelSelectorMatcher } from "@longshore/kube/basics";
import type { ObjectAnswer } from "../api/api-request.ts";
import { apiError, badRequest, conflict, invalid, invalidValue, methodNotSupported } from "../api/errors.ts";
import type { Kind, ScalePaths } from "../api/kind.ts";
import { own } from "../api/own.ts";
import { firstValueAt, membersOf, withValueAt } from "../custom/json-path.ts";
import { applyJsonPatch } from "../patch/apply-json-patch.ts";
import { applyMergePatch } from "../patch/apply-merge-patch.ts";
import { bodyOfKind } from "./body-of-kind.ts";
import { mutatedByWebhooks } from "./body-through-webhooks.ts";
import { existing, groupResource, type KindRequest, type RegistryContext } from "./registry-context.ts";
import { replace } from "./write.ts";

interface Workload extends KubeObject {
  readonly spec?: { readonly replicas?: number; readonly selector?: LabelSelector };
  readonly status?: { readonly replicas?: number };
}

interface Scale extends KubeObject {
  readonly spec?: { readonly replicas?: number };
}

/** GET, PUT and PATCH of the scale. */
export function scale(context: RegistryContext, request: KindRequest): ObjectAnswer {
  const workload = existing(request) as Stored<Workload>;
  const { of } = request;
  switch (request.verb) {
    case "get":
      return { type: "object", code: 200, object: scaleOf(of, workload) };
    case "update":
      return setScale(context, request, workload, bodyOfKind(request, "Scale") as Scale);
    case "patch": {
      const patch = request.patchType === "json" ? applyJsonPatch : applyMergePatch;
      return setScale(context, request, workload, patch(scaleOf(of, workload), request.body) as Scale);
    }
    default:
      throw methodNotSupported(groupResource(request.of), request.verb);
  }
}

function setScale(
  context: RegistryContext,
  request: KindRequest,
  workload: Stored<Workload>,
  given: Scale,
): ObjectAnswer {
  const wanted = mutated(context, request, workload, given);
  const replicas = wanted.spec?.replicas ?? 0;
  const { name } = workload.metadata;
  if (!Number.isInteger(replicas)) throw badRequest("spec.replicas must be an integer");
  if (replicas < 0) {
    throw invalid("autoscaling", "Scale", name, [
      invalidValue("spec.replicas", replicas, "must be greater than or equal to 0"),
    ]);
  }
  const { resourceVersion = "" } = wanted.metadata ?? {};
  if (resourceVersion !== "" && resourceVersion !== workload.metadata.resourceVersion) {
    throw conflict(groupResource(request.of), name);
  }
  const { scalePaths } = request.of;
  const next =
    scalePaths === undefined
      ? { ...workload, spec: { ...workload.spec, replicas } }
      : (withValueAt(workload, membersOf(scalePaths.specReplicasPath), replicas) as Stored<Workload>);
  if (context.webhooks !== undefined) {
    const scales = { object: scaleOf(request.of, next), old: scaleOf(request.of, workload) };
    context.webhooks.validate({ operation: "UPDATE", request, ...scales, isBody: true });
  }
  // Webhooks have seen the scale: of the workload they are not asked (apps/deployment/storage ScaleREST).
  const { webhooks: _, ...withoutWebhooks } = context;
  const { object } = replace(withoutWebhooks, request, workload, next, false);
  return { type: "object", code: 200, object: scaleOf(request.of, object as Stored<Workload>) };
}

/** The scale as the webhooks leave it. */
function mutated(
  context: RegistryContext,
  request: KindRequest,
  workload: Stored<Workload>,
  given: Scale,
): Scale {
  if (context.webhooks === undefined) return given;
  const old = scaleOf(request.of, workload);
  const { apiVersion, kind } = old;
  const object = { ...given, ...(apiVersion && { apiVersion }), ...(kind && { kind }) };
  const write = { operation: "UPDATE", request, object, old, isBody: true } as const;
  return mutatedByWebhooks(context.webhooks, write) as Scale;
}

function scaleOf(of: Kind, workload: Stored<Workload>): KubeObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = workload.metadata;
  const { selector } = workload.spec ?? {};
  if (of.scalePaths !== undefined) return customScale(of, of.scalePaths, workload);
  return own({
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas: workload.spec?.replicas ?? 0 },
    status: {
      replicas: workload.status?.replicas ?? 0,
      ...(selector === undefined ? {} : { selector: labelSelectorMatcher(selector).toString() }),
    },
  } as KubeObject);
}

/** The scale of a custom resource, from where its definition says that it is (registry/customresource scaleFromCustomResource). */
function customScale(of: Kind, paths: ScalePaths, object: Stored): KubeObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const replicas = firstValueAt(object, paths.specReplicasPath);
  if (typeof replicas !== "number") {
    const why = `the spec replicas field ${JSON.stringify(paths.specReplicasPath)} does not exist`;
    throw apiError(500, "InternalError", `Internal error occurred: ${why}`, { causes: [{ message: why }] });
  }
  const current = firstValueAt(object, paths.statusReplicasPath);
  const selector = paths.labelSelectorPath ? firstValueAt(object, paths.labelSelectorPath) : undefined;
  return own({
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name, ...(of.namespaced ? { namespace } : {}), uid, resourceVersion, creationTimestamp },
    spec: { replicas },
    status: {
      replicas: typeof current === "number" ? current : 0,
      ...(typeof selector === "string" && selector !== "" ? { selector } : {}),
    },
  } as KubeObject);
}
