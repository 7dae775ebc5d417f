/** What the attacher may do (docs/behaviour/sidecars.md 3). */
import { leaseName } from "@longshore/storage";
import {
  type ComponentRules,
  cached,
  clusterEvents,
  leaseEvents,
  leaseRules,
  secretsFor,
  storageGroup,
} from "./rule.ts";

/** The access rules of the attacher. */
export const attacherRules: ComponentRules = ({ driver, leaderElection }) => [
  {
    group: storageGroup,
    resource: "volumeattachments",
    verbs: cached,
    reason: "what is to be attached and detached",
  },
  {
    group: storageGroup,
    resource: "volumeattachments",
    verbs: ["patch"],
    reason: "its finalizer and the node's id are stored before the driver is asked",
  },
  {
    group: storageGroup,
    resource: "volumeattachments/status",
    verbs: ["patch"],
    reason: "says that the volume is attached, or why not",
  },
  { group: "", resource: "persistentvolumes", verbs: cached, reason: "the volume that an attachment names" },
  {
    group: "",
    resource: "persistentvolumes",
    verbs: ["patch"],
    reason: "its finalizer keeps the volume known until it is detached",
  },
  { group: storageGroup, resource: "csinodes", verbs: cached, reason: "the driver's id of a node" },
  {
    group: "",
    resource: "nodes",
    verbs: ["get"],
    reason: "the id that an old kubelet, which writes no CSINode, announces on its Node",
  },
  secretsFor("ControllerPublishVolume"),
  clusterEvents("an attachment"),
  ...(leaderElection ? [...leaseRules(leaseName("attacher", driver)), leaseEvents] : []),
];
