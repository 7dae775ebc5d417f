/**
 * What the cluster-driver-registrar may do (docs/behaviour/sidecars.md 7). A deployment has none: its manifests hold
 * the CSIDriver.
 */
import { type ComponentRules, storageGroup } from "./rule.ts";

/** The access rules of the cluster-driver-registrar. */
export const clusterDriverRegistrarRules: ComponentRules = ({ driver }) => [
  { group: storageGroup, resource: "csidrivers", verbs: ["create"], reason: "makes the driver's CSIDriver" },
  {
    group: storageGroup,
    resource: "csidrivers",
    verbs: ["get", "delete"],
    names: [driver],
    reason: "looks at what is there, and takes it away when it ends",
  },
];
