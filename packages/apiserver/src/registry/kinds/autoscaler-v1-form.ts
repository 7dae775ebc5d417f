/**
 * What v1 shows of a HorizontalPodAutoscaler, whose stored form is v2: the target of the CPU is a field, and everything
 * else that v1 has no fields for is in annotations, as JSON (kubernetes pkg/apis/autoscaling/v1/conversion.go).
 */
import type { KubeObject, Stored } from "@longshore/kube";
import { parseJson, toGoStructJson } from "../../api/json.ts";
import type { Conversion } from "../../api/kind.ts";
import { decodeObject } from "../../schema/decode-object.ts";
import { type Loose, type LooseObject, withDefaults, without } from "./shaping.ts";

const prefix = "autoscaling.alpha.kubernetes.io/";
const names = {
  metrics: `${prefix}metrics`,
  currentMetrics: `${prefix}current-metrics`,
  behavior: `${prefix}behavior`,
  conditions: `${prefix}conditions`,
} as const;

/** See above. */
export const autoscalerConversion: Conversion = {
  toStored: (object, version) => (version === "v1" ? fromV1(object as LooseObject) : object),
  fromStored: (object, version) => (version === "v1" ? toV1(object as Stored & LooseObject) : object),
};

function fromV1(object: LooseObject): KubeObject {
  const { spec = {}, status, metadata = {}, ...rest } = object as Loose;
  const annotations: Loose = metadata.annotations ?? {};
  const { targetCPUUtilizationPercentage: percent, ...specRest } = spec;
  const { currentCPUUtilizationPercentage: current, ...statusRest } = status ?? {};
  const ofCpu =
    percent === undefined ? [] : [cpuMetric("target", { type: "Utilization", averageUtilization: percent })];
  const metrics = [...listIn(annotations[names.metrics], "metrics", sourceOf), ...ofCpu];
  const listed = listIn(annotations[names.currentMetrics], "currentMetrics", statusOf);
  const ofStatus = current === undefined ? [] : [cpuMetric("current", { averageUtilization: current })];
  const currentMetrics = listed.length > 0 ? listed : ofStatus;
  const conditions = listIn(annotations[names.conditions], "conditions", (condition) => condition);
  const behavior = behaviorIn(annotations[names.behavior]);
  const filled = {
    ...statusRest,
    ...(currentMetrics.length > 0 && { currentMetrics }),
    ...(conditions.length > 0 && { conditions }),
  };
  return {
    ...rest,
    metadata: withAnnotations(metadata, otherThan(annotations)),
    spec: { ...specRest, ...(metrics.length > 0 && { metrics }), ...(behavior && { behavior }) },
    ...(status !== undefined || Object.keys(filled).length > 0 ? { status: filled } : {}),
  } as KubeObject;
}

function toV1(object: LooseObject): KubeObject {
  const { spec = {}, status, metadata = {}, ...rest } = object as Loose;
  const { metrics = [], behavior, ...specRest } = spec;
  const { currentMetrics = [], conditions = [], ...statusRest } = status ?? {};
  // Of several for the CPU the first counts, also where it has no share.
  const percent = (metrics as Loose[]).find(isOfCpu)?.resource.target?.averageUtilization;
  const current = (currentMetrics as Loose[]).find(isCpuStatus)?.resource.current.averageUtilization;
  const others = (metrics as Loose[]).filter((metric) => !isCpuTarget(metric));
  const annotations = {
    ...otherThan(metadata.annotations ?? {}),
    ...(others.length > 0 && { [names.metrics]: toGoStructJson(others.map(sourceInV1)) }),
    ...(currentMetrics.length > 0 && {
      [names.currentMetrics]: toGoStructJson(currentMetrics.map(statusInV1)),
    }),
    ...(behavior && { [names.behavior]: toGoStructJson(behaviorInV1(behavior)) }),
    ...(conditions.length > 0 && { [names.conditions]: toGoStructJson(conditions.map(conditionInV1)) }),
  };
  return {
    ...rest,
    metadata: withAnnotations(metadata, annotations),
    spec: { ...specRest, ...(percent !== undefined && { targetCPUUtilizationPercentage: percent }) },
    ...(status !== undefined && {
      status: {
        ...withDefaults(statusRest, { currentReplicas: 0, desiredReplicas: 0 }),
        ...(current !== undefined && { currentCPUUtilizationPercentage: current }),
      },
    }),
  } as KubeObject;
}

