/** The environment that a container's spec asks for. Source: core/v1 EnvVar, EnvFromSource. */
import {
  type ConfigMap,
  type Container,
  type EnvVar,
  type KubeClient,
  type Node,
  type Pod,
  resources,
  type Secret,
  type Stored,
} from "@longshore/kube";
import { isLimitOfNode, type ResourceField, resourceText } from "@longshore/volumes";
import { expandVariables } from "../containers/pod-runtime.ts";
import { PodSpecError } from "./pod-spec-error.ts";

/** The objects that the environment takes values from, by name. One that does not exist is not there. */
export interface EnvironmentSources {
  readonly configMaps: ReadonlyMap<string, ConfigMap>;
  readonly secrets: ReadonlyMap<string, Secret>;
  /** The pod's node, read only where a limit is asked for that the container does not have. */
  readonly node: Node | undefined;
}

type ValueSource = NonNullable<EnvVar["valueFrom"]>;

/** Reads the ConfigMaps and Secrets that the container's environment names, each once. @throws PodSpecError, as {@link environmentFrom} */
export async function readEnvironmentSources(
  kube: KubeClient,
  pod: Stored<Pod>,
  container: Container,
  signal: AbortSignal,
): Promise<EnvironmentSources> {
  const namespace = pod.metadata.namespace ?? "default";
  const { env = [], envFrom = [] } = container;
  const configMaps = new Map<string, ConfigMap>();
  const secrets = new Map<string, Secret>();
  const names = (values: readonly (string | undefined)[]) =>
    new Set(values.filter((name) => name !== undefined));
  const keys = env.map(({ valueFrom }) => valueFrom);
  for (const name of names([
    ...envFrom.map((from) => from.configMapRef?.name),
    ...keys.map((from) => from?.configMapKeyRef?.name),
  ])) {
    const found = await kube.get(resources.configMaps, { namespace, name }, { signal });
    if (found !== undefined) configMaps.set(name, found);
  }
  for (const name of names([
    ...envFrom.map((from) => from.secretRef?.name),
    ...keys.map((from) => from?.secretKeyRef?.name),
  ])) {
    const found = await kube.get(resources.secrets, { namespace, name }, { signal });
    if (found !== undefined) secrets.set(name, found);
  }
  const isOfNode = keys.some((from) => {
    const field = from?.resourceFieldRef;
    return field !== undefined && shown(pod, container, () => isLimitOfNode(pod, fieldIn(container, field)));
  });
  const node = isOfNode
    ? await kube.get(resources.nodes, { name: pod.spec?.nodeName ?? "" }, { signal })
    : undefined;
  return { configMaps, secrets, node };
}

/**
 * The environment, with `$(NAME)` replaced by variables before it. Pure.
 *
 * @throws PodSpecError when it names an object, key or field that is not there and not optional; never with a value in it
 */
export function environmentFrom(
  pod: Stored<Pod>,
  container: Container,
  sources: EnvironmentSources,
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const { prefix = "", configMapRef, secretRef } of container.envFrom ?? []) {
    const ref = configMapRef ?? secretRef;
    const values =
      configMapRef === undefined ? secretData(sources, ref?.name) : configData(sources, ref?.name);
    if (values === undefined && ref?.optional !== true) {
      throw missing(pod, container, `${configMapRef === undefined ? "Secret" : "ConfigMap"} "${ref?.name}"`);
    }
    for (const [key, value] of Object.entries(values ?? {})) env[`${prefix}${key}`] = value;
  }
  for (const { name, value, valueFrom } of container.env ?? []) {
    const found =
      valueFrom === undefined
        ? expandVariables(value ?? "", env)
        : variableOf(pod, container, valueFrom, sources);
    if (found !== undefined) env[name] = found;
  }
  return env;
}

function variableOf(
  pod: Stored<Pod>,
  container: Container,
  { fieldRef, configMapKeyRef, secretKeyRef, resourceFieldRef }: ValueSource,
  sources: EnvironmentSources,
): string | undefined {
  if (fieldRef !== undefined) {
    const value = fieldOf(pod, fieldRef.fieldPath);
    if (value === undefined) throw missing(pod, container, `field "${fieldRef.fieldPath}"`);
    return value;
  }
  if (resourceFieldRef !== undefined) {
    return shown(pod, container, () => resourceText(pod, fieldIn(container, resourceFieldRef), sources.node));
  }
  const ref = configMapKeyRef ?? secretKeyRef;
  if (ref === undefined) return undefined;
  const data = configMapKeyRef === undefined ? secretData(sources, ref.name) : configData(sources, ref.name);
  const value = data?.[ref.key];
  if (value === undefined && ref.optional !== true) {
    const kind = configMapKeyRef === undefined ? "Secret" : "ConfigMap";
    throw missing(pod, container, `key "${ref.key}" of ${kind} "${ref.name}"`);
  }
  return value;
}

/** A field that names no container is the container's own. */
function fieldIn({ name }: Container, field: ResourceField): ResourceField {
  return (field.containerName ?? "") === "" ? { ...field, containerName: name } : field;
}

/** @throws PodSpecError in place of an error that names neither pod nor container */
function shown<T>(pod: Pod, container: Container, show: () => T): T {
  try {
    return show();
  } catch (cause) {
    throw new PodSpecError(
      `${environmentOf(pod, container)}: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}

function environmentOf({ metadata }: Pod, { name }: Container): string {
  return `pod ${metadata?.namespace ?? "default"}/${metadata?.name}, env of container "${name}"`;
}

function missing(pod: Pod, container: Container, what: string): PodSpecError {
  return new PodSpecError(
    `${environmentOf(pod, container)}: ${what} is not there: make it, or mark it as optional`,
  );
}

function configData(sources: EnvironmentSources, name = ""): Record<string, string> | undefined {
  const found = sources.configMaps.get(name);
  return found === undefined ? undefined : (found.data ?? {});
}

function secretData(sources: EnvironmentSources, name = ""): Record<string, string> | undefined {
  const found = sources.secrets.get(name);
  if (found === undefined) return undefined;
  const texts = Object.entries(found.data ?? {}).map(([key, bytes]) => [
    key,
    Buffer.from(bytes, "base64").toString("utf8"),
  ]);
  return Object.fromEntries(texts);
}

const keyedField = /^metadata\.(labels|annotations)\['([^']+)'\]$/;

/** The downward API. Pods share the machine's address. */
function fieldOf(pod: Stored<Pod>, path: string): string | undefined {
  const [, map, key] = keyedField.exec(path) ?? [];
  if (map !== undefined && key !== undefined) {
    return pod.metadata[map as "labels" | "annotations"]?.[key] ?? "";
  }
  switch (path) {
    case "metadata.name":
      return pod.metadata.name;
    case "metadata.namespace":
      return pod.metadata.namespace ?? "default";
    case "metadata.uid":
      return pod.metadata.uid;
    case "spec.nodeName":
      return pod.spec?.nodeName ?? "";
    case "spec.serviceAccountName":
      return pod.spec?.serviceAccountName ?? "";
    case "status.hostIP":
    case "status.hostIPs":
    case "status.podIP":
    case "status.podIPs":
      return "127.0.0.1";
    default:
      return undefined;
  }
}
