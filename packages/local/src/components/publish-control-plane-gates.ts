/**
 * Where the control plane publishes the gates it runs with, for a program that changed them and waits:
 * the ConfigMap `kube-system/longshore-control-plane`. Each node publishes its gates in an annotation.
 */
import {
  type ConfigMap,
  isAlreadyExists,
  type KubeClient,
  resources,
  updateWithRetry,
} from "@longshore/kube";
import { parseFeatureGates } from "@longshore/runtime";

const controlPlaneRef = { namespace: "kube-system", name: "longshore-control-plane" };
const gatesKey = "feature-gates";

/** The `--feature-gates` form of gate values, sorted by name. */
export function formatFeatureGates(values: Readonly<Record<string, boolean>>): string {
  return Object.entries(values)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
}

/** Publishes the gates that the control plane runs with from now on. */
export async function publishControlPlaneGates(
  kube: KubeClient,
  values: Readonly<Record<string, boolean>>,
  signal: AbortSignal,
): Promise<void> {
  const data = { [gatesKey]: formatFeatureGates(values) };
  const change = (current: ConfigMap) =>
    current.data?.[gatesKey] === data[gatesKey]
      ? undefined
      : { ...current, data: { ...current.data, ...data } };
  for (;;) {
    if ((await kube.get(resources.configMaps, controlPlaneRef, { signal })) !== undefined) {
      await updateWithRetry(
        kube,
        resources.configMaps,
        controlPlaneRef,
        (c) => change(c) as typeof c | undefined,
        {
          signal,
        },
      );
      return;
    }
    const fresh = { apiVersion: "v1", kind: "ConfigMap", metadata: controlPlaneRef, data } as const;
    try {
      await kube.create(resources.configMaps, fresh, { signal });
      return;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }
}

/** The gates that the control plane last said it runs with. */
export async function readControlPlaneGates(
  kube: KubeClient,
  signal: AbortSignal,
): Promise<Readonly<Record<string, boolean>> | undefined> {
  const map = await kube.get(resources.configMaps, controlPlaneRef, { signal });
  const text = map?.data?.[gatesKey];
  return text === undefined ? undefined : parseFeatureGates(text);
}
