/** What the provisioner may do (sidecars.md §2). */
import { leaseName } from "@longshore/storage";
import {
  type ComponentRules,
  cached,
  leaseRules,
  namespacedEvents,
  secretsFor,
  storageGroup,
} from "./rule.ts";

/** See the file's header. */
export const provisionerRules: ComponentRules = ({ driver, leaderElection }) => [
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
  {
    group: storageGroup,
    resource: "volumeattachments",
    verbs: cached,
    reason: "a volume that is attached is not deleted",
  },
  secretsFor("CreateVolume or DeleteVolume"),
  namespacedEvents("a claim or volume"),
  ...(leaderElection ? leaseRules(leaseName("provisioner", driver)) : []),
];
