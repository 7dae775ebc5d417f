/** How much a pod can rely on (pkg/apis/core/v1/helper/qos). */
import type { Loose } from "./shaping.ts";

/** BestEffort: nothing requested; Guaranteed: every container limited in both and asking for all of it. */
export function qosClass(of: Loose): string {
  const containers: readonly Loose[] = [...(of.containers ?? []), ...(of.initContainers ?? [])];
  const some = (r: Loose | undefined) => r !== undefined && (r.cpu !== undefined || r.memory !== undefined);
  if (!containers.some((c) => some(c.resources?.requests) || some(c.resources?.limits))) return "BestEffort";
  const guaranteed = containers.every(({ resources: { requests = {}, limits = {} } = {} }) =>
    ["cpu", "memory"].every((key) => limits[key] !== undefined && limits[key] === requests[key]),
  );
  return guaranteed ? "Guaranteed" : "Burstable";
}
