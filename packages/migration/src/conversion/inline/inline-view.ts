/** What a plan for pod templates looks at, read once for all of them. */
import {
  type CSIDriver,
  type CSINode,
  type KubeClient,
  type KubeObject,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type Resource,
  resources,
  type Stored,
} from "@longshore/kube";
import { listAll } from "../conversion-view.ts";

type Of<T extends KubeObject> = readonly Stored<T>[];

/** All that was read. */
export interface InlineView {
  readonly volumes: Of<PersistentVolume>;
  readonly claims: Of<PersistentVolumeClaim>;
  readonly pods: Of<Pod>;
  readonly csiNodes: Of<CSINode>;
  readonly csiDrivers: Of<CSIDriver>;
  /** Of every kind that has a template of pods, with `apiVersion` and `kind`. */
  readonly workloads: Of<KubeObject>;
}

const cronJobs: Resource<KubeObject> = {
  group: "batch",
  versions: ["v1", "v1beta1"],
  kind: "CronJob",
  plural: "cronjobs",
  namespaced: true,
};
const replicationControllers: Resource<KubeObject> = {
  group: "",
  versions: ["v1"],
  kind: "ReplicationController",
  plural: "replicationcontrollers",
  namespaced: true,
};

const kinds: readonly Resource<KubeObject>[] = [
  resources.deployments,
  resources.statefulSets,
  resources.replicaSets,
  resources.daemonSets,
  resources.jobs,
  cronJobs,
  replicationControllers,
];

/** Reads it. @throws what the client throws */
export async function readInlineView(kube: KubeClient, signal: AbortSignal): Promise<InlineView> {
  const all = <T extends KubeObject>(resource: Resource<T>) => listAll(kube, resource, signal);
  const workloads: Stored[] = [];
  for (const resource of kinds) {
    const { group, kind, versions } = resource;
    const apiVersion = group === "" ? versions[0] : `${group}/${versions[0]}`;
    // Items of a list come without these.
    for (const item of await all(resource)) workloads.push({ ...item, apiVersion, kind });
  }
  return {
    volumes: await all(resources.persistentVolumes),
    claims: await all(resources.persistentVolumeClaims),
    pods: await all(resources.pods),
    csiNodes: await all(resources.csiNodes),
    csiDrivers: await all(resources.csiDrivers),
    workloads,
  };
}
