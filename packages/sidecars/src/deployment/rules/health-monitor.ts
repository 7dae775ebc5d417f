/** What the health monitor may do (sidecars.md, KEP-1432). */
import { type ComponentRules, cached, leaseRules, namespacedEvents } from "./rule.ts";

/** See the file's header. */
export const healthMonitorRules: ComponentRules = ({ driver, leaderElection }) => [
  { group: "", resource: "persistentvolumes", verbs: cached, reason: "the driver's volumes" },
  {
    group: "",
    resource: "persistentvolumeclaims",
    verbs: cached,
    reason: "the claim that is told of its volume",
  },
  namespacedEvents("a claim whose volume is not well"),
  ...(leaderElection
    ? leaseRules(`external-health-monitor-leader-${driver.replaceAll(/[^a-zA-Z0-9-]/g, "-")}`)
    : []),
];
