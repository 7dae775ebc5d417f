/** What the provisioner may do (docs/behaviour/sidecars.md 2). */
import { leaseName } from "@longshore/storage";
import {
  type AccessNeeds,
  type AccessRule,
  type ComponentRules,
  cached,
  leaseRules,
  namespacedEvents,
  secretsFor,
  snapshotGroup,
  storageGroup,
} from "./rule.ts";

/** The access rules of the provisioner. */
export const provisionerRules: ComponentRules = (needs) => [
  { group: "", resource: "persistentvolumeclaims", verbs: cached, reason: "claims that wait for a volume" },
  {
    group: "",
    resource: "persistentvolumeclaims",
    verbs: ["get", "update"],
    reason: "the intent to make a volume is stored on the claim, and taken off once there is one",
  },
  { group: "", resource: "persistentvolumes", verbs: cached, reason: "volumes that are released" },
  {
    group: "",
    resource: "persistentvolumes",
    verbs: ["get", "create", "patch", "delete"],
    reason: "makes the volume of a claim, keeps it known until its disk is gone, and deletes it then",
  },
  { group: storageGroup, resource: "storageclasses", verbs: cached, reason: "parameters of new volumes" },
  {
    group: storageGroup,
    resource: "csinodes",
    verbs: cached,
    reason: "the driver's topology keys on each node",
  },
  { group: "", resource: "nodes", verbs: cached, reason: "the topology labels of nodes" },
  // Also without an attacher: a driver that could attach has its attachments looked at.
  attachments,
  ...(needs.snapshot ? snapshotSources : []),
  ...(needs.modify ? [attributes] : []),
  ...(needs.capacity ? capacityRules(needs) : []),
  secretsFor("CreateVolume or DeleteVolume"),
  namespacedEvents("a claim or volume"),
  ...(needs.leaderElection ? leaseRules(leaseName("provisioner", needs.driver)) : []),
];

const attachments: AccessRule = {
  group: storageGroup,
  resource: "volumeattachments",
  verbs: cached,
  reason: "a volume that is attached is not deleted",
};

const attributes: AccessRule = {
  group: storageGroup,
  resource: "volumeattributesclasses",
  verbs: ["get"],
  reason: "the attributes with which a volume begins",
};

const snapshotSources: readonly AccessRule[] = [
  {
    group: snapshotGroup,
    resource: "volumesnapshots",
    verbs: ["get", "list", "update"],
    reason: "the snapshot that a volume is made from stays until it is made; what a crash left is swept",
  },
  {
    group: snapshotGroup,
    resource: "volumesnapshotcontents",
    verbs: ["get"],
    reason: "the handle of that snapshot",
  },
];

function capacityRules({ owners }: AccessNeeds): readonly AccessRule[] {
  return [
    {
      group: storageGroup,
      resource: "csistoragecapacities",
      verbs: [...cached, "create", "update", "delete"],
      scope: "own-namespace",
      reason: "publishes to schedulers how much room there is",
    },
    {
      group: "",
      resource: "pods",
      verbs: ["get"],
      scope: "own-namespace",
      reason: "from its own pod upwards, the workload with which those figures go",
    },
    ...owners.map(
      ({ resource, name }): AccessRule => ({
        group: "apps",
        resource,
        verbs: ["get"],
        scope: "own-namespace",
        ...(name === undefined ? {} : { names: [name] }),
        reason: "the workload of its pod",
      }),
    ),
  ];
}
