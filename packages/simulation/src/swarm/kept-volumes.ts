/** In a world that converts volumes: those of the claims that stay until its end, as {@link ConversionWatch} looks at them. */
import type { PersistentVolume, Stored } from "@longshore/kube";
import { inTreeHandle } from "@longshore/local";
import { isPVMigratable } from "@longshore/translation";
import { diskOf } from "../contract-watch.ts";
import { ConversionWatch, type ConversionWorldView } from "../conversion-watch.ts";

/** Follows them from the moment in which each claim is bound. */
export class KeptVolumes {
  readonly #claims: ReadonlySet<string>;
  readonly #disks: ReadonlySet<string>;
  readonly #watch: ConversionWatch;
  #last: ConversionWorldView | undefined;

  /** @param report is called for what breaks the contract, at every look while it lasts */
  constructor(
    { volumes, claims, disks }: ConversionWorldView,
    report: (rule: "C2" | "C3" | "C4", what: string) => void,
  ) {
    // What a pod owns comes and goes with it.
    const kept = claims.filter(({ metadata }) => (metadata.ownerReferences ?? []).length === 0);
    this.#claims = new Set(kept.map(({ metadata }) => metadata.name));
    const theirs = volumes.filter((volume) => this.#isClaimed(volume));
    this.#disks = new Set(theirs.flatMap((volume) => diskOfVolume(volume, disks) ?? []));
    this.#watch = new ConversionWatch({ disks: this.#disks }, report);
  }

  /** What must hold of the state as it is now. */
  check(view: ConversionWorldView): void {
    const { volumes, claims, disks } = view;
    const last = this.#last;
    if (last?.volumes === volumes && last.claims === claims && last.disks === disks) return;
    this.#last = view;
    this.#watch.check({
      claims: claims.filter(({ metadata }) => this.#claims.has(metadata.name)),
      volumes: volumes.filter(
        (volume) => this.#isClaimed(volume) || this.#disks.has(diskOfVolume(volume, disks) ?? ""),
      ),
      disks: new Set([...disks].filter((id) => this.#disks.has(id))),
    });
  }

  /** A volume of a driver, or one that can become one: there is nothing to convert in others. */
  #isClaimed(volume: Stored<PersistentVolume>): boolean {
    const { spec } = volume;
    return (
      this.#claims.has(spec?.claimRef?.name ?? "") && (spec?.csi !== undefined || isPVMigratable(volume))
    );
  }
}

function diskOfVolume({ spec }: Stored<PersistentVolume>, disks: ReadonlySet<string>): string | undefined {
  const handle = inTreeHandle(spec) ?? spec?.csi?.volumeHandle;
  return handle === undefined ? undefined : diskOf(handle, { disks });
}
