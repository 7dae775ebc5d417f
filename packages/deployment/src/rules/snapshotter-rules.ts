/** What a driver's snapshotter may do (docs/behaviour/sidecars.md 5). */
import { leaseName } from "@longshore/storage";
import {
  type AccessRule,
  type ComponentRules,
  cached,
  clusterEvents,
  groupSnapshotGroup,
  leaseEvents,
  leaseRules,
  secretsFor,
  snapshotGroup,
} from "./rule.ts";

/** The access rules of the snapshotter. */
export const snapshotterRules: ComponentRules = ({ driver, leaderElection, groupSnapshot }) => [
  ...contentRules(snapshotGroup, "volumesnapshot"),
  ...(groupSnapshot ? contentRules(groupSnapshotGroup, "volumegroupsnapshot") : []),
  secretsFor("CreateSnapshot or DeleteSnapshot"),
  clusterEvents("a snapshot's content"),
  ...(leaderElection ? [...leaseRules(leaseName("snapshotter", driver)), leaseEvents] : []),
];

function contentRules(group: string, singular: string): readonly AccessRule[] {
  return [
    {
      group,
      resource: `${singular}contents`,
      verbs: cached,
      reason: "snapshots that are to be made and deleted",
    },
    {
      group,
      resource: `${singular}contents`,
      verbs: ["get"],
      reason: "what it says now, read before a snapshot is deleted",
    },
    {
      group,
      resource: `${singular}contents`,
      verbs: ["patch"],
      reason:
        "that one is being made is stored before the driver is asked; its finalizer goes after the snapshot",
    },
    {
      group,
      resource: `${singular}contents/status`,
      verbs: ["patch"],
      reason: "the handle, the size and the readiness of a snapshot, or why there is none",
    },
    { group, resource: `${singular}classes`, verbs: cached, reason: "parameters of snapshots" },
  ];
}
