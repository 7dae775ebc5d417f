/**
 * RuntimeClass: a pod gets the overhead of its class, and runs where the class does (kubernetes
 * plugin/pkg/admission/runtimeclass).
 */
import type { KubeObject } from "@longshore/kube";
import { forbidden } from "../api/errors.ts";
import { sameJson } from "../api/own.ts";
import { spendTime } from "../api/work-time.ts";
import type { RegistryContext } from "../registry/registry-context.ts";
import type { AdmissionPlugin } from "./admission-chain.ts";

type Amounts = Readonly<Record<string, string>>;

interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number;
}

interface RuntimeClass extends KubeObject {
  readonly overhead?: { readonly podFixed?: Amounts };
  readonly scheduling?: {
    readonly nodeSelector?: Readonly<Record<string, string>>;
    readonly tolerations?: readonly Toleration[];
  };
}

interface PodLike extends KubeObject {
  readonly spec?: {
    readonly runtimeClassName?: string;
    readonly overhead?: Amounts;
    readonly nodeSelector?: Readonly<Record<string, string>>;
    readonly tolerations?: readonly Toleration[];
  };
}

/** Gives a new pod what its runtime class says. */
export const runtimeClassOfPods: AdmissionPlugin = {
  name: "RuntimeClass",
  onCreate: (context, { of }, object) =>
    of.group === "" && of.plural === "pods" ? withRuntimeClass(context, object as PodLike) : object,
};

function withRuntimeClass({ store }: RegistryContext, pod: PodLike): KubeObject {
  const { spec = {} } = pod;
  const { runtimeClassName: name, overhead: given = {} } = spec;
  const refuse = (why: string) => forbidden({ group: "", resource: "pods" }, pod.metadata?.name ?? "", why);
  const found =
    name === undefined
      ? undefined
      : (store.table("runtimeclasses.node.k8s.io").get("", name) as RuntimeClass | undefined);
  if (name !== undefined && found === undefined) {
    throw refuse(`pod rejected: RuntimeClass ${JSON.stringify(name)} not found`);
  }
  const isGiven = Object.keys(given).length > 0;
  if (found?.overhead === undefined) {
    if (isGiven)
      throw refuse("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
  } else if (isGiven && !sameJson(given, found.overhead.podFixed ?? {})) {
    throw refuse("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  }
  if (found === undefined) return pod;
  const { overhead, scheduling } = found;
  const nodeSelector = selectorWith(spec.nodeSelector, scheduling?.nodeSelector, refuse);
  const tolerations =
    scheduling === undefined
      ? spec.tolerations
      : merged(spec.tolerations ?? [], scheduling.tolerations ?? []);
  return {
    ...pod,
    spec: {
      ...spec,
      ...(overhead?.podFixed === undefined ? {} : { overhead: overhead.podFixed }),
      ...(nodeSelector === undefined ? {} : { nodeSelector }),
      ...(tolerations === undefined ? {} : { tolerations }),
    },
  } as KubeObject;
}

/** Both selectors in one. @throws what `refuse` makes when they contradict each other */
function selectorWith(
  ofPod: Readonly<Record<string, string>> | undefined,
  ofClass: Readonly<Record<string, string>> | undefined,
  refuse: (why: string) => Error,
): Readonly<Record<string, string>> | undefined {
  if (ofClass === undefined) return ofPod;
  for (const [key, value] of Object.entries(ofClass)) {
    if (ofPod === undefined || !Object.hasOwn(ofPod, key) || ofPod[key] === value) continue;
    throw refuse(
      `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${ofPod[key]}`,
    );
  }
  return { ...ofPod, ...ofClass };
}

/** All tolerations but those that another of them includes; of equal ones the first (pkg/util/tolerations). */
function merged(first: readonly Toleration[], second: readonly Toleration[]): readonly Toleration[] {
  const all = [...first, ...second];
  const kept: Toleration[] = [];
  for (const [i, one] of all.entries()) {
    spendTime(all.length);
    if (kept.some((other) => includes(other, one))) continue;
    if (all.slice(i + 1).some((other) => !sameJson(other, one) && includes(other, one))) continue;
    kept.push(one);
  }
  return kept;
}

function includes(wide: Toleration, one: Toleration): boolean {
  if (sameJson(wide, one)) return true;
  const { key = "", operator = "", value = "", effect = "" } = wide;
  // An empty key with Exists matches all keys and values, and an empty effect all effects.
  if ((one.key ?? "") !== key && (key !== "" || operator !== "Exists")) return false;
  if ((one.effect ?? "") !== effect && effect !== "") return false;
  if (effect === "NoExecute" && wide.tolerationSeconds !== undefined) {
    if (one.tolerationSeconds === undefined || one.tolerationSeconds > wide.tolerationSeconds) return false;
  }
  if (operator === "Exists") return true;
  return (operator === "Equal" || operator === "") && one.operator === "Equal" && (one.value ?? "") === value;
}
