/** The PodDisruptionBudgets of a cluster, in whichever version it serves them. */
import { type KubeClient, type PodDisruptionBudget, resources, type Stored } from "@longshore/kube";

/** All budgets that cover anything; none where budgets are not served. */
export async function listBudgets(
  kube: KubeClient,
  signal: AbortSignal,
): Promise<readonly Stored<PodDisruptionBudget>[]> {
  const version = await kube.servedVersion(resources.podDisruptionBudgets, { signal });
  if (version === undefined) return [];
  const { items } = await kube.list(resources.podDisruptionBudgets, { signal });
  // An empty selector covers every pod in policy/v1, and none in policy/v1beta1.
  return version === "v1beta1" ? items.filter(({ spec }) => !isEmpty(spec?.selector)) : items;
}

function isEmpty(
  selector: { matchLabels?: object; matchExpressions?: readonly unknown[] } | undefined,
): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  return Object.keys(matchLabels).length === 0 && matchExpressions.length === 0;
}
