/**
 * Features of claims, classes and pods that some volumes refuse. Each is tried twice, on a volume of the in-tree plugin and on a
 * migrated one, and what came of it is compared. Pure.
 */
import type { PersistentVolumeClaim, Pod, StorageClass } from "@longshore/kube";
import { type ClusterPlugin, classNameOf } from "../layout/plugins.ts";
import { withDevices } from "../records/device-volumes.ts";
import { claimVolume, type PodWork, volumeName, volumePod } from "../records/volume-pod.ts";
import { claimOf } from "./claim-of.ts";
import type { Feature } from "./qualification-report.ts";

/** The objects of one attempt. The names of claim, class and pod are that of the attempt. */
export interface FeatureObjects {
  /** Left out where the claim is of the plugin's own class. */
  readonly storageClass?: StorageClass;
  /** Left out where the pod brings its own. */
  readonly claim?: PersistentVolumeClaim;
  readonly pod: Pod;
}

/** What makes the objects of a feature differ from plain ones. */
interface FeatureChange {
  readonly claim?: Partial<NonNullable<PersistentVolumeClaim["spec"]>>;
  readonly storageClass?: Partial<StorageClass>;
  readonly pod?: (pod: Pod, plugin: ClusterPlugin) => Pod;
}

/** A claim with a data source that only drivers make use of. */
const snapshot = { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "not-there" };
const ownGroup = 2000;

const changes: Readonly<Record<Feature, FeatureChange>> = {
  "access mode ReadWriteMany": { claim: { accessModes: ["ReadWriteMany"] } },
  "access mode ReadWriteOncePod": { claim: { accessModes: ["ReadWriteOncePod"] } },
  "volume mode Block": { claim: { volumeMode: "Block" }, pod: withDevices },
  selector: { claim: { selector: { matchLabels: { disk: "mine" } } } },
  "data source": { claim: { dataSource: snapshot } },
  "mount options": { storageClass: { mountOptions: ["noatime"] } },
  "class parameter that does not exist": { storageClass: { parameters: { longshoreUnknown: "1" } } },
  subPath: { pod: withSubPath },
  fsGroup: { pod: (pod) => withSpec(pod, { securityContext: { fsGroup: ownGroup } }) },
  "generic ephemeral volume": { pod: ephemeralOf },
};

/** What to do where a feature is served in-tree and refused migrated. */
export const featureRemedies: Readonly<Record<Feature, string>> = {
  "access mode ReadWriteMany":
    "let the driver take MULTI_NODE_MULTI_WRITER, or change the claims that ask for it",
  "access mode ReadWriteOncePod":
    "let the driver take SINGLE_NODE_WRITER, or change the claims that ask for it",
  "volume mode Block":
    "let the driver take capabilities of block volumes, or keep the claims of mode Block off it",
  selector: "take spec.selector off the claims",
  "data source": "let the driver make volumes from the source, or take spec.dataSource off the claims",
  "mount options": "let the driver take the mount flags, or take mountOptions off the class",
  "class parameter that does not exist": "take the parameter off the class",
  subPath: "look at the log of the node's agent, and at what the driver publishes: it must be a directory",
  fsGroup: "set fsGroupPolicy of the driver's CSIDriver to what in-tree volumes had",
  "generic ephemeral volume": "look at the events of the claim that the pod brought",
};

/** The objects of an attempt. `command` is that of a writer of records. */
export function featureObjects(
  plugin: ClusterPlugin,
  feature: Feature,
  name: string,
  command: readonly string[],
): FeatureObjects {
  const change = changes[feature];
  const storageClass = classOf(plugin, name, change.storageClass);
  const plain = claimOf(plugin, name, "1Gi");
  const ofClass = storageClass === undefined ? {} : { storageClassName: name };
  const claim = { ...plain, spec: { ...plain.spec, ...change.claim, ...ofClass } };
  const work: PodWork = { name, command, volume: claimVolume(name) };
  const pod = change.pod === undefined ? volumePod(work) : change.pod(volumePod(work), plugin);
  if (feature === "generic ephemeral volume") return { pod };
  return { ...(storageClass === undefined ? {} : { storageClass }), claim, pod };
}

/** The claim that the pod of an attempt uses: its own, or the one that is made for the pod. */
export function claimNameOf(feature: Feature, name: string): string {
  return feature === "generic ephemeral volume" ? `${name}-${volumeName}` : name;
}

/** A class of the plugin with what the feature changes of it. */
function classOf(
  plugin: ClusterPlugin,
  name: string,
  change: Partial<StorageClass> | undefined,
): StorageClass | undefined {
  if (change === undefined) return undefined;
  const [plain] = plugin.classes;
  const parameters = { ...plain.parameters, ...change.parameters };
  return { ...plain, ...change, metadata: { name }, parameters };
}

function withSpec(pod: Pod, change: Partial<NonNullable<Pod["spec"]>>): Pod {
  return pod.spec === undefined ? pod : { ...pod, spec: { ...pod.spec, ...change } };
}

type Containers = NonNullable<Pod["spec"]>["containers"];

function withContainers(pod: Pod, change: (container: Containers[number]) => Containers[number]): Pod {
  return withSpec(pod, { containers: (pod.spec?.containers ?? []).map(change) });
}

function withSubPath(pod: Pod): Pod {
  return withContainers(pod, ({ volumeMounts = [], ...container }) => ({
    ...container,
    volumeMounts: volumeMounts.map((mount) => ({ ...mount, subPath: "below" })),
  }));
}

/** The pod with a claim of its own in place of one that is there. */
function ephemeralOf(pod: Pod, plugin: ClusterPlugin): Pod {
  const { accessModes, resources } = claimOf(plugin, "", "1Gi").spec ?? {};
  const spec = { accessModes, resources, storageClassName: classNameOf(plugin) };
  const volumes = [{ name: volumeName, ephemeral: { volumeClaimTemplate: { spec } } }];
  return withSpec(pod, { volumes: volumes as NonNullable<NonNullable<Pod["spec"]>["volumes"]> });
}
