/**
 * The parts of a pod that are changed by themselves: its ephemeral containers and what its containers ask for
 * (core/pod strategy EphemeralContainersStrategy, ResizeStrategy), and its log, which only its node has.
 */
import type { KubeObject, Stored } from "@longshore/kube";
import type { ApiAnswer } from "../api/api-request.ts";
import {
  apiError,
  badRequest,
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  methodNotSupported,
} from "../api/errors.ts";
import type { Kind } from "../api/kind.ts";
import { sameJson } from "../api/own.ts";
import { qosClass } from "./kinds/qos-class.ts";
import type { Loose, LooseObject } from "./kinds/shaping.ts";
import { existing, groupResource, type KindRequest, type RegistryContext } from "./registry-context.ts";
import { patchObject, updateObject } from "./write.ts";

const spec = (object: KubeObject): Loose => (object as LooseObject).spec ?? {};
const listOf = (object: KubeObject, member: string): readonly Loose[] => spec(object)[member] ?? [];

/** What of a pod may be changed in one place, and what must hold of the change. */
interface PodPart {
  /** The old pod with the part of the new one. */
  readonly take: (next: KubeObject, old: Stored) => KubeObject;
  readonly problems: (next: KubeObject, old: Stored) => readonly FieldProblem[];
}

const ephemeralContainers: PodPart = {
  take: (next, old) => {
    const { ephemeralContainers: _, ...rest } = spec(old);
    const list = listOf(next, "ephemeralContainers");
    return {
      ...old,
      spec: { ...rest, ...(list.length === 0 ? {} : { ephemeralContainers: list }) },
    } as KubeObject;
  },
  // They are added, and stay as they are.
  problems: (next, old) => {
    const at = "spec.ephemeralContainers";
    const now = listOf(next, "ephemeralContainers");
    const names = new Set(
      [...listOf(old, "containers"), ...listOf(old, "initContainers")].map((c) => c.name),
    );
    const problems: FieldProblem[] = [];
    const nowByName = byName(now);
    for (const before of listOf(old, "ephemeralContainers")) {
      const same = nowByName.get(before.name);
      if (same === undefined) {
        problems.push(
          forbiddenValue(
            at,
            `existing ephemeral containers ${JSON.stringify(before.name)} may not be removed\n`,
          ),
        );
      } else if (!sameJson(same, before)) {
        problems.push(
          forbiddenValue(
            at,
            `existing ephemeral containers ${JSON.stringify(before.name)} may not be changed\n`,
          ),
        );
      }
    }
    for (const [i, { name }] of now.entries()) {
      if (!names.has(name)) continue;
      problems.push({
        reason: "FieldValueDuplicate",
        message: `Duplicate value: ${JSON.stringify(name)}`,
        field: `${at}[${i}].name`,
      });
    }
    return problems;
  },
};

/** Containers by their names; of two of one name, the first. */
function byName(containers: readonly Loose[]): ReadonlyMap<unknown, Loose> {
  return new Map(containers.toReversed().map((container) => [container.name, container]));
}

/** A container with the resources of the one of its name. */
function withResources(container: Loose, others: ReadonlyMap<unknown, Loose>): Loose {
  const same = others.get(container.name);
  return same?.resources === undefined ? container : { ...container, resources: same.resources };
}

const resources: PodPart = {
  take: (next, old) => {
    const lists = ["containers", "initContainers"].filter((list) => spec(old)[list] !== undefined);
    const changed = lists.map((list) => {
      const wanted = byName(listOf(next, list));
      return [list, listOf(old, list).map((container) => withResources(container, wanted))];
    });
    return { ...old, spec: { ...spec(old), ...Object.fromEntries(changed) } } as KubeObject;
  },
  problems: (next, old) => {
    if (
      (old as LooseObject).status?.phase !== "Running" &&
      (old as LooseObject).status?.phase !== "Pending"
    ) {
      return [forbiddenValue("", "pod resize is not allowed for a pod that has ended")];
    }
    const others = (container: Loose) => {
      const amounts = (map: Loose = {}) =>
        Object.fromEntries(Object.entries(map).filter(([name]) => name !== "cpu" && name !== "memory"));
      const { requests, limits, ...rest } = container.resources ?? {};
      return { ...container, resources: { ...rest, requests: amounts(requests), limits: amounts(limits) } };
    };
    const fixed = (object: KubeObject) => listOf(object, "containers").map(others);
    const problems: FieldProblem[] = sameJson(fixed(next), fixed(old))
      ? []
      : [forbiddenValue("spec", "only cpu and memory resources are mutable")];
    const [now, before] = [qosClass(spec(next)), (old as LooseObject).status?.qosClass];
    if (before !== undefined && now !== before) {
      const why = "Pod QOS Class may not change as a result of resizing";
      problems.push(invalidValue("spec", now, why));
    }
    return problems;
  },
};

function partOf(part: PodPart): (context: RegistryContext, request: KindRequest) => ApiAnswer {
  return (context, request) => {
    const { of: whole, verb } = request;
    const of: Kind = {
      ...whole,
      prepareUpdate: (next, old) => part.take(next, old),
      validateUpdate: part.problems,
    };
    switch (verb) {
      case "get":
        return { type: "object", code: 200, object: existing(request) };
      case "update":
        return updateObject(context, { ...request, of });
      case "patch":
        return patchObject(context, { ...request, of });
      default:
        throw methodNotSupported(groupResource(whole), verb);
    }
  };
}

/** GET, PUT and PATCH of a pod's ephemeral containers, in the form of the whole pod. */
export const changeEphemeralContainers: (context: RegistryContext, request: KindRequest) => ApiAnswer =
  partOf(ephemeralContainers);

/** GET, PUT and PATCH of what a pod's containers ask for. */
export const resizePod: (context: RegistryContext, request: KindRequest) => ApiAnswer = partOf(resources);

/** GET of a pod's log: its node has it, and this server asks no nodes. */
export function podLog(_context: RegistryContext, request: KindRequest): ApiAnswer {
  const pod = existing(request);
  const { nodeName = "" } = spec(pod);
  const { name } = pod.metadata;
  if (nodeName === "") throw badRequest(`pod ${name} does not have a host assigned`);
  const message = `the log of pod ${name} is with node ${nodeName}: this API server passes nothing on to nodes`;
  throw apiError(501, "NotImplemented", message);
}
