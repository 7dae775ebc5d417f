/** The faults of a swarm's world at the seams of its components, beside those of {@link faultyGate}. */
import { KubeApiError, type KubeClient, KubeTransportError } from "@longshore/kube";
import { type Clock, HostError } from "@longshore/runtime";
import type { CallGate, SeamCall } from "../cut.ts";
import type { FaultDraws } from "../fault-draws.ts";
import type { FaultKind } from "./swarm-plan.ts";

/** What the faults need. */
export interface SwarmFaultsEnv {
  readonly draws: FaultDraws;
  /** How often the fault strikes now, in thousandths; 0: never. */
  rate(kind: FaultKind): number;
  onFault(kind: FaultKind, component: string, call: string): void;
}

const changes: ReadonlySet<string> = new Set(["update", "updateStatus"]);
const mounts: ReadonlySet<string> = new Set(["mountDevice", "bindMount", "unmount"]);
const writes: ReadonlySet<string> = new Set(["writeFileAtomic", "appendFileDurable", "makeDirectory"]);
/** Those of which there are few calls, without which most worlds would have none, and those of which there are many. */
const timesAsOften: Readonly<Partial<Record<FaultKind, number>>> = {
  duplicateCall: 5,
  mountFailure: 3,
  driverDeath: 5,
  // A component makes some hundred calls when it comes up.
  deathAtCall: 0.1,
};
/** Longest time by which a client sees what has changed later than others do, in milliseconds. */
const lagMsMax = 30_000;
/** Any CSI call may come twice: a client that got no answer asks again while the first is at work. */
const repeated = /^(create|delete|controller|nodeStage|nodePublish|nodeUnpublish|nodeUnstage)/;

/** A gate in which calls are refused, fail on their machine, or are made twice. */
export function swarmGate(env: SwarmFaultsEnv): CallGate {
  return async (call, proceed) => {
    const kind = kindsOf(call).find((each) => strikes(env, each, call));
    if (kind === undefined) return proceed();
    env.onFault(kind, call.component, `${call.seam}.${call.method}`);
    if (kind !== "duplicateCall") throw failureOf(kind, call);
    const [first, second] = await Promise.allSettled([proceed(), proceed()]);
    if (second.status === "fulfilled") return second.value;
    if (first.status === "fulfilled") return first.value;
    throw second.reason;
  };
}

/** A client whose watches break, are refused because the version is too old, or lag behind what is stored. */
export function withFaultyWatches(
  env: SwarmFaultsEnv & { readonly clock: Clock },
  component: string,
  kube: KubeClient,
): KubeClient {
  return {
    ...kube,
    watch: (resource, options) => {
      const source = kube.watch(resource, options);
      const call = { component, seam: "kube", method: `watch ${resource.plural}` } as const;
      const broken = async function* (): AsyncGenerator<never> {
        if (strikes(env, "watchExpired", call)) {
          env.onFault("watchExpired", component, call.method);
          throw failureOf("watchExpired", call);
        }
        for await (const event of source) {
          if (strikes(env, "watchLag", call)) {
            const ms = 1 + env.draws.next(`${component} ${call.method} lag`).below(lagMsMax);
            env.onFault("watchLag", component, `${call.method}, ${ms} ms behind`);
            // What comes in between comes after it, in its order.
            await env.clock.sleep(ms, options.signal);
          }
          yield event as never;
          if (!strikes(env, "watchBroken", call)) continue;
          env.onFault("watchBroken", component, call.method);
          throw failureOf("watchBroken", call);
        }
      };
      return { [Symbol.asyncIterator]: broken };
    },
  };
}

function kindsOf({ seam, method }: SeamCall): readonly FaultKind[] {
  if (seam === "kube") return changes.has(method) ? ["conflict", "throttled"] : ["throttled"];
  if (seam === "csi") return repeated.test(method) ? ["duplicateCall"] : [];
  if (seam !== "host") return [];
  if (mounts.has(method)) return ["mountFailure"];
  return writes.has(method) ? ["fullDisk"] : [];
}

/** Whether the fault strikes at this call. */
export function strikes({ draws, rate }: SwarmFaultsEnv, kind: FaultKind, call: SeamCall): boolean {
  const often = rate(kind) * (timesAsOften[kind] ?? 1);
  if (often === 0) return false;
  const draw = draws.next(`${call.component} ${call.seam}.${call.method} ${kind}`);
  return draw.below(1000) < often && draws.happens(draw);
}

function failureOf(kind: FaultKind, { method }: SeamCall): Error {
  if (kind === "mountFailure") return new HostError(method, "", "EIO");
  if (kind === "fullDisk") return new HostError(method, "", "ENOSPC");
  if (kind === "watchBroken") return new KubeTransportError(`${method}: the connection was lost`);
  const [code, reason] = statusOf(kind);
  return new KubeApiError({
    apiVersion: "v1",
    kind: "Status",
    status: "Failure",
    code,
    reason,
    message: `${method}: ${reason}`,
  });
}

function statusOf(kind: FaultKind): readonly [number, string] {
  if (kind === "conflict") return [409, "Conflict"];
  return kind === "watchExpired" ? [410, "Expired"] : [429, "TooManyRequests"];
}
