/**
 * HorizontalPodAutoscaler: v2 is the stored form, of which v1 shows fields and annotations (`autoscaler-v1-form.ts`).
 * In 1.20 v1 is all that is served.
 */
import type { KubeObject } from "@longshore/kube";
import type { Kind } from "../../api/kind.ts";
import type { EmulatedVersion } from "../../versions/emulated-version.ts";
import { autoscalerProblems, autoscalerStatusProblems } from "./autoscaler-problems.ts";
import { autoscalerConversion } from "./autoscaler-v1-form.ts";
import { type Loose, type LooseObject, withDefaults, withMember } from "./shaping.ts";

/** The share of the CPU that is aimed at where nothing else is said, in percent. */
const defaultPercent = 80;

/** Without metrics there would be nothing to go by (pkg/apis/autoscaling/v2/defaults.go). */
function withMetrics(spec: Loose): Loose {
  if ((spec.metrics ?? []).length > 0) return spec;
  const target = { type: "Utilization", averageUtilization: defaultPercent };
  return { ...spec, metrics: [{ type: "Resource", resource: { name: "cpu", target } }] };
}

const fast = { type: "Percent", value: 100, periodSeconds: 15 };
const scaleUpRules = {
  stabilizationWindowSeconds: 0,
  selectPolicy: "Max",
  policies: [{ type: "Pods", value: 4, periodSeconds: 15 }, fast],
};
/** How long is looked back before it scales down is a setting of the controller. */
const scaleDownRules = { selectPolicy: "Max", policies: [fast] };

/** Who says something of the behavior gets the rest of it (pkg/apis/autoscaling/v2/defaults.go, SetDefaults_HorizontalPodAutoscalerBehavior). */
function withBehavior(spec: Loose): Loose {
  return withMember(spec, "behavior", ({ scaleUp, scaleDown }) => ({
    scaleUp: withDefaults(scaleUp, scaleUpRules),
    scaleDown: withDefaults(scaleDown, scaleDownRules),
  }));
}

/** The kind HorizontalPodAutoscaler, as that version of Kubernetes has it. */
export const horizontalPodAutoscaler = (version: EmulatedVersion): Kind => {
  const newer = version.serves("autoscaling", "v2", "HorizontalPodAutoscaler");
  return {
    group: "autoscaling",
    versions: newer ? ["v2", "v1"] : ["v1"],
    storageVersion: "v2",
    kind: "HorizontalPodAutoscaler",
    plural: "horizontalpodautoscalers",
    shortNames: ["hpa"],
    categories: ["all"],
    namespaced: true,
    statusSubresource: true,
    conversion: autoscalerConversion,
    defaults: (object) =>
      withMember(object as LooseObject, "spec", (spec) => {
        const filled = withMetrics(withDefaults(spec, { minReplicas: 1 }));
        // v1 alone fills in no behavior (pkg/apis/autoscaling/v1/defaults.go).
        return newer ? withBehavior(filled) : filled;
      }),
    prepareCreate: (object) =>
      ({ ...object, status: { currentReplicas: 0, desiredReplicas: 0 } }) as KubeObject,
    validate: autoscalerProblems,
    validateStatusUpdate: autoscalerStatusProblems,
  };
};
