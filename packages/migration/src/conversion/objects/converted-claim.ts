/**
 * The claim that is made again for the new PersistentVolume, under its own name. Pure. It names its volume, so that no
 * provisioner makes a new disk for it.
 */
import {
  type ObjectMeta,
  type PersistentVolume,
  type PersistentVolumeClaim,
  parseQuantity,
} from "@longshore/kube";
import type { Converted } from "../conversion-types.ts";
import { bindingAnnotations, claimFinalizers } from "./controllers-marks.ts";
import { authoredMetadata, defined, differencesOf, type Reasons, withoutKeys } from "./differences.ts";

const dropped: ReadonlySet<string> = new Set(bindingAnnotations);

/**
 * The claim with `volumeName` set and without what controllers wrote about the old binding. Labels, other annotations, owner
 * references, other finalizers and the rest of `spec` are carried over.
 * @param volume the new volume: where it is given, the claim asks for no access mode that the volume does not have, since such
 *   a claim never binds; one that asks for more room than the volume has is refused
 */
export function convertedClaim(
  claim: PersistentVolumeClaim,
  newVolumeName: string,
  volume?: PersistentVolume,
): Converted<PersistentVolumeClaim> {
  const { name, namespace } = claim.metadata ?? {};
  if (name === undefined || namespace === undefined) {
    return { failure: "metadata: the claim has no name or no namespace; take it from the API server" };
  }
  const failure = growthProblem(claim, volume);
  if (failure !== undefined) return { failure };
  const finalizers = claim.metadata?.finalizers?.filter((finalizer) => !claimFinalizers.has(finalizer));
  const object: PersistentVolumeClaim = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: defined<ObjectMeta>({
      ...authoredMetadata(claim.metadata),
      annotations: withoutKeys(claim.metadata?.annotations, dropped),
      finalizers: finalizers?.length ? finalizers : undefined,
    }),
    spec: defined<NonNullable<PersistentVolumeClaim["spec"]>>({
      ...claim.spec,
      accessModes: accessModesOf(claim, volume),
      volumeName: newVolumeName,
    }),
  };
  return { object, differences: differencesOf(claim, object, reasons) };
}

/** The persistent-volume controller compares the modes of a pre-bound pair, too (docs/behaviour/controllers.md B). */
function accessModesOf(
  claim: PersistentVolumeClaim,
  volume: PersistentVolume | undefined,
): string[] | undefined {
  const wanted = claim.spec?.accessModes;
  const offered = volume?.spec?.accessModes;
  if (wanted === undefined || offered === undefined) return wanted;
  if (wanted.every((mode) => offered.includes(mode))) return wanted;
  const both = wanted.filter((mode) => offered.includes(mode));
  return both.length > 0 ? both : [...offered];
}

/** Why the claim is not to be made again while it grows; undefined: it does not grow. */
export function growthProblem(claim: PersistentVolumeClaim, volume?: PersistentVolume): string | undefined {
  return unfinishedGrowth(claim) ?? (volume && missingRoom(claim, volume));
}

/** A claim that is bound again counts as grown to its volume's capacity: no node would grow the file system any more. */
function unfinishedGrowth({ status }: PersistentVolumeClaim): string | undefined {
  const growing = status?.conditions?.find(
    ({ type, status }) => ["Resizing", "FileSystemResizePending"].includes(type) && status === "True",
  );
  if (growing === undefined) return undefined;
  return `status.conditions: ${growing.type}: the expansion of the claim is not finished; let it finish first`;
}

function missingRoom(claim: PersistentVolumeClaim, volume: PersistentVolume): string | undefined {
  const wanted = claim.spec?.resources?.requests?.storage;
  const offered = volume.spec?.capacity?.storage;
  if (wanted === undefined || offered === undefined) return undefined;
  if (parseQuantity(String(wanted)).compare(parseQuantity(String(offered))) <= 0) return undefined;
  return (
    `spec.resources.requests.storage: the claim asks for ${wanted} and the volume has ${offered}, so that they would not bind; ` +
    "wait until the expansion is done"
  );
}

const reasons: Reasons = {
  "spec.volumeName": "it names the new volume, so that no provisioner makes a disk for it",
  "spec.accessModes": "a claim that asks for a mode which its volume does not have never binds",
  "metadata.finalizers": "those of controllers, which set them again where they are needed",
  ...Object.fromEntries(
    bindingAnnotations.map((name) => [
      `metadata.annotations[${name}]`,
      "the controllers' own note about the old binding",
    ]),
  ),
};
