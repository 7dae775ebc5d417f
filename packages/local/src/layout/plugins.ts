/**
 * The in-tree plugins that a local cluster can carry: one table of what a cluster needs so that a plugin's volumes are
 * made, used and carried over. A plugin more is an entry more.
 */
import type {
  CSIDriver,
  PersistentVolumeSpec,
  Secret,
  SecretReference,
  StorageClass,
  Volume,
} from "@longshore/kube";
import { crossingSubject, UnknownPluginError } from "@longshore/migration";
import { defaultCephUsers } from "@longshore/reference-driver";
import { type InTreeSourceName, type MigrationGates, migrationGates } from "@longshore/translation";
import { type CloudProvider, cloudProviders } from "@longshore/volumes";

/** Short name of a plugin, and of its provider: `aws-ebs`. */
export type PluginName = CloudProvider;

/** What a local cluster has for one plugin. */
export interface ClusterPlugin extends MigrationGates {
  readonly name: PluginName;
  /** Its classes; the claims of demo and qualification are of the first. */
  readonly classes: readonly [StorageClass, ...StorageClass[]];
  /** What its volumes are made and mounted with. */
  readonly secrets: readonly Secret[];
  /** How the driver is used: the driver's CSIDriver. */
  readonly csiDriver: CSIDriver["spec"];
  /** Several nodes can have a volume at once, for writing. */
  readonly isShared: boolean;
  /** Its in-tree plugin makes volumes of mode Block. */
  readonly hasDevices: boolean;
  /** Its in-tree plugin expands volumes. */
  readonly growsInTree: boolean;
  /** Has zones: a volume is bound to the zone in which it was made. */
  readonly isZonal: boolean;
  /** Driver and sidecars attach with calls of the controller; otherwise the node does all. */
  readonly controllerPublishes: boolean;
  /** The member of a PersistentVolume's spec that is the plugin's. */
  readonly source: InTreeSourceName;
  /** Members of the source that say which volume it is; the last one says it alone. */
  readonly identity: readonly [string, ...string[]];
  /** What a pod's own volume cannot say of the source. */
  readonly notInline: readonly string[];
  /**
   * What of a volume handle says which volume of the provider it is: two handles of one volume, the driver's own and the
   * translated one, are equal in it. Undefined: no handle of this plugin.
   */
  volumeIdentity(volumeHandle: string): string | undefined;
}

/** The class of the plugin's volumes. */
export const classNameOf = (plugin: ClusterPlugin): string => plugin.classes[0].metadata?.name ?? "";

/** Pods may name the driver themselves, which learns so from what it is given of the pod. */
const forPods: CSIDriver["spec"] = {
  podInfoOnMount: true,
  volumeLifecycleModes: ["Persistent", "Ephemeral"],
};
const attached: CSIDriver["spec"] = { ...forPods, attachRequired: true };
const notAttached: CSIDriver["spec"] = { ...forPods, attachRequired: false };

/** A class of this plugin whose volumes can grow. */
function classOf(
  name: string,
  plugin: PluginName,
  parameters: Readonly<Record<string, string>>,
  more: Partial<StorageClass> = {},
): StorageClass {
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name },
    provisioner: `kubernetes.io/${plugin}`,
    parameters,
    allowVolumeExpansion: true,
    ...more,
  };
}

/** The volume is made where its pod is to run. */
const waits = { volumeBindingMode: "WaitForFirstConsumer" } as const;

/** The key of a Ceph user of the reference cloud. */
function cephSecret(namespace: string, name: string, user: "admin" | "kube"): Secret {
  // In-tree code reads `key`, and the user from the class; the driver reads `userID` and `userKey`.
  const key = defaultCephUsers[user] ?? "";
  const stringData = { key, userID: user, userKey: key };
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace },
    type: "kubernetes.io/rbd",
    stringData,
  };
}

/**
 * An Azure account's name is unique among all, so account and share say which share it is: a translated handle may lack the
 * resource group, and what follows the share differs (docs/behaviour/volume-plugins.md 8.3).
 */
