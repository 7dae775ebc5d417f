/** The rules of all components, by their names. */
import { attacherRules } from "./attacher-rules.ts";
import { clusterDriverRegistrarRules } from "./cluster-driver-registrar-rules.ts";
import { healthMonitorRules } from "./health-monitor-rules.ts";
import { provisionerRules } from "./provisioner-rules.ts";
import { resizerRules } from "./resizer-rules.ts";
import type { AccessNeeds, AccessRule, ComponentRules } from "./rule.ts";
import { snapshotControllerRules } from "./snapshot-controller-rules.ts";
import { snapshotterRules } from "./snapshotter-rules.ts";

const rulesOf = {
  provisioner: provisionerRules,
  attacher: attacherRules,
  resizer: resizerRules,
  snapshotter: snapshotterRules,
  "snapshot-controller": snapshotControllerRules,
  "health-monitor": healthMonitorRules,
  "cluster-driver-registrar": clusterDriverRegistrarRules,
} as const satisfies Readonly<Record<string, ComponentRules>>;

/** A component that talks to the API server. */
export type AccessComponent = keyof typeof rulesOf;

/** The components that talk to the API server. */
export const accessComponents = Object.keys(rulesOf) as readonly AccessComponent[];

/** What the component may do, for what of it is in use. */
export function accessRules(component: AccessComponent, needs: AccessNeeds): readonly AccessRule[] {
  return rulesOf[component](needs);
}
