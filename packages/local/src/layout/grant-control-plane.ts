/**
 * The users under which the cluster's own components call the API server, and their rights: each has its own user, with
 * the rights that it uses. Nodes get theirs from the node authorizer; the administrator's belong to the user alone.
 */
import type { UserInfo } from "@longshore/apiserver";
import { type AccessRule, accessRules, type RuleVerb } from "@longshore/deployment";
import { isAlreadyExists, type KubeClient, type KubeObject, type Resource } from "@longshore/kube";
import { sidecarNames } from "@longshore/sidecars";
import { type ClusterConfig, driverNames } from "./cluster-config.ts";

/** The controllers of the control plane, with scheduler and workloads. */
export const controllerManagerUser: UserInfo = {
  name: "longshore:controller-manager",
  groups: ["system:authenticated"],
};
/** The user of the sidecars next to the driver's controller. */
export const csiControllerUser: UserInfo = {
  name: "longshore:csi-controller",
  groups: ["system:authenticated"],
};

const cached: readonly RuleVerb[] = ["list", "watch"];
const storage = "storage.k8s.io";

/** What the controllers do, by resource. */
const controllerManagerRules: readonly AccessRule[] = [
  {
    group: "",
    resource: "pods",
    verbs: [...cached, "create", "patch", "delete"],
    reason: "pods of sets and Jobs, and which volumes pods need",
  },
  { group: "", resource: "pods/binding", verbs: ["create"], reason: "the scheduler gives pods their nodes" },
  {
    group: "",
    resource: "nodes",
    verbs: [...cached, "get", "update"],
    reason: "where pods can run, and taints of nodes",
  },
  {
    group: "",
    resource: "nodes/status",
    verbs: ["patch"],
    reason: "volumesAttached, and nodes that are silent",
  },
  {
    group: "",
    resource: "persistentvolumeclaims",
    verbs: [...cached, "get", "create", "update"],
    reason: "claims are bound, protected, and made for StatefulSets; the scheduler selects their nodes",
  },
  {
    group: "",
    resource: "persistentvolumeclaims/status",
    verbs: ["update", "patch"],
    reason: "claims become Bound and grow",
  },
  {
    group: "",
    resource: "persistentvolumes",
    verbs: [...cached, "get", "create", "update", "patch", "delete"],
    reason: "volumes are made, bound, protected, expanded and reclaimed",
  },
  { group: "", resource: "persistentvolumes/status", verbs: ["update"], reason: "the phase of volumes" },
  { group: "", resource: "events", verbs: ["create", "patch"], reason: "what has happened" },
  {
    group: "apps",
    resource: "statefulsets",
    verbs: [...cached, "get"],
    reason: "which pods there are to be, and whether a set that adopts them is still there",
  },
  { group: "apps", resource: "statefulsets/status", verbs: ["patch"], reason: "how many there are" },
  {
    group: "apps",
    resource: "controllerrevisions",
    verbs: [...cached, "get", "create", "patch", "delete"],
    reason: "templates that a StatefulSet has had",
  },
  {
    group: "apps",
    resource: "replicasets",
    verbs: [...cached, "get", "create", "patch", "delete"],
    reason: "Deployments make and scale them",
  },
  { group: "apps", resource: "replicasets/status", verbs: ["patch"], reason: "how many pods there are" },
  { group: "apps", resource: "deployments", verbs: [...cached, "patch"], reason: "number of the rollout" },
  { group: "apps", resource: "deployments/status", verbs: ["patch"], reason: "how far the rollout is" },
  { group: "apps", resource: "daemonsets", verbs: cached, reason: "which pods there are to be" },
  { group: "apps", resource: "daemonsets/status", verbs: ["patch"], reason: "on how many nodes they are" },
  { group: "batch", resource: "jobs", verbs: [...cached, "delete"], reason: "which pods there are to be" },
  { group: "batch", resource: "jobs/status", verbs: ["patch"], reason: "how many have ended" },
  { group: "policy", resource: "poddisruptionbudgets", verbs: cached, reason: "who may be evicted" },
  { group: "policy", resource: "poddisruptionbudgets/status", verbs: ["patch"], reason: "how many may be" },
  { group: storage, resource: "storageclasses", verbs: cached, reason: "how volumes are made" },
  {
    group: storage,
    resource: "volumeattributesclasses",
    verbs: [...cached, "update"],
    reason: "classes of attributes stay while claims name them",
  },
  {
    group: storage,
    resource: "csistoragecapacities",
    verbs: cached,
    reason: "whether a driver has room where a pod is to run",
  },
  { group: storage, resource: "csidrivers", verbs: [...cached, "get"], reason: "whether a driver attaches" },
  { group: storage, resource: "csinodes", verbs: [...cached, "get"], reason: "what nodes have migrated" },
  {
    group: storage,
    resource: "volumeattachments",
    verbs: [...cached, "get", "create", "delete"],
    reason: "volumes of CSI drivers are attached and detached",
  },
];

