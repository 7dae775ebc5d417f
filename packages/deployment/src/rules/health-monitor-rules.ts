/** What the health monitor may do (KEP-1432, external-health-monitor). */
import { leaseName } from "@longshore/storage";
import { type ComponentRules, cached, leaseRules, namespacedEvents } from "./rule.ts";

/** The access rules of the health monitor. */
export const healthMonitorRules: ComponentRules = ({ driver, leaderElection }) => [
  { group: "", resource: "persistentvolumes", verbs: cached, reason: "the driver's volumes" },
  namespacedEvents("a claim whose volume is not well"),
  {
    group: "",
    resource: "events",
    verbs: ["list"],
    reason: "what it reported before it started: its only memory",
  },
  ...(leaderElection ? leaseRules(leaseName("health-monitor", driver)) : []),
];
