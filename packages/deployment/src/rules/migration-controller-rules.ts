/** What Gardener's CSI migration controller may do in the seed (docs/behaviour/migration-controllers.md A4). */
import { type AccessRule, cached, clusterEvents, leaseEvents, leaseRules } from "./rule.ts";

/** Name of the Lease of the migration controller of a provider type: those of several providers share a seed. */
export function migrationControllerLease(providerType: string): string {
  return `longshore-migration-controller-${providerType}`;
}

/** The access rules of the migration controller of a provider type; in shoots it has what their kubeconfig gives. */
export function migrationControllerRules(providerType: string): readonly AccessRule[] {
  const extensions = "extensions.gardener.cloud";
  return [
    {
      group: extensions,
      resource: "clusters",
      verbs: cached,
      reason: "the shoots, and how far each has come",
    },
    {
      group: extensions,
      resource: "clusters",
      verbs: ["update"],
      reason: "asks for the last gates, and says that it has finished",
    },
    {
      group: extensions,
      resource: "controlplanes",
      verbs: ["get"],
      reason: "a shoot without one is new, and has nothing to migrate",
    },
    {
      group: "",
      resource: "secrets",
      verbs: ["get"],
      names: ["gardener-internal", "gardener"],
      reason: "the kubeconfig of a shoot",
    },
    {
      group: "apps",
      resource: "deployments",
      verbs: ["patch"],
      names: ["kube-apiserver", "kube-controller-manager", "kube-scheduler"],
      reason: "an empty patch, which has the provider's webhook write the Deployment again",
    },
    clusterEvents("a Cluster"),
    ...leaseRules(migrationControllerLease(providerType)),
    leaseEvents,
  ];
}
