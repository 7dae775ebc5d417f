/**
 * LimitRanger: the limits of a namespace fill what new containers leave open, and refuse pods and claims that ask for too
 * little or too much (kubernetes plugin/pkg/admission/limitranger).
 */
import type { KubeObject, Stored } from "@longshore/kube";
import { parseQuantity, type Quantity } from "@longshore/kube/basics";
import { forbidden } from "../api/errors.ts";
import { spendTime } from "../api/work-time.ts";
import {
  type Amounts,
  type ContainerResources,
  type PodResourcesSpec,
  podResources,
  type Resources,
} from "../registry/kinds/pod-resources.ts";
import { qosClass } from "../registry/kinds/qos-class.ts";
import { groupResource, type KindRequest, type RegistryContext } from "../registry/registry-context.ts";
import type { AdmissionPlugin } from "./admission-chain.ts";

interface Limit {
  readonly type?: string;
  readonly default?: Amounts;
  readonly defaultRequest?: Amounts;
  readonly min?: Amounts;
  readonly max?: Amounts;
  readonly maxLimitRequestRatio?: Amounts;
}

type Spec = PodResourcesSpec & { readonly resources?: Resources; readonly limits?: readonly Limit[] };
type Limited = KubeObject & { readonly spec?: Spec; readonly status?: object };

/** Holds new pods, and new and changed claims, to the LimitRanges of their namespace. */
export const limitRanger: AdmissionPlugin = {
  name: "LimitRanger",
  onCreate(context, request, object) {
    const limits = limitsFor(context, request);
    if (limits.length === 0) return object;
    const filled = isPods(request) ? withDefaults(object as Limited, limits) : (object as Limited);
    check(request, filled, limits);
    return filled;
  },
  onUpdate(context, request, next) {
    // The resources of a pod do not change.
    if (!isPods(request) && request.subresource === undefined) {
      check(request, next as Limited, limitsFor(context, request));
    }
    return next;
  },
};

const isPods = ({ of }: KindRequest) => of.group === "" && of.plural === "pods";

function limitsFor({ store }: RegistryContext, { of, namespace }: KindRequest): readonly Limit[] {
  if (of.group !== "" || (of.plural !== "pods" && of.plural !== "persistentvolumeclaims")) return [];
  const ranges = store.table("limitranges").list(namespace) as readonly (Stored & Limited)[];
  return ranges.flatMap(({ spec }) => spec?.limits ?? []);
}

function withDefaults(pod: Limited, limits: readonly Limit[]): Limited {
  let defaults: Resources = {};
  for (const limit of limits) {
    if (limit.type !== "Container") continue;
    defaults = {
      requests: { ...limit.defaultRequest, ...defaults.requests },
      limits: { ...limit.default, ...defaults.limits },
    };
  }
  const set: string[] = [];
  const fill = (what: string) => (container: ContainerResources) => filled(container, defaults, what, set);
  const { containers = [], initContainers } = pod.spec ?? {};
  const spec = {
    ...pod.spec,
    containers: containers.map(fill("container")),
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map(fill("init container")) }),
  };
  if (set.length === 0) return pod;
  const annotations = {
    ...pod.metadata?.annotations,
    "kubernetes.io/limit-ranger": `LimitRanger plugin set: ${set.join("; ")}`,
  };
  const status = { ...pod.status, qosClass: qosClass(spec) };
  return { ...pod, metadata: { ...pod.metadata, annotations }, spec, status };
}

function filled(
  container: ContainerResources,
  defaults: Resources,
  what: string,
  set: string[],
): ContainerResources {
  spendTime();
  let { resources = {} } = container;
  for (const [key, word] of [
    ["requests", "request"],
    ["limits", "limit"],
  ] as const) {
    const given = resources[key] ?? {};
    const missing = Object.keys(defaults[key] ?? {}).filter((name) => given[name] === undefined);
    if (missing.length === 0) continue;
    set.push(`${missing.sort().join(", ")} ${word} for ${what} ${container.name}`);
    resources = { ...resources, [key]: { ...defaults[key], ...given } };
  }
  return resources === container.resources ? container : { ...container, resources };
}

