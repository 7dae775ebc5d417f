/**
 * HorizontalPodAutoscaler: v2 is the stored form where it is served, and v1 shows of it what it can: the target of
 * the CPU (kubernetes pkg/apis/autoscaling/v1/conversion.go). In 1.20 v1 is all there is here.
 */
import type { KubeObject } from "@longshore/kube";
import { type FieldProblem, invalidValue, requiredValue } from "../../api/errors.ts";
import type { Conversion, Kind } from "../../api/kind.ts";
import type { EmulatedVersion } from "../../versions/emulated-version.ts";
import { type Loose, type LooseObject, withDefaults, withMember } from "./shaping.ts";

const isCpuTarget = (metric: Loose): boolean =>
  metric.type === "Resource" &&
  metric.resource?.name === "cpu" &&
  metric.resource?.target?.type === "Utilization";

/** The share of the CPU that is aimed at where nothing else is said. */
const defaultPercent = 80;

/** Without metrics there would be nothing to go by (pkg/apis/autoscaling/v2/defaults.go). */
function defaultMetrics({ metrics = [] }: Loose): Loose {
  if (metrics.length > 0) return {};
  const target = { type: "Utilization", averageUtilization: defaultPercent };
  return { metrics: [{ type: "Resource", resource: { name: "cpu", target } }] };
}

const conversion: Conversion = {
  toStored: (object, version) =>
    version !== "v1"
      ? object
      : withMember(object as LooseObject, "spec", (spec) => {
          const { targetCPUUtilizationPercentage: percent, ...rest } = spec;
          if (percent === undefined) return rest;
          const target = { type: "Utilization", averageUtilization: percent };
          return { ...rest, metrics: [{ type: "Resource", resource: { name: "cpu", target } }] };
        }),
  fromStored: (object, version) =>
    version !== "v1"
      ? object
      : withMember(object as LooseObject, "spec", (spec) => {
          const { metrics = [], behavior: _, ...rest } = spec;
          const percent = metrics.find(isCpuTarget)?.resource.target.averageUtilization;
          return percent === undefined ? rest : { ...rest, targetCPUUtilizationPercentage: percent };
        }),
};

function validate(object: KubeObject): FieldProblem[] {
  const { minReplicas, maxReplicas = 0, scaleTargetRef = {} } = (object as LooseObject).spec ?? {};
  const problems: FieldProblem[] = [];
  if (minReplicas < 1) {
    problems.push(invalidValue("spec.minReplicas", minReplicas, "must be greater than or equal to 1"));
  }
  if (maxReplicas < 1) problems.push(invalidValue("spec.maxReplicas", maxReplicas, "must be greater than 0"));
  if (maxReplicas < minReplicas) {
    problems.push(
      invalidValue("spec.maxReplicas", maxReplicas, "must be greater than or equal to `minReplicas`"),
    );
  }
  if (!scaleTargetRef.kind) problems.push(requiredValue("spec.scaleTargetRef.kind"));
  if (!scaleTargetRef.name) problems.push(requiredValue("spec.scaleTargetRef.name"));
  return problems;
}

/** The kind HorizontalPodAutoscaler, as that version of Kubernetes has it. */
export const horizontalPodAutoscaler = (version: EmulatedVersion): Kind => {
  const newer = version.serves("autoscaling", "v2", "HorizontalPodAutoscaler");
  return {
    group: "autoscaling",
    versions: newer ? ["v2", "v1"] : ["v1"],
    kind: "HorizontalPodAutoscaler",
    plural: "horizontalpodautoscalers",
    shortNames: ["hpa"],
    categories: ["all"],
    namespaced: true,
    statusSubresource: true,
    ...(newer ? { conversion } : {}),
    defaults: (object) =>
      withMember(object as LooseObject, "spec", (spec) =>
        withDefaults(spec, {
          minReplicas: 1,
          ...(newer ? defaultMetrics(spec) : { targetCPUUtilizationPercentage: defaultPercent }),
        }),
      ),
    prepareCreate: (object) =>
      ({ ...object, status: { currentReplicas: 0, desiredReplicas: 0 } }) as KubeObject,
    validate,
  };
};
