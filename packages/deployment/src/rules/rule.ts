/**
 * What a component may do at the API server, as a list of rules that each say why. Rendering makes roles of them,
 * and tests run every component with exactly these rights, and with each of them taken away.
 */

/** Verbs of the API that our components use. */
export type RuleVerb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete";

/**
 * Where a rule holds: in the whole cluster; in the namespace of the deployment; in `default`, where events about
 * objects without a namespace are; in the namespaces in which the driver's secrets are.
 */
export type RuleScope = "cluster" | "own-namespace" | "default-namespace" | "secret-namespaces";

/** One resource and what is done with it. */
export interface AccessRule {
  /** API group; empty for the core group. */
  readonly group: string;
  /** Plural name, with the sub-resource after a slash. */
  readonly resource: string;
  readonly verbs: readonly RuleVerb[];
  /** Default: the whole cluster. */
  readonly scope?: RuleScope;
  /** The only objects meant, where their names are known. */
  readonly names?: readonly string[];
  /** What the component does with it, in half a sentence. */
  readonly reason: string;
}

/** What parts of a component are in use; it needs no right for the others. */
export interface AccessNeeds {
  /** The driver's name, of which names of Leases are made. */
  readonly driver: string;
  /** Instances elect a leader. */
  readonly leaderElection: boolean;
  /** The driver has topology: nodes say where volumes can be. */
  readonly topology: boolean;
  /** The driver attaches volumes. */
  readonly attach: boolean;
  /** Volumes are made of snapshots. */
  readonly snapshot: boolean;
  /** Snapshots are taken of several volumes at once. */
  readonly groupSnapshot: boolean;
  /** Capacity is published for the scheduler. */
  readonly capacity: boolean;
  /** Volumes are modified (VolumeAttributesClass). */
  readonly modify: boolean;
  /** The provisioner runs on each node. */
  readonly nodeDeployment: boolean;
  /** Workloads (apps/v1, by plural name) above a pod of the component, from the pod upwards. */
  readonly owners: readonly { readonly resource: string; readonly name?: string }[];
}

/** Returns the rules of a component. */
export type ComponentRules = (needs: AccessNeeds) => readonly AccessRule[];

/** An informer: one list, and a watch from there on. */
export const cached: readonly RuleVerb[] = ["list", "watch"];

/** The API group of volumes' attachments, nodes and classes. */
export const storageGroup = "storage.k8s.io";
/** The API group of snapshots. */
export const snapshotGroup = "snapshot.storage.k8s.io";
/** The API group of group snapshots. */
export const groupSnapshotGroup = "groupsnapshot.storage.k8s.io";

/** Leader election on the Lease of this name. Its creation cannot be limited to a name: it is not there yet. */
export function leaseRules(name: string): readonly AccessRule[] {
  const lease = { group: "coordination.k8s.io", resource: "leases", scope: "own-namespace" } as const;
  return [
    { ...lease, verbs: ["create"], reason: "the first candidate makes the Lease of the election" },
    {
      ...lease,
      verbs: ["get", "update"],
      names: [name],
      reason: "the leader renews its Lease, others look at it",
    },
  ];
}

/** Events about the Lease, for components that may not write events in every namespace anyway. */
export const leaseEvents: AccessRule = {
  group: "",
  resource: "events",
  scope: "own-namespace",
  verbs: ["create"],
  reason: "says on the Lease who leads",
};

/** Events about objects with a namespace, which are in that namespace. */
export const namespacedEvents = (about: string): AccessRule => ({
  group: "",
  resource: "events",
  verbs: ["create", "patch"],
  reason: `reports what happened to ${about}; what happens again is counted in the same event`,
});

/** Events about objects of the cluster, which are in `default`. */
export const clusterEvents = (about: string): AccessRule => ({
  ...namespacedEvents(about),
  scope: "default-namespace",
});

/** Secrets are fetched by name when a call needs them, never listed. */
export const secretsFor = (calls: string): AccessRule => ({
  group: "",
  resource: "secrets",
  verbs: ["get"],
  scope: "secret-namespaces",
  reason: `${calls}: the secret that class or volume names`,
});
