/** What the resizer may do (docs/behaviour/sidecars.md 4). */
import { leaseName } from "@longshore/storage";
import {
  type ComponentRules,
  cached,
  leaseRules,
  namespacedEvents,
  secretsFor,
  storageGroup,
} from "./rule.ts";

/** The access rules of the resizer. */
export const resizerRules: ComponentRules = ({ driver, leaderElection, modify }) => [
  { group: "", resource: "persistentvolumeclaims", verbs: cached, reason: "claims that ask for more" },
  {
    group: "",
    resource: "persistentvolumeclaims/status",
    verbs: ["patch"],
    reason: "the state of the expansion, and its outcome",
  },
  { group: "", resource: "persistentvolumes", verbs: cached, reason: "the volume of a claim" },
  { group: "", resource: "persistentvolumes", verbs: ["patch"], reason: "the new size of the volume" },
  {
    group: "",
    resource: "pods",
    verbs: cached,
    reason: "a volume that cannot grow in use is tried again when no pod uses it",
  },
  ...(modify
    ? [
        {
          group: storageGroup,
          resource: "volumeattributesclasses",
          verbs: cached,
          reason: "the attributes that a claim asks for",
        } as const,
      ]
    : []),
  secretsFor("ControllerExpandVolume"),
  namespacedEvents("a claim"),
  ...(leaderElection ? leaseRules(leaseName("resizer", driver)) : []),
];
