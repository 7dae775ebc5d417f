/**
 * Priority: a pod's class, or the default one, is turned into its priority (kubernetes plugin/pkg/admission/priority).
 * The classes of the system are there from the beginning.
 */
import type { KubeObject, Stored } from "@longshore/kube";
import { forbidden } from "../api/errors.ts";
import type { RegistryContext } from "../registry/registry-context.ts";
import type { AdmissionPlugin } from "./admission-chain.ts";

interface PriorityClass extends KubeObject {
  readonly value?: number;
  readonly globalDefault?: boolean;
  readonly preemptionPolicy?: string;
}

interface PodSpec {
  readonly priorityClassName?: string;
  readonly priority?: number;
  readonly preemptionPolicy?: string;
}

type PodLike = KubeObject & { readonly spec?: PodSpec };

const isPod = ({ group, plural }: { readonly group: string; readonly plural: string }) =>
  group === "" && plural === "pods";

/** Sets the priority of a new pod from its priority class or the default one. */
export const priority: AdmissionPlugin = {
  name: "Priority",
  onCreate(context, { of }, object) {
    if (of.group === "scheduling.k8s.io" && of.plural === "priorityclasses") {
      refuseSecondDefault(context, object);
      return object;
    }
    return isPod(of) ? withPriority(context, object as PodLike) : object;
  },
  onUpdate(context, { of }, next, old) {
    if (of.group === "scheduling.k8s.io" && of.plural === "priorityclasses")
      refuseSecondDefault(context, next);
    return isPod(of) ? keepingPriority(next as PodLike, old as PodLike) : next;
  },
};

function classes({ store }: RegistryContext): readonly (Stored & PriorityClass)[] {
  return store.table("priorityclasses.scheduling.k8s.io").list() as readonly (Stored & PriorityClass)[];
}

function withPriority(context: RegistryContext, pod: PodLike): PodLike {
  const { priorityClassName: named = "", priority: given, preemptionPolicy: policyGiven } = pod.spec ?? {};
  const found =
    named === ""
      ? defaultClass(classes(context))
      : classes(context).find((candidate) => candidate.metadata.name === named);
  const refuse = (why: string) => forbidden({ group: "", resource: "pods" }, pod.metadata?.name ?? "", why);
  if (named !== "" && found === undefined) throw refuse(`no PriorityClass with name ${named} was found`);
  const value = found?.value ?? 0;
  const policy = found?.preemptionPolicy ?? "PreemptLowerPriority";
  const computed = (what: string) =>
    `must not be provided in pod spec; priority admission controller computed ${what} from the given PriorityClass name`;
  if (given !== undefined && given !== value) {
    throw refuse(`the integer value of priority (${given}) ${computed(String(value))}`);
  }
  if (policyGiven !== undefined && policyGiven !== policy) {
    throw refuse(`the string value of PreemptionPolicy (${policyGiven}) ${computed(policy)}`);
  }
  const name = found?.metadata.name;
  return {
    ...pod,
    spec: {
      ...pod.spec,
      ...(name === undefined ? {} : { priorityClassName: name }),
      priority: value,
      preemptionPolicy: policy,
    },
  };
}

/** The default class, of several the one with the lowest value: a pod must not get a high priority by chance. */
function defaultClass(all: readonly (Stored & PriorityClass)[]): (Stored & PriorityClass) | undefined {
  const [lowest] = all
    .filter(({ globalDefault }) => globalDefault === true)
    .sort((a, b) => (a.value ?? 0) - (b.value ?? 0));
  return lowest;
}

/** An update without the priority keeps the old one. */
function keepingPriority(next: PodLike, old: PodLike): PodLike {
  const { priority: value, preemptionPolicy: policy } = old.spec ?? {};
  if (next.spec?.priority !== undefined && next.spec.preemptionPolicy !== undefined) return next;
  const kept = {
    ...(value === undefined ? {} : { priority: value }),
    ...(policy === undefined ? {} : { preemptionPolicy: policy }),
  };
  return { ...next, spec: { ...kept, ...next.spec } };
}

function refuseSecondDefault(context: RegistryContext, object: KubeObject): void {
  if ((object as PriorityClass).globalDefault !== true) return;
  const name = object.metadata?.name ?? "";
  const other = classes(context).find((c) => c.globalDefault === true && c.metadata.name !== name);
  if (other === undefined) return;
  const why = `PriorityClass ${other.metadata.name} is already marked as default. Only one default can exist`;
  throw forbidden({ group: "scheduling.k8s.io", resource: "priorityclasses" }, name, why);
}
