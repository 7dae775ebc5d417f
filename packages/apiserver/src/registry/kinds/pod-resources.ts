/** What the containers of a pod ask for together (kubernetes pkg/api/v1/resource). Pure. */
import { parseQuantity, type Quantity } from "@longshore/kube/basics";
import { spendTime } from "../../api/work-time.ts";

/** Quantities by the names of resources. */
export type Amounts = Readonly<Record<string, string>>;

/** What a container asks for, and what it may use. */
export interface Resources {
  readonly requests?: Amounts;
  readonly limits?: Amounts;
}

/** A container, as far as it uses resources. */
export interface ContainerResources {
  readonly name?: string;
  readonly resources?: Resources;
}

/** The spec of a pod, as far as it uses resources. */
export interface PodResourcesSpec {
  readonly containers?: readonly ContainerResources[];
  readonly initContainers?: readonly ContainerResources[];
  /** What its runtime takes beside its containers. */
  readonly overhead?: Amounts;
}

/** What a pod counts for: {@link podResources}, and its overhead on top, of limits where there are any (PodRequestsAndLimits). */
export function podUsage(spec: PodResourcesSpec): Resources {
  const { requests = {}, limits = {} } = podResources(spec);
  const { overhead } = spec;
  if (overhead === undefined) return { requests, limits };
  const asked: Record<string, string> = { ...requests };
  const most: Record<string, string> = { ...limits };
  const plus = (text: string | undefined, more: string) =>
    text === undefined ? more : parseQuantity(text).add(parseQuantity(more)).toString();
  for (const [name, more] of Object.entries(overhead)) {
    spendTime();
    asked[name] = plus(asked[name], more);
    if (most[name] !== undefined) most[name] = plus(most[name], more);
  }
  return { requests: asked, limits: most };
}

/** What a pod asks for: the sum of its containers, or of one of those before them more than that. */
export function podResources({ containers = [], initContainers = [] }: PodResourcesSpec): Resources {
  const total = (key: "requests" | "limits"): Amounts => {
    const sums = new Map<string, Quantity>();
    for (const { resources } of containers) {
      for (const [name, text] of Object.entries(resources?.[key] ?? {})) {
        spendTime();
        const sum = sums.get(name);
        sums.set(
          name,
          sum === undefined ? parseQuantity(String(text)) : sum.add(parseQuantity(String(text))),
        );
      }
    }
    for (const { resources } of initContainers) {
      for (const [name, text] of Object.entries(resources?.[key] ?? {})) {
        spendTime();
        const [sum, own] = [sums.get(name), parseQuantity(String(text))];
        if (sum === undefined || own.compare(sum) > 0) sums.set(name, own);
      }
    }
    return Object.fromEntries([...sums].map(([name, sum]) => [name, sum.toString()]));
  };
  return { requests: total("requests"), limits: total("limits") };
}
