/** All mutants. */
import type { Mutant, UpstreamMutant } from "../mutant.ts";
import { actions } from "./planted-actions.ts";
import { attachDetach } from "./planted-attach-detach.ts";
import { attacher } from "./planted-attacher.ts";
import { claimTables } from "./planted-claim-tables.ts";
import { claims } from "./planted-claims.ts";
import { crossing } from "./planted-crossing.ts";
import { node } from "./planted-node.ts";
import { persistentVolume } from "./planted-persistent-volume.ts";
import { provisioner } from "./planted-provisioner.ts";
import { resizer } from "./planted-resizer.ts";
import { snapshots } from "./planted-snapshots.ts";
import { tables } from "./planted-tables.ts";
import { upstreamAttachDetach } from "./upstream-attach-detach.ts";
import { upstreamElsewhere } from "./upstream-elsewhere.ts";

/** Those that bring back what upstream has had. */
export const upstreamMutants: readonly UpstreamMutant[] = [...upstreamAttachDetach, ...upstreamElsewhere];

/** Those without a history upstream, by area. */
export const plantedMutants: readonly Mutant[] = [
  ...actions,
  ...node,
  ...attacher,
  ...provisioner,
  ...resizer,
  ...snapshots,
  ...claims,
  ...persistentVolume,
  ...crossing,
  ...attachDetach,
  ...tables,
  ...claimTables,
];

export const mutants: readonly Mutant[] = [...upstreamMutants, ...plantedMutants];