const cpuMetric = (member: "target" | "current", value: Loose): Loose => ({
  type: "Resource",
  resource: { name: "cpu", [member]: value },
});

const isOfCpu = (metric: Loose) => metric.type === "Resource" && metric.resource?.name === "cpu";
const isCpuTarget = (metric: Loose) =>
  isOfCpu(metric) && metric.resource.target?.averageUtilization !== undefined;
const isCpuStatus = (metric: Loose) =>
  isOfCpu(metric) && metric.resource.current?.averageUtilization !== undefined;

function otherThan(annotations: Loose): Loose {
  return Object.values(names).reduce((left, name) => without(left, name), annotations);
}

function withAnnotations(metadata: Loose, annotations: Loose): Loose {
  const { annotations: _, ...rest } = metadata;
  return Object.keys(annotations).length === 0 ? rest : { ...rest, annotations };
}

/** The list that an annotation holds, in its form of v2; none where it holds something else, which is as if it were not there. */
function listIn(text: unknown, member: string, convert: (item: Loose) => Loose): readonly Loose[] {
  const value = jsonIn(text);
  if (!Array.isArray(value) || value.length === 0) return [];
  try {
    const list = value.map((item) => convert(objectOr(item)));
    return member === "metrics"
      ? decoded({ spec: { metrics: list } }).spec.metrics
      : decoded({ status: { [member]: list } }).status[member];
  } catch {
    return [];
  }
}

const decoded = (object: Loose): Loose =>
  decodeObject("autoscaling", "HorizontalPodAutoscaler", object, undefined, "v2") as Loose;

function jsonIn(text: unknown): unknown {
  try {
    return typeof text === "string" ? parseJson(text) : undefined;
  } catch {
    return undefined;
  }
}

function objectOr(value: unknown): Loose {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Loose;
  throw new TypeError("not an object");
}

/** The annotation holds the internal form, whose members have the names of Go; they are read in any case of letters. */
function behaviorIn(text: unknown): Loose | undefined {
  const value = lowerFirst(jsonIn(text));
  try {
    const { scaleUp, scaleDown } = decoded({ spec: { behavior: objectOr(value) } }).spec.behavior;
    return scaleUp || scaleDown
      ? { ...(scaleUp && { scaleUp }), ...(scaleDown && { scaleDown }) }
      : undefined;
  } catch {
    return undefined;
  }
}

const behaviorMembers = new Map(
  "scaleUp scaleDown stabilizationWindowSeconds selectPolicy policies type value periodSeconds tolerance"
    .split(" ")
    .map((name) => [name.toLowerCase(), name]),
);

function lowerFirst(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(lowerFirst);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      behaviorMembers.get(key.toLowerCase()) ?? key,
      lowerFirst(member),
    ]),
  );
}

function behaviorInV1({ scaleUp, scaleDown }: Loose): Loose {
  const rules = (of: Loose | undefined) =>
    of === undefined
      ? null
      : {
          StabilizationWindowSeconds: of.stabilizationWindowSeconds ?? null,
          SelectPolicy: of.selectPolicy ?? null,
          Policies:
            of.policies?.map(({ type, value, periodSeconds }: Loose) => ({
              Type: type,
              Value: value,
              PeriodSeconds: periodSeconds,
            })) ?? null,
        };
  return { ScaleUp: rules(scaleUp), ScaleDown: rules(scaleDown) };
}

function conditionInV1({ type, status, lastTransitionTime = null, reason, message }: Loose): Loose {
  return { type, status, lastTransitionTime, reason, message };
}

