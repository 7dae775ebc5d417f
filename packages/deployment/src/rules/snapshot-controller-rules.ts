/** What the snapshot controller, one per cluster, may do (docs/behaviour/sidecars.md 5). */
import {
  type AccessRule,
  type ComponentRules,
  cached,
  groupSnapshotGroup,
  leaseRules,
  namespacedEvents,
  snapshotGroup,
} from "./rule.ts";

/** Its Lease. */
const lease = "snapshot-controller-leader";

/** The access rules of the snapshot controller. */
export const snapshotControllerRules: ComponentRules = ({ leaderElection, groupSnapshot }) => [
  ...kindRules(snapshotGroup, "volumesnapshot"),
  {
    group: "",
    resource: "persistentvolumeclaims",
    verbs: cached,
    reason: "the claims of which snapshots are made",
  },
  {
    group: "",
    resource: "persistentvolumeclaims",
    verbs: ["update"],
    reason: "a claim stays while a snapshot of it is made",
  },
  { group: "", resource: "persistentvolumes", verbs: ["get"], reason: "the handle of a claim's volume" },
  ...(groupSnapshot ? groupRules : []),
  namespacedEvents("a snapshot or its content"),
  ...(leaderElection ? leaseRules(lease) : []),
];

/** Objects of users, their contents and their classes, of single snapshots or of groups. */
function kindRules(group: string, singular: string): readonly AccessRule[] {
  return [
    {
      group,
      resource: `${singular}s`,
      verbs: [...cached, "get", "patch"],
      reason: "what users ask for; its finalizers keep it while something depends on it",
    },
    { group, resource: `${singular}s/status`, verbs: ["patch"], reason: "what has become of it" },
    {
      group,
      resource: `${singular}contents`,
      verbs: [...cached, "get", "create", "patch", "delete"],
      reason: "the content stands for the driver's side of it",
    },
    { group, resource: `${singular}classes`, verbs: cached, reason: "driver and parameters" },
  ];
}

const groupRules: readonly AccessRule[] = [
  ...kindRules(groupSnapshotGroup, "volumegroupsnapshot"),
  {
    group: snapshotGroup,
    resource: "volumesnapshots",
    verbs: ["create", "delete"],
    reason: "each volume of a group has a snapshot of its own, which goes with the group",
  },
  {
    group: snapshotGroup,
    resource: "volumesnapshotcontents/status",
    verbs: ["patch"],
    reason: "the handle of the snapshot of one volume of a group",
  },
  { group: "", resource: "persistentvolumes", verbs: cached, reason: "whose volume a handle of a group is" },
];