function shareIdentity(volumeHandle: string): string | undefined {
  const [, account, share] = volumeHandle.split("#");
  return account && share ? `${account}/${share}`.toLowerCase() : undefined;
}

/** A translated handle has no project (docs/behaviour/volume-plugins.md 8.3); the cluster's is the only one. */
function persistentDiskIdentity(volumeHandle: string): string | undefined {
  return /^projects\/[^/]+\/((?:zones|regions)\/[^/]+\/disks\/[^/]+)$/.exec(volumeHandle)?.[1];
}

type Optional =
  | "secrets"
  | "isShared"
  | "hasDevices"
  | "growsInTree"
  | "controllerPublishes"
  | "notInline"
  | "volumeIdentity";
type Entry = Omit<ClusterPlugin, keyof MigrationGates | "name" | Optional> &
  Partial<Pick<ClusterPlugin, Optional>>;

const entries: Readonly<Record<PluginName, Entry>> = {
  "aws-ebs": {
    classes: [classOf("gp2", "aws-ebs", { type: "gp2", fsType: "ext4" }, waits)],
    csiDriver: attached,
    isZonal: true,
    source: "awsElasticBlockStore",
    identity: ["volumeID"],
  },
  "gce-pd": {
    classes: [
      classOf("pd-ssd", "gce-pd", { type: "pd-ssd", fstype: "ext4" }, waits),
      classOf("pd-regional", "gce-pd", { type: "pd-standard", "replication-type": "regional-pd" }, waits),
    ],
    csiDriver: attached,
    isZonal: true,
    source: "gcePersistentDisk",
    identity: ["pdName"],
    volumeIdentity: persistentDiskIdentity,
  },
  "azure-disk": {
    classes: [
      classOf(
        "managed-premium",
        "azure-disk",
        { skuName: "Premium_LRS", kind: "Managed", cachingMode: "ReadOnly", fsType: "ext4" },
        waits,
      ),
    ],
    csiDriver: { ...attached, fsGroupPolicy: "File" },
    isZonal: true,
    source: "azureDisk",
    identity: ["diskName", "diskURI"],
  },
  "azure-file": {
    classes: [classOf("azurefile", "azure-file", { skuName: "Standard_LRS" })],
    csiDriver: { ...notAttached, fsGroupPolicy: "ReadWriteOnceWithFSType" },
    isShared: true,
    hasDevices: false,
    isZonal: false,
    controllerPublishes: false,
    source: "azureFile",
    identity: ["secretName", "shareName"],
    notInline: ["secretNamespace"],
    volumeIdentity: shareIdentity,
  },
  cinder: {
    classes: [classOf("cinder", "cinder", { type: "ssd", fsType: "ext4" }, waits)],
    csiDriver: attached,
    isZonal: true,
    source: "cinder",
    identity: ["volumeID"],
  },
  "vsphere-volume": {
    classes: [
      classOf("vsphere-thin", "vsphere-volume", {
        diskformat: "thin",
        storagePolicyName: "gold",
        fstype: "ext4",
      }),
    ],
    csiDriver: attached,
    growsInTree: false,
    isZonal: false,
    source: "vsphereVolume",
    identity: ["volumePath"],
    // A pod's own volume cannot carry a storage policy through CSI.
    notInline: ["storagePolicyName", "storagePolicyID"],
  },
  "portworx-volume": {
    classes: [classOf("px-repl1", "portworx-volume", { repl: "1", fs: "ext4" })],
    csiDriver: notAttached,
    hasDevices: false,
    isZonal: false,
    controllerPublishes: false,
    source: "portworxVolume",
    identity: ["volumeID"],
  },
  rbd: {
    classes: [
      classOf("rbd", "rbd", {
        monitors: "127.0.0.1:6789",
        pool: "rbd",
        adminId: "admin",
        adminSecretName: "ceph-admin-secret",
        adminSecretNamespace: "default",
        userId: "kube",
        userSecretName: "ceph-user-secret",
        userSecretNamespace: "default",
        imageFormat: "2",
        imageFeatures: "layering",
        fsType: "ext4",
      }),
    ],
    // In the namespace of the pods: a pod that names the image itself has its secret there.
    secrets: [
      cephSecret("default", "ceph-admin-secret", "admin"),
      cephSecret("default", "ceph-user-secret", "kube"),
    ],
    // The driver attaches nothing, but attachments in the API keep a second writer off.
    csiDriver: attached,
    isZonal: false,
    controllerPublishes: false,
    source: "rbd",
    identity: ["image"],
  },
};