/** What is in kube-system. */
const controllerManagerSystemRules: readonly AccessRule[] = [
  { group: "", resource: "configmaps", verbs: ["create"], reason: "publishes the gates it runs with" },
  {
    group: "",
    resource: "configmaps",
    verbs: ["get", "update"],
    names: ["longshore-control-plane"],
    reason: "publishes the gates it runs with",
  },
  { group: "coordination.k8s.io", resource: "leases", verbs: ["create"], reason: "the election of a leader" },
  {
    group: "coordination.k8s.io",
    resource: "leases",
    verbs: ["get", "update"],
    names: ["longshore-controller-manager"],
    reason: "the election of a leader",
  },
];

const nodeLeaseRules: readonly AccessRule[] = [
  { group: "coordination.k8s.io", resource: "leases", verbs: ["get"], reason: "nodes that are silent" },
];

/** In-tree code that makes volumes with secrets, and leaves secrets for the nodes that mount them. */
const inTreeSecretRules: readonly AccessRule[] = [
  {
    group: "",
    resource: "secrets",
    verbs: ["get"],
    reason: "Ceph RBD: images are made with the users' keys",
  },
  {
    group: "",
    resource: "secrets",
    verbs: ["create", "update"],
    reason: "Azure File: the key of a share's account",
  },
];

/** The plugins whose in-tree code does so. */
const pluginsWithSecrets: ReadonlySet<string> = new Set(["azure-file", "rbd"]);

const shareKeyRule: AccessRule = {
  group: "",
  resource: "secrets",
  verbs: ["create"],
  reason: "the driver of Azure Files keeps the key of a share's account",
};

/** What the grants depend on. */
type Granted = Pick<ClusterConfig, "plugins" | "ownDriver" | "withoutInTreePlugins">;

/** Roles and bindings of both users. */
export function controlPlaneRoles(config: Granted): readonly KubeObject[] {
  const needsOf = (driver: string) => ({
    driver,
    leaderElection: false,
    topology: true,
    attach: true,
    snapshot: true,
    groupSnapshot: true,
    capacity: true,
    modify: true,
    nodeDeployment: false,
    owners: [],
  });
  const needs = driverNames(config).map(needsOf);
  const rulesOf = (name: Parameters<typeof accessRules>[0]) =>
    distinct(needs.flatMap((need) => accessRules(name, need)));
  return [
    ...roleFor(controllerManagerUser, undefined, [
      ...controllerManagerRules,
      ...(hasInTreeSecrets(config) ? inTreeSecretRules : []),
      ...rulesOf("snapshot-controller"),
    ]),
    ...roleFor(controllerManagerUser, "kube-system", controllerManagerSystemRules),
    ...roleFor(controllerManagerUser, "kube-node-lease", nodeLeaseRules),
    // The driver's secrets may be in any namespace: the user who tries a driver here chooses it.
    ...roleFor(csiControllerUser, undefined, [
      ...sidecarNames.flatMap(rulesOf),
      ...(config.plugins.includes("azure-file") ? [shareKeyRule] : []),
    ]),
  ];
}

function hasInTreeSecrets({ plugins, withoutInTreePlugins }: Granted): boolean {
  return withoutInTreePlugins !== true && plugins.some((name) => pluginsWithSecrets.has(name));
}

function distinct(rules: readonly AccessRule[]): readonly AccessRule[] {
  return [...new Map(rules.map((rule) => [JSON.stringify(rule), rule])).values()];
}

/** Grants both users their rights. Existing roles are brought up to date. */
export async function grantControlPlane(
  kube: KubeClient,
  config: Granted,
  signal: AbortSignal,
): Promise<void> {
  for (const object of controlPlaneRoles(config)) {
    const resource = rbacResource(object);
    try {
      await kube.create(resource, object, { signal });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      await kube.update(resource, object, { signal });
    }
  }
}

const rbac = "rbac.authorization.k8s.io";

function roleFor(
  user: UserInfo,
  namespace: string | undefined,
  rules: readonly AccessRule[],
): readonly KubeObject[] {
  const kind = namespace === undefined ? "ClusterRole" : "Role";
  const metadata = { name: user.name, ...(namespace === undefined ? {} : { namespace }) };
  const roleRef = { apiGroup: rbac, kind, name: user.name };
  return [
    {
      apiVersion: `${rbac}/v1`,
      kind,
      metadata,
      rules: rules.map(({ group, resource, verbs, names }) => ({
        apiGroups: [group],
        resources: [resource],
        ...(names === undefined ? {} : { resourceNames: names }),
        verbs,
      })),
    } as KubeObject,
    {
      apiVersion: `${rbac}/v1`,
      kind: `${kind}Binding`,
      metadata,
      subjects: [{ apiGroup: rbac, kind: "User", name: user.name }],
      roleRef,
    } as KubeObject,
  ];
}

function rbacResource({ kind = "" }: KubeObject): Resource<KubeObject> {
  const namespaced = !kind.startsWith("Cluster");
  return { group: rbac, versions: ["v1"], kind, plural: `${kind.toLowerCase()}s`, namespaced };
}