/** @throws KubeApiError 403 with everything that is out of the limits */
function check(request: KindRequest, object: Limited, limits: readonly Limit[]): void {
  const problems: string[] = [];
  for (const limit of limits) {
    if (isPods(request)) {
      const { containers = [], initContainers = [] } = object.spec ?? {};
      if (limit.type === "Container") {
        for (const { resources = {} } of [...containers, ...initContainers]) {
          problems.push(...problemsOf(limit, resources));
        }
      } else if (limit.type === "Pod") problems.push(...problemsOf(limit, podResources(object.spec ?? {})));
    } else if (limit.type === "PersistentVolumeClaim") {
      problems.push(...claimProblems(limit, object.spec?.resources?.requests ?? {}));
    }
  }
  if (problems.length === 0) return;
  const why = problems.length === 1 ? (problems[0] as string) : `[${problems.join(", ")}]`;
  throw forbidden(groupResource(request.of), object.metadata?.name ?? "", why);
}

const amount = (of: Amounts | undefined, name: string): Quantity | undefined => {
  const text = of?.[name];
  return text === undefined ? undefined : parseQuantity(String(text));
};

function* problemsOf(limit: Limit, { requests = {}, limits = {} }: Resources): Iterable<string> {
  const per = `per ${limit.type} is`;
  for (const [name, text] of Object.entries(limit.min ?? {})) {
    spendTime();
    const [least, asked, most] = [parseQuantity(text), amount(requests, name), amount(limits, name)];
    const says = `minimum ${name} usage ${per} ${text}`;
    if (asked === undefined) yield `${says}.  No request is specified`;
    else if (asked.compare(least) < 0) yield `${says}, but request is ${asked}`;
    else if (most !== undefined && most.compare(least) < 0) yield `${says}, but limit is ${most}`;
  }
  for (const [name, text] of Object.entries(limit.max ?? {})) {
    spendTime();
    const [highest, asked, most] = [parseQuantity(text), amount(requests, name), amount(limits, name)];
    const says = `maximum ${name} usage ${per} ${text}`;
    if (most === undefined) yield `${says}.  No limit is specified`;
    else if (most.compare(highest) > 0) yield `${says}, but limit is ${most}`;
    else if (asked !== undefined && asked.compare(highest) > 0) yield `${says}, but request is ${asked}`;
  }
  for (const [name, text] of Object.entries(limit.maxLimitRequestRatio ?? {})) {
    spendTime();
    const [asked, most] = [amount(requests, name), amount(limits, name)];
    const says = `${name} max limit to request ratio ${per} ${text}`;
    if (asked === undefined || asked.isZero()) yield `${says}, but no request is specified or request is 0`;
    else if (most === undefined || most.isZero()) yield `${says}, but no limit is specified or limit is 0`;
    else {
      const ratio = Number(most.milliValue()) / Number(asked.milliValue());
      const isAbove = ratio * 1000 > Number(parseQuantity(text).milliValue());
      if (isAbove) yield `${says}, but provided ratio is ${ratio.toFixed(6)}`;
    }
  }
}

function* claimProblems({ min = {}, max = {} }: Limit, requests: Amounts): Iterable<string> {
  for (const [name, text] of Object.entries(min)) {
    const asked = amount(requests, name);
    const says = `minimum ${name} usage per PersistentVolumeClaim is ${text}`;
    if (asked === undefined) yield `${says}.  No request is specified`;
    else if (asked.compare(parseQuantity(text)) < 0) yield `${says}, but request is ${asked}`;
  }
  for (const [name, text] of Object.entries(max)) {
    const asked = amount(requests, name);
    const says = `maximum ${name} usage per PersistentVolumeClaim is ${text}`;
    if (asked === undefined) yield `${says}.  No request is specified`;
    else if (asked.compare(parseQuantity(text)) > 0) yield `${says}, but request is ${asked}`;
  }
}
