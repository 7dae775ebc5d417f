/**
 * A claim that grows while its volume is converted: the plan has the sizes from before. Objects that were made by it would take the
 * request back, and say less than the disk has. Pure.
 */
import { type PersistentVolume, type PersistentVolumeClaim, parseQuantity } from "@longshore/kube";
import type { PlannedVolume, VolumeObservation } from "./conversion-types.ts";
import { growthProblem } from "./objects/converted-claim.ts";

type Seen = Pick<VolumeObservation, "from" | "to" | "claim">;

/** What an expansion since the plan asks for before the claim may be deleted; undefined: there was none. */
export function growthStep(
  planned: PlannedVolume,
  { from, to, claim }: Seen,
): { readonly step: "await growth" | "follow growth"; readonly why: string } | undefined {
  if (from === undefined || claim === undefined) return undefined;
  const unfinished = growthProblem(claim, from);
  if (unfinished !== undefined) return { step: "await growth", why: unfinished };
  const pairs = [
    [requestOf(claim), requestOf(planned.claimAfter)],
    [capacityOf(from), capacityOf(planned.toAfter)],
    [capacityOf(from), capacityOf(to ?? from)],
  ] as const;
  const different = pairs.find(([now, before]) => !isSame(now, before));
  if (different === undefined) return undefined;
  return { step: "follow growth", why: `it has ${different[0]} now, and had ${different[1]} before` };
}

/** Whether the disk has grown, and the file system waits for a pod: only then does a node grow it (docs/behaviour/node-agent.md 7.6). */
export function needsPodToGrow(claim: PersistentVolumeClaim | undefined): boolean {
  const conditions = claim?.status?.conditions ?? [];
  return conditions.some(({ type, status }) => type === "FileSystemResizePending" && status === "True");
}

/** The plan with the sizes as they are now. */
export function withGrowth(planned: PlannedVolume, { from, claim }: Seen): PlannedVolume {
  const request = claim?.spec?.resources;
  const capacity = from?.spec?.capacity;
  const sized = (volume: PersistentVolume): PersistentVolume =>
    capacity === undefined ? volume : { ...volume, spec: { ...volume.spec, capacity } };
  const asking = (of: PersistentVolumeClaim): PersistentVolumeClaim =>
    request === undefined ? of : { ...of, spec: { ...of.spec, resources: request } };
  return {
    ...planned,
    fromBefore: sized(planned.fromBefore),
    toAfter: sized(planned.toAfter),
    claimBefore: asking(planned.claimBefore),
    claimAfter: asking(planned.claimAfter),
  };
}

const requestOf = ({ spec }: PersistentVolumeClaim): string | undefined => spec?.resources?.requests?.storage;
const capacityOf = ({ spec }: PersistentVolume): string | undefined => spec?.capacity?.storage;

function isSame(one: string | undefined, other: string | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return parseQuantity(String(one)).compare(parseQuantity(String(other))) === 0;
}
