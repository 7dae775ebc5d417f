/** What the snapshot controller, one per cluster, may do (sidecars.md §5). */
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

/** See the file's header. */
export const snapshotControllerRules: ComponentRules = ({ leaderElection, groupSnapshot }) => [
  ...kind(snapshotGroup, "volumesnapshot"),
  ...(groupSnapshot ? kind(groupSnapshotGroup, "volumegroupsnapshot") : []),
  {
    group: "",
    resource: "persistentvolumeclaims",
    verbs: cached,
    reason: "the claim of which a snapshot is taken",
  },
  {
    group: "",
    resource: "persistentvolumeclaims",
    verbs: ["patch"],
    reason: "a claim stays while a snapshot of it is taken",
  },
  { group: "", resource: "persistentvolumes", verbs: ["get"], reason: "the volume's handle" },
  namespacedEvents("a snapshot"),
  ...(leaderElection ? leaseRules(lease) : []),
];

function kind(group: string, singular: string): readonly AccessRule[] {
  return [
    {
      group,
      resource: `${singular}s`,
      verbs: [...cached, "patch"],
      reason: "snapshots and their finalizers",
    },
    { group, resource: `${singular}s/status`, verbs: ["patch"], reason: "what has become of a snapshot" },
    {
      group,
      resource: `${singular}contents`,
      verbs: [...cached, "create", "patch", "delete"],
      reason: "the content that stands for the driver's side of a snapshot",
    },
    {
      group,
      resource: `${singular}classes`,
      verbs: cached,
      reason: "the driver and the parameters of a snapshot",
    },
  ];
}
