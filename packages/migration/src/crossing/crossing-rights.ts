/** The rights that a crossing needs in a cluster, as objects of RBAC. */
import type { KubeObject } from "@longshore/kube";
import { crossingNamespace } from "./journal-store.ts";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

const core = [""];
const storage = ["storage.k8s.io"];
const openshiftOperands = ["kubeapiservers", "kubecontrollermanagers", "kubeschedulers"];

const everywhere: readonly Rule[] = [
  // What the preflight looks at, and what each step waits for.
  { apiGroups: core, resources: ["nodes"], verbs: ["get", "list", "update"] },
  {
    apiGroups: core,
    resources: ["pods", "persistentvolumes", "persistentvolumeclaims", "events"],
    verbs: ["list"],
  },
  { apiGroups: storage, resources: ["csinodes"], verbs: ["get", "list"] },
  { apiGroups: storage, resources: ["volumeattachments"], verbs: ["list"] },
  { apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: ["list"] },
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["list"] },
  { apiGroups: core, resources: ["pods/eviction"], verbs: ["create"] },
  // What names the cluster.
  { apiGroups: core, resources: ["namespaces"], verbs: ["get"], resourceNames: ["kube-system"] },
];

const ofOpenShift: readonly Rule[] = [
  { apiGroups: ["config.openshift.io"], resources: ["featuregates"], verbs: ["get", "create", "update"] },
  // What the operator of feature gates records, where it runs.
  {
    apiGroups: ["config.openshift.io"],
    resources: ["clusteroperators"],
    verbs: ["get"],
    resourceNames: ["longshore-feature-gates"],
  },
  { apiGroups: ["operator.openshift.io"], resources: openshiftOperands, verbs: ["get"] },
  { apiGroups: ["machineconfiguration.openshift.io"], resources: ["machineconfigpools"], verbs: ["list"] },
];

/** Journals, the Lease, and what the control plane is said to run with. */
const inKubeSystem: readonly Rule[] = [
  { apiGroups: core, resources: ["configmaps"], verbs: ["get", "create", "update"] },
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get", "create", "update"] },
];

const apiVersion = "rbac.authorization.k8s.io/v1";
const name = "longshore-migrate";

/**
 * A ClusterRole, and a Role in the namespace kube-system, for a crossing on the platform named; for Gardener also a Role for the
 * Shoot, in the garden cluster. A platform that changes files of nodes
 * has the rights of its command beside these.
 */
export function crossingRoles(platform: string): readonly KubeObject[] {
  const rules = platform === "openshift" ? [...everywhere, ...ofOpenShift] : everywhere;
  // In another cluster: the garden has the Shoot, in the namespace of its project.
  const inGarden = {
    apiVersion,
    kind: "Role",
    metadata: { name: `${name}-shoot` },
    rules: [{ apiGroups: ["core.gardener.cloud"], resources: ["shoots"], verbs: ["get", "update"] }],
  } as KubeObject;
  return [
    { apiVersion, kind: "ClusterRole", metadata: { name }, rules } as KubeObject,
    {
      apiVersion,
      kind: "Role",
      metadata: { name, namespace: crossingNamespace },
      rules: inKubeSystem,
    } as KubeObject,
    ...(platform === "gardener" ? [inGarden] : []),
  ];
}
