/**
 * POST to a pod's `eviction`: deletes it if the disruption budgets allow (core/pod/storage
 * EvictionREST). Bodies of policy/v1 and policy/v1beta1 are taken alike.
 */
import {
  apiTime,
  isDeleting,
  isPodTerminal,
  type KubeObject,
  type LabelSelector,
  labelSelectorMatches,
  type Pod,
  type PodDisruptionBudget,
  type Stored,
} from "@longshore/kube/basics";
import type { ObjectAnswer } from "../api/api-request.ts";
import { apiError, badRequest, internalError, methodNotSupported } from "../api/errors.ts";
import { own } from "../api/own.ts";
import { bodyOfKind } from "./body-of-kind.ts";
import { deleteObject, isDry } from "./delete-object.ts";
import { existing, groupResource, type KindRequest, type RegistryContext } from "./registry-context.ts";

interface Eviction extends KubeObject {
  readonly deleteOptions?: { readonly dryRun?: readonly string[] };
}

/** Budgets remember at most so many pods whose eviction the disruption controller has not seen yet. */
const disruptedPodsMax = 2000;

/** Deletes a pod if its disruption budget allows. */
export function evictPod(context: RegistryContext, request: KindRequest): ObjectAnswer {
  if (request.verb !== "create") throw methodNotSupported(groupResource(request.of), request.verb);
  const eviction = bodyOfKind(request, "Eviction") as Eviction;
  if (eviction.metadata?.name !== undefined && eviction.metadata.name !== request.name) {
    throw badRequest("name in URL does not match name in Eviction object");
  }
  const pod = existing(request) as Stored<Pod>;
  if (!needsNoBudget(pod)) {
    const budgets = budgetsOf(context, pod);
    if (budgets.length > 1) {
      throw internalError(
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
      );
    }
    const [budget] = budgets;
    if (budget !== undefined && !(notCounted(pod) && letsUnhealthyGo(context, budget))) {
      // Before the deletion, as the reference: a failed delete wastes one disruption but never exceeds the budget.
      spend(context, budget, pod, isDry(request, eviction.deleteOptions ?? {}));
    }
  }
  // Webhooks were asked about the eviction; of the deletion that it is, they are not (EvictionREST).
  const { webhooks: _, ...withoutWebhooks } = context;
  deleteObject(withoutWebhooks, { ...request, verb: "delete", body: { ...eviction.deleteOptions } });
  const success = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
  return { type: "object", code: 201, object: own(success as KubeObject) };
}

/** Pods that do not run, or are already being deleted, may be evicted without a budget. */
function needsNoBudget(pod: Stored<Pod>): boolean {
  return isPodTerminal(pod) || pod.status?.phase === "Pending" || isDeleting(pod);
}

function notCounted(pod: Stored<Pod>): boolean {
  return pod.status?.conditions?.find((c) => c.type === "Ready")?.status !== "True";
}

/** A pod that is not ready may go where its budget says so, or has all the healthy pods that it wants. */
function letsUnhealthyGo({ version }: RegistryContext, budget: PodDisruptionBudget): boolean {
  const policy = version.has("unhealthyPodEviction") ? budget.spec?.unhealthyPodEvictionPolicy : undefined;
  return policy === "AlwaysAllow" || budgetIsHealthy(budget);
}

function budgetIsHealthy({ status }: PodDisruptionBudget): boolean {
  return (status?.desiredHealthy ?? 0) > 0 && (status?.currentHealthy ?? 0) >= (status?.desiredHealthy ?? 0);
}

function budgetsOf(context: RegistryContext, pod: Stored<Pod>): readonly Stored<PodDisruptionBudget>[] {
  const all = context.store.table("poddisruptionbudgets.policy").list(pod.metadata.namespace ?? "");
  return (all as readonly Stored<PodDisruptionBudget>[]).filter((budget) =>
    selects(context, budget.spec?.selector, pod.metadata.labels ?? {}),
  );
}

/** An empty selector chooses all pods in policy/v1, and none in policy/v1beta1, which is all that 1.20 has. */
function selects(
  { version }: RegistryContext,
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>>,
): boolean {
  if (selector === undefined) return false;
  const { matchLabels = {}, matchExpressions = [] } = selector;
  if (Object.keys(matchLabels).length === 0 && matchExpressions.length === 0) {
    return version.has("emptyBudgetSelectorMatchesAll");
  }
  return labelSelectorMatches(selector, labels);
}

/** Takes one disruption from the budget. @throws KubeApiError 429 when it allows none */
function spend(
  context: RegistryContext,
  budget: Stored<PodDisruptionBudget>,
  pod: Stored<Pod>,
  dry: boolean,
): void {
  const status = budget.status ?? ({} as NonNullable<PodDisruptionBudget["status"]>);
  if ((status.observedGeneration ?? 0) < (budget.metadata.generation ?? 0)) {
    throw tooMany("Cannot evict pod as it would violate the pod's disruption budget.", {
      reason: "DisruptionBudget",
      message: `The disruption budget ${budget.metadata.name} is still being processed by the server.`,
    });
  }
  const allowed = status.disruptionsAllowed ?? 0;
  if (allowed < 0 || Object.keys(status.disruptedPods ?? {}).length > disruptedPodsMax) {
    throw apiError(403, "Forbidden", `pod disruption budget ${budget.metadata.name} has a broken status`);
  }
  if (allowed === 0) {
    throw tooMany("Cannot evict pod as it would violate the pod's disruption budget.", {
      reason: "DisruptionBudget",
      message: `The disruption budget ${budget.metadata.name} needs ${status.desiredHealthy ?? 0} healthy pods and has ${status.currentHealthy ?? 0} currently`,
    });
  }
  if (dry) return;
  const disruptedPods = { ...status.disruptedPods, [pod.metadata.name]: apiTime(context.clock.now()) };
  const next = { ...budget, status: { ...status, disruptionsAllowed: allowed - 1, disruptedPods } };
  context.store.commit([
    {
      resource: "poddisruptionbudgets.policy",
      namespace: budget.metadata.namespace ?? "",
      name: budget.metadata.name,
      object: next as KubeObject,
    },
  ]);
}

function tooMany(message: string, cause: { reason: string; message: string }): Error {
  return apiError(429, "TooManyRequests", message, { causes: [cause] });
}
