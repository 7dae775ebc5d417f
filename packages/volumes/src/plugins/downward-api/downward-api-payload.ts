/** The files that show a pod what is known of itself. Source: docs/behaviour/pod-volumes.md 3; upstream pkg/fieldpath, pkg/api/v1/resource. */
import {
  type Container,
  type EnvVar,
  type Node,
  type Pod,
  parseQuantity,
  type Volume,
} from "@longshore/kube";
import { type Payload, PayloadError, type PayloadFile } from "../pod-files/payload.ts";

type Items = NonNullable<NonNullable<Volume["downwardAPI"]>["items"]>;

/** A request or limit of a container: `resource` is e.g. `limits.memory`. */
export type ResourceField = NonNullable<NonNullable<EnvVar["valueFrom"]>["resourceFieldRef"]>;

/** What is asked of the pod and its node. */
export interface DownwardApi {
  readonly pod: Pod;
  readonly items: Items;
  readonly defaultMode: number;
  /** The node, read only where a limit is asked for that the container does not have. */
  node(): Promise<Node | undefined>;
}

/** The files. @throws PayloadError for a field that a volume cannot show */
export async function downwardApiPayload(of: DownwardApi): Promise<Payload> {
  const payload = new Map<string, PayloadFile>();
  const isOfNode = of.items.some(
    ({ resourceFieldRef }) => resourceFieldRef !== undefined && isLimitOfNode(of.pod, resourceFieldRef),
  );
  const node = isOfNode ? await of.node() : undefined;
  for (const { path, mode, fieldRef, resourceFieldRef } of of.items) {
    const data =
      fieldRef === undefined
        ? resourceText(of.pod, resourceFieldRef ?? { resource: "" }, node)
        : fieldText(of.pod, fieldRef.fieldPath);
    payload.set(path, { data, mode: mode ?? of.defaultMode });
  }
  return payload;
}

/** The value of a field of the pod's metadata, as a file shows it. @throws PayloadError for another field */
export function fieldText({ metadata = {} }: Pod, fieldPath: string): string {
  const one = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(fieldPath);
  if (one !== null) {
    const [, map, key = ""] = one;
    return (map === "labels" ? metadata.labels : metadata.annotations)?.[key] ?? "";
  }
  switch (fieldPath) {
    case "metadata.name":
      return metadata.name ?? "";
    case "metadata.namespace":
      return metadata.namespace ?? "";
    case "metadata.uid":
      return metadata.uid ?? "";
    case "metadata.labels":
      return linesOf(metadata.labels);
    case "metadata.annotations":
      return linesOf(metadata.annotations);
    default:
      throw new PayloadError(`downwardAPI: a volume cannot show the field "${fieldPath}"`);
  }
}

/** `key="value"`, sorted, with the value quoted as Go quotes it. */
function linesOf(map: Readonly<Record<string, string>> = {}): string {
  return Object.keys(map)
    .sort()
    .map((key) => `${key}=${JSON.stringify(map[key])}`)
    .join("\n");
}

const units: Readonly<Record<string, "milli" | "whole">> = {
  cpu: "milli",
  memory: "whole",
  "ephemeral-storage": "whole",
};

/** Whether the field is a limit that the container does not have: it can take what the node has. @throws PayloadError */
export function isLimitOfNode(pod: Pod, { resource, containerName }: ResourceField): boolean {
  const [kind, name = ""] = splitOnce(resource);
  return kind === "limits" && containerOf(pod, containerName).resources?.limits?.[name] === undefined;
}

/**
 * A request or limit of a container in units of the divisor, rounded up.
 *
 * @param node the pod's, where {@link isLimitOfNode}
 * @throws PayloadError for another field, or a container that is not there
 */
export function resourceText(pod: Pod, field: ResourceField, node: Node | undefined): string {
  const [kind, name = ""] = splitOnce(field.resource);
  const unit = units[name];
  if (unit === undefined || (kind !== "limits" && kind !== "requests")) {
    throw new PayloadError(`downwardAPI: "${field.resource}" is no request or limit that can be shown`);
  }
  const given = containerOf(pod, field.containerName).resources?.[kind]?.[name];
  const text = given ?? (kind === "limits" ? node?.status?.allocatable?.[name] : undefined) ?? "0";
  const divisor = parseQuantity(field.divisor ?? "1");
  const amountOf = (quantity: ReturnType<typeof parseQuantity>) =>
    unit === "milli" ? quantity.milliValue() : quantity.value();
  const by = amountOf(divisor.isZero() ? parseQuantity("1") : divisor);
  return String((amountOf(parseQuantity(text)) + by - 1n) / by);
}

function containerOf({ spec }: Pod, name = ""): Container {
  const containers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  const container = containers.find((candidate) => candidate.name === name);
  if (container === undefined) {
    throw new PayloadError(`downwardAPI: the pod has no container "${name}": correct containerName`);
  }
  return container;
}

function splitOnce(resource: string): readonly [string, string?] {
  const dot = resource.indexOf(".");
  return dot < 0 ? [resource] : [resource.slice(0, dot), resource.slice(dot + 1)];
}
