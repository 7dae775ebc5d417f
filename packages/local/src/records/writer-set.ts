/** The writers of records as Kubernetes objects: a StatefulSet, its budget, and the claim of a volume that its pods share. */
import type { PersistentVolumeClaim, PodDisruptionBudget, StatefulSet } from "@longshore/kube";
import { classNameOf, clusterPlugin, type PluginName } from "../layout/plugins.ts";
import { claimVolume, namespace } from "./volume-pod.ts";

/** How the writers run. */
export interface WriterSetOptions {
  readonly replicas: number;
  /** Program and arguments of a writer; the volume's directory is `$(LONGSHORE_MOUNT_DATA)`. */
  readonly command: readonly string[];
  /** Whose volumes they write to; default `aws-ebs`. */
  readonly plugin?: PluginName;
}

const defaultPlugin = "aws-ebs";
const size = "32Mi";

/** The name of a plugin's writers. */
export const writerSetName = (plugin: PluginName = defaultPlugin): string =>
  plugin === defaultPlugin ? "writer" : `writer-${plugin}`;

/** The labels of a plugin's writers. */
export const writerLabels = (plugin?: PluginName): { readonly app: string } => ({
  app: writerSetName(plugin),
});

/** The claim of a writer's volume. */
export function writerClaimName(plugin: PluginName, ordinal: number): string {
  const set = writerSetName(plugin);
  return clusterPlugin(plugin).isShared ? sharedClaimName(plugin) : `data-${set}-${ordinal}`;
}

const sharedClaimName = (plugin: PluginName) => `data-${writerSetName(plugin)}`;

/**
 * A command on the directory that a writer has: the volume's, `$(LONGSHORE_MOUNT_DATA)`; on a volume that is shared a
 * directory of its own there. `writer`: the pod's name, or how the pod itself says it.
 */
export function writerCommandOn(
  plugin: PluginName,
  command: readonly string[],
  writer = "$(POD_NAME)",
): string[] {
  const own = clusterPlugin(plugin).isShared ? `${mount}/${writer}` : mount;
  return command.map((word) => word.replaceAll(mount, own));
}

const mount = "$(LONGSHORE_MOUNT_DATA)";

/** The StatefulSet of writers, no two of them on a node: one volume each, or one for all where nodes can share it. */
export function writerSet({ replicas, command, plugin = defaultPlugin }: WriterSetOptions): StatefulSet {
  const name = writerSetName(plugin);
  const labels = writerLabels(plugin);
  const { isShared } = clusterPlugin(plugin);
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name, namespace },
    spec: {
      serviceName: name,
      replicas,
      podManagementPolicy: "Parallel",
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 5,
          affinity: {
            podAntiAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: [
                { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: labels } },
              ],
            },
          },
          containers: [
            {
              name: "writer",
              image: "host",
              command: writerCommandOn(plugin, command),
              env: [{ name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
              volumeMounts: [{ name: "data", mountPath: "/data" }],
            },
          ],
          ...(isShared ? { volumes: [{ name: "data", ...claimVolume(sharedClaimName(plugin)) }] } : {}),
        },
      },
      ...(isShared
        ? {}
        : { volumeClaimTemplates: [{ metadata: { name: "data" }, spec: claimSpec(plugin) }] }),
    },
  };
}

/** The claims that the writers need beforehand: that of a volume that they share. */
export function writerClaims(plugin: PluginName): readonly PersistentVolumeClaim[] {
  if (!clusterPlugin(plugin).isShared) return [];
  const metadata = { name: sharedClaimName(plugin), namespace };
  return [{ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata, spec: claimSpec(plugin) }];
}

/** Lets one writer of a plugin at a time be evicted. */
export function writerBudget(plugin?: PluginName): PodDisruptionBudget {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: writerSetName(plugin), namespace },
    spec: { maxUnavailable: 1, selector: { matchLabels: writerLabels(plugin) } },
  };
}

function claimSpec(name: PluginName): NonNullable<PersistentVolumeClaim["spec"]> {
  const plugin = clusterPlugin(name);
  return {
    accessModes: [plugin.isShared ? "ReadWriteMany" : "ReadWriteOnce"],
    storageClassName: classNameOf(plugin),
    resources: { requests: { storage: size } },
  };
}
