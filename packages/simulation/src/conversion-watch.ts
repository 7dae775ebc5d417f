/**
 * What must hold of disks while their PersistentVolumes are converted, checked against the stored objects and the disks
 * themselves: no disk goes, none is made, no disk has two bound claims, and nothing may delete it.
 */
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { translateInTreePVToCSI } from "@longshore/translation";

/** What the checks look at. */
export interface ConversionWorldView {
  readonly volumes: readonly Stored<PersistentVolume>[];
  readonly claims: readonly Stored<PersistentVolumeClaim>[];
  /** Ids of all disks of the cloud. */
  readonly disks: ReadonlySet<string>;
}

/** Follows the state from the moment in which every claim is bound. */
export class ConversionWatch {
  readonly #disks: ReadonlySet<string>;
  readonly #report: (rule: "C2" | "C3" | "C4", what: string) => void;

  /** @param report is called for what breaks the contract, at every look while it lasts */
  constructor(
    { disks }: Pick<ConversionWorldView, "disks">,
    report: (rule: "C2" | "C3" | "C4", what: string) => void,
  ) {
    this.#disks = new Set(disks);
    this.#report = report;
  }

  /** What must hold of the state as it is now. */
  check({ volumes, claims, disks }: ConversionWorldView): void {
    for (const id of this.#disks) if (!disks.has(id)) this.#report("C3", `disk ${id} is gone`);
    for (const id of disks) if (!this.#disks.has(id)) this.#report("C4", `disk ${id} was made`);
    const byDisk = new Map<string, Stored<PersistentVolume>[]>();
    for (const volume of volumes) {
      const disk = handleOf(volume);
      byDisk.set(disk, [...(byDisk.get(disk) ?? []), volume]);
    }
    for (const [disk, same] of byDisk) this.#oneOfDisk(disk, same, claims);
    for (const claim of claims) this.#noProvisioning(claim, volumes);
  }

  #oneOfDisk(
    disk: string,
    volumes: readonly Stored<PersistentVolume>[],
    claims: readonly Stored<PersistentVolumeClaim>[],
  ): void {
    const names = new Set(volumes.map(({ metadata }) => metadata.name));
    const bound = claims.filter(
      ({ status, spec }) => status?.phase === "Bound" && names.has(spec?.volumeName ?? ""),
    );
    if (bound.length > 1) this.#report("C2", `${disk} has ${bound.length} bound claims`);
    for (const { metadata, spec, status } of volumes) {
      if (spec?.persistentVolumeReclaimPolicy !== "Delete") continue;
      const { name } = metadata;
      if (volumes.length > 1) this.#report("C3", `${name} has policy Delete, and is one of two of ${disk}`);
      if (status?.phase === "Released" || status?.phase === "Failed")
        this.#report("C3", `${name} is ${status.phase} with policy Delete`);
      if (metadata.deletionTimestamp !== undefined)
        this.#report("C3", `${name} is being deleted with policy Delete`);
      const claim = claims.find(({ metadata: { uid } }) => uid === spec.claimRef?.uid);
      if (claim?.metadata.deletionTimestamp !== undefined)
        this.#report("C3", `the claim of ${name} is being deleted, and its policy is Delete`);
    }
  }

  /** A claim without a volume gets a new, empty disk, unless a volume waits for it. */
  #noProvisioning(
    { metadata, spec }: Stored<PersistentVolumeClaim>,
    volumes: readonly Stored<PersistentVolume>[],
  ): void {
    if ((spec?.volumeName ?? "") !== "") return;
    const waits = volumes.some(
      ({ spec: of }) =>
        of?.claimRef?.name === metadata.name &&
        of.claimRef.namespace === metadata.namespace &&
        (of.claimRef.uid ?? metadata.uid) === metadata.uid,
    );
    if (!waits) this.#report("C4", `claim ${metadata.name} is there, and no volume waits for it`);
  }
}

/** The disk of a volume in whichever form: driver and handle. */
function handleOf(volume: Stored<PersistentVolume>): string {
  const { spec } = volume.spec?.csi === undefined ? translateInTreePVToCSI(volume) : volume;
  return `${spec?.csi?.driver} ${spec?.csi?.volumeHandle}`;
}