/** A source of v1 in its form of v2; a member that is not there is left out by the decoder. */
function sourceOf({ type, object, pods, resource, containerResource, external }: Loose): Loose {
  const ofResource = ({ name, container, targetAverageUtilization, targetAverageValue }: Loose) => ({
    name,
    container,
    target: {
      type: targetAverageUtilization === undefined ? "AverageValue" : "Utilization",
      averageUtilization: targetAverageUtilization,
      averageValue: targetAverageValue,
    },
  });
  return {
    type,
    object: object && {
      describedObject: object.target,
      metric: { name: object.metricName, selector: object.selector },
      target: {
        type: object.averageValue === undefined ? "Value" : "AverageValue",
        value: object.targetValue ?? "0",
        averageValue: object.averageValue,
      },
    },
    pods: pods && {
      metric: { name: pods.metricName, selector: pods.selector },
      target: { type: "AverageValue", averageValue: pods.targetAverageValue ?? "0" },
    },
    resource: resource && ofResource(resource),
    containerResource: containerResource && ofResource(containerResource),
    external: external && {
      metric: { name: external.metricName, selector: external.metricSelector },
      target: {
        type: external.targetValue === undefined ? "AverageValue" : "Value",
        value: external.targetValue,
        averageValue: external.targetAverageValue,
      },
    },
  };
}

function statusOf({ type, object, pods, resource, containerResource, external }: Loose): Loose {
  const ofResource = ({ name, container, currentAverageUtilization, currentAverageValue }: Loose) => ({
    name,
    container,
    current: { averageUtilization: currentAverageUtilization, averageValue: currentAverageValue ?? "0" },
  });
  return {
    type,
    object: object && {
      describedObject: object.target,
      metric: { name: object.metricName, selector: object.selector },
      current: { value: object.currentValue ?? "0", averageValue: object.averageValue },
    },
    pods: pods && {
      metric: { name: pods.metricName, selector: pods.selector },
      current: { averageValue: pods.currentAverageValue ?? "0" },
    },
    resource: resource && ofResource(resource),
    containerResource: containerResource && ofResource(containerResource),
    external: external && {
      metric: { name: external.metricName, selector: external.metricSelector },
      current: { value: external.currentValue ?? "0", averageValue: external.currentAverageValue },
    },
  };
}

/** What v1 calls the same values in a source and in a status. */
const namesInV1 = {
  target: {
    value: "targetValue",
    averageValue: "targetAverageValue",
    utilization: "targetAverageUtilization",
  },
  current: {
    value: "currentValue",
    averageValue: "currentAverageValue",
    utilization: "currentAverageUtilization",
  },
} as const;

const sourceInV1 = (metric: Loose) => metricInV1(metric, "target");
const statusInV1 = (metric: Loose) => metricInV1(metric, "current");

/** What is not there yet is left out: an object is shown before it is checked, too. @param of the member that has the values */
function metricInV1(metric: Loose, of: keyof typeof namesInV1): Loose {
  const { type, object, pods, resource, containerResource, external } = metric;
  const names = namesInV1[of];
  // A status always has the values that a source may leave out.
  const needed = of === "current" ? "0" : undefined;
  const ofResource = ({ name, container, [of]: value = {} }: Loose) => ({
    name,
    [names.utilization]: value.averageUtilization,
    [names.averageValue]: value.averageValue ?? needed,
    container,
  });
  return {
    type,
    object: object && {
      target: referenceInV1(object.describedObject),
      metricName: object.metric?.name,
      [names.value]: object[of]?.value ?? "0",
      selector: object.metric?.selector,
      averageValue: object[of]?.averageValue,
    },
    pods: pods && {
      metricName: pods.metric?.name,
      [names.averageValue]: pods[of]?.averageValue ?? "0",
      selector: pods.metric?.selector,
    },
    resource: resource && ofResource(resource),
    containerResource: containerResource && ofResource(containerResource),
    external: external && {
      metricName: external.metric?.name,
      metricSelector: external.metric?.selector,
      [names.value]: external[of]?.value ?? needed,
      [names.averageValue]: external[of]?.averageValue,
    },
  };
}

const referenceInV1 = ({ kind, name, apiVersion }: Loose = {}): Loose => ({ kind, name, apiVersion });
