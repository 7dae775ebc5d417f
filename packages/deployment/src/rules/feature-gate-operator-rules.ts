/** What OpenShift's feature gate operator may do (docs/behaviour/migration-controllers.md B6). */
import { type AccessRule, cached, clusterEvents, leaseEvents, leaseRules, storageGroup } from "./rule.ts";

/** The one FeatureGate, and the one object of each component of the control plane. */
const singleton = ["cluster"];
/** The operator's ClusterOperator and its KubeletConfig. */
const own = ["longshore-feature-gates"];

/** Name of the Lease of the feature gate operator. */
export const featureGateOperatorLease = "longshore-feature-gate-operator";

const operands = ["kubeapiservers", "kubecontrollermanagers", "kubeschedulers"] as const;

/** The access rules of the feature gate operator. */
export function featureGateOperatorRules(): readonly AccessRule[] {
  const config = "config.openshift.io";
  const machines = "machineconfiguration.openshift.io";
  return [
    { group: config, resource: "featuregates", verbs: cached, reason: "which set of gates is asked for" },
    { group: config, resource: "clusteroperators", verbs: cached, reason: "which set is in force" },
    {
      group: config,
      resource: "clusteroperators",
      verbs: ["create"],
      reason: "makes the object on which it reports",
    },
    {
      group: config,
      resource: "clusteroperators/status",
      verbs: ["update"],
      names: own,
      reason: "records the set in force, and reports",
    },
    ...operands.flatMap((resource): readonly AccessRule[] => [
      {
        group: "operator.openshift.io",
        resource,
        verbs: cached,
        reason: "the gates that a component has, and whether it has restarted with them",
      },
      {
        group: "operator.openshift.io",
        resource,
        verbs: ["update"],
        names: singleton,
        reason: "gives a component its gates",
      },
    ]),
    { group: machines, resource: "kubeletconfigs", verbs: cached, reason: "the gates that kubelets have" },
    {
      group: machines,
      resource: "kubeletconfigs",
      verbs: ["create"],
      reason: "gives the kubelets their gates",
    },
    {
      group: machines,
      resource: "kubeletconfigs",
      verbs: ["update", "delete"],
      names: own,
      reason: "changes the kubelets' gates, and takes them back",
    },
    {
      group: machines,
      resource: "machineconfigpools",
      verbs: cached,
      reason: "whether the machines run with their gates",
    },
    {
      group: storageGroup,
      resource: "csinodes",
      verbs: ["list"],
      reason: "whether a node still states migrated plugins, before the control plane leaves them",
    },
    clusterEvents("the FeatureGate"),
    ...leaseRules(featureGateOperatorLease),
    leaseEvents,
  ];
}
