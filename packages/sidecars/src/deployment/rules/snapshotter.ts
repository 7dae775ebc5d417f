/** What the snapshotter beside a driver may do (sidecars.md §5). */
import { leaseName } from "@longshore/storage";
import {
  type ComponentRules,
  cached,
  clusterEvents,
  groupSnapshotGroup,
  leaseRules,
  secretsFor,
  snapshotGroup,
} from "./rule.ts";

/** See the file's header. */
export const snapshotterRules: ComponentRules = ({ driver, leaderElection, groupSnapshot }) => [
  {
    group: snapshotGroup,
    resource: "volumesnapshotcontents",
    verbs: cached,
    reason: "snapshots that are to be taken and deleted",
  },
  {
    group: snapshotGroup,
    resource: "volumesnapshotcontents",
    verbs: ["patch"],
    reason: "the mark of a snapshot that is being taken, and the finalizer once it is gone",
  },
  {
    group: snapshotGroup,
    resource: "volumesnapshotcontents/status",
    verbs: ["patch"],
    reason: "the handle, the size and the readiness of a snapshot",
  },
  {
    group: snapshotGroup,
    resource: "volumesnapshotclasses",
    verbs: cached,
    reason: "parameters of snapshots",
  },
  ...(groupSnapshot
    ? ([
        {
          group: groupSnapshotGroup,
          resource: "volumegroupsnapshotcontents",
          verbs: [...cached, "patch"],
          reason: "groups of snapshots that are to be taken and deleted",
        },
        {
          group: groupSnapshotGroup,
          resource: "volumegroupsnapshotcontents/status",
          verbs: ["patch"],
          reason: "the handles and the readiness of a group",
        },
        {
          group: groupSnapshotGroup,
          resource: "volumegroupsnapshotclasses",
          verbs: cached,
          reason: "parameters of groups",
        },
      ] as const)
    : []),
  secretsFor("CreateSnapshot or DeleteSnapshot"),
  clusterEvents("a snapshot's content"),
  ...(leaderElection ? leaseRules(leaseName("snapshotter", driver)) : []),
];
