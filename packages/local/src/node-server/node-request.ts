/** What a client of the node asks for: a verb, a pod and a container of it. The paths are those of a kubelet. */
import type { Informer, Pod, Stored } from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import type { PodRuntime } from "../containers/pod-runtime.ts";
import type { StatsSummary } from "./stats-summary.ts";

/** What the node serves from. */
export interface NodeServices {
  readonly clock: Clock;
  readonly pods: Informer<Pod>;
  readonly runtime: PodRuntime;
  readonly logDir: string;
  /** The figures of the node, as measured last. It waits for no volume. */
  readonly stats: () => StatsSummary;
  /** The metrics of the agent in the text form of Prometheus; left out: they are not served. */
  readonly metrics?: () => Promise<string>;
  readonly onError: (error: unknown) => void;
}

/** The node refuses a request: the code of the answer, and why. */
export class NodeRefusal extends Error {
  override readonly name = "NodeRefusal";
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** The container that a path names. */
export interface NodeTarget {
  readonly verb: string;
  readonly pod: Stored<Pod>;
  readonly container: string;
  readonly params: URLSearchParams;
}

/** `/VERB/NAMESPACE/POD/CONTAINER`. @throws NodeRefusal */
export function targetOf({ pods }: NodeServices, url: string): NodeTarget {
  const { pathname, searchParams: params } = new URL(url, "http://node");
  const [, verb = "", namespace = "", name = "", container = ""] = pathname
    .split("/")
    .map(decodeURIComponent);
  const pod = pods.get(`${namespace}/${name}`);
  if (pod === undefined)
    throw new NodeRefusal(404, `pod "${name}" in namespace "${namespace}" is not on this node`);
  const all = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
  if (container !== "" && !all.some((one) => one.name === container)) {
    throw new NodeRefusal(404, `container "${container}" is not in pod "${name}"`);
  }
  return { verb, pod, container, params };
}

/** Whether the parameter is set. */
export function isTrue(params: URLSearchParams, name: string): boolean {
  return params.get(name) === "true" || params.get(name) === "1";
}

/** A parameter that is a whole number; undefined: it is not given. @throws NodeRefusal */
export function numberOf(params: URLSearchParams, name: string): number | undefined {
  const text = params.get(name);
  if (text === null) return undefined;
  if (!/^[0-9]{1,15}$/.test(text)) throw new NodeRefusal(400, `${name}: "${text}" is not a number`);
  return Number(text);
}
