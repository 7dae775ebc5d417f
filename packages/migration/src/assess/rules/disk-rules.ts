/** Disks that several PersistentVolumes stand for. */
import { diskKeyOf } from "../../crossing/disk-key.ts";
import type { AssessView } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";

/** Findings about disks; written in-tree and for its driver, a disk is the same one. */
export function diskRules({ inventory }: AssessView): RuleFinding[] {
  const volumes = new Map<string, string[]>();
  for (const pv of inventory.volumes) {
    const disk = diskKeyOf(pv);
    if (disk === undefined) continue;
    const names = volumes.get(disk);
    if (names === undefined) volumes.set(disk, [pv.metadata.name]);
    else names.push(pv.metadata.name);
  }
  return [...volumes].flatMap(([disk, names]) => {
    if (names.length === 1) return [];
    // In the order of their names, as a server lists them: a dump may have another order.
    const [name, ...others] = names.sort();
    const evidence = `${disk} is the disk of PersistentVolume ${others.join(", ")} as well`;
    return [found("LS1216", { object: `PersistentVolume ${name}`, field: "spec", evidence })];
  });
}