/** All plugins of the table. */
export const clusterPlugins: readonly ClusterPlugin[] = cloudProviders.map(pluginOf);

/** The plugin's entry. */
export function clusterPlugin(name: PluginName): ClusterPlugin {
  return clusterPlugins.find((plugin) => plugin.name === name) as ClusterPlugin;
}

/** What the plugin's in-tree source says; undefined for a volume of another plugin. */
export function inTreeSource(
  plugin: Pick<ClusterPlugin, "source">,
  spec: PersistentVolumeSpec | undefined,
): Readonly<Record<string, unknown>> | undefined {
  return (spec as Readonly<Record<string, Readonly<Record<string, unknown>>>> | undefined)?.[plugin.source];
}

/** How an in-tree volume is named at its provider; undefined for a volume that is of none of these plugins. */
export function inTreeHandle(spec: PersistentVolumeSpec | undefined): string | undefined {
  for (const plugin of clusterPlugins) {
    const source = inTreeSource(plugin, spec);
    if (source !== undefined) return String(source[plugin.identity.at(-1) as string]);
  }
  return undefined;
}

/** The volume as a pod names it itself; undefined for a volume of another plugin. */
export function inlineVolume(
  plugin: ClusterPlugin,
  spec: PersistentVolumeSpec | undefined,
): Omit<Volume, "name"> | undefined {
  const source = inTreeSource(plugin, spec);
  if (source === undefined) return undefined;
  const members = Object.entries(source).filter(([member]) => !plugin.notInline.includes(member));
  // A pod's secret is in its own namespace.
  const { secretRef, ...rest } = Object.fromEntries(members) as { readonly secretRef?: SecretReference };
  return {
    [plugin.source]: { ...rest, ...(secretRef === undefined ? {} : { secretRef: { name: secretRef.name } }) },
  };
}

/** What stands for all of them where plugins are named. */
export const everyPlugin = "all";

/**
 * The plugins that are meant by these names (short, in-tree or of the driver), each once, in the order of the names.
 *
 * @param all what `all` stands for
 * @throws UnknownPluginError
 */
export function pluginsNamed(
  names: readonly string[],
  all: readonly PluginName[] = cloudProviders,
): readonly PluginName[] {
  const meant = names.flatMap((name) => {
    if (name === everyPlugin) return all;
    const { shortName } = subjectNamed(name);
    return cloudProviders.filter((plugin) => plugin === shortName);
  });
  return [...new Set(meant)];
}

function subjectNamed(name: string) {
  try {
    return crossingSubject(name);
  } catch (error) {
    if (!(error instanceof UnknownPluginError)) throw error;
    throw new UnknownPluginError(`${error.message}, ${everyPlugin}`);
  }
}

function pluginOf(name: PluginName): ClusterPlugin {
  const gates = migrationGates.find(({ inTreeName }) => inTreeName === `kubernetes.io/${name}`);
  if (gates === undefined) throw new Error(`no migration gates for the plugin ${name}`);
  return {
    ...gates,
    name,
    secrets: [],
    isShared: false,
    hasDevices: true,
    growsInTree: true,
    controllerPublishes: true,
    notInline: [],
    volumeIdentity: (volumeHandle) => volumeHandle,
    ...entries[name],
  };
}
