/** How many managed disks a machine can have, by its size. Source: docs/behaviour/volume-plugins.md 10. */

/** Of sizes that are not known here: that of 8 cores. */
const standard = 16;

/** Machines of the series D of version 2, by the number in their names, which is not that of cores. */
const byNumber: Readonly<Record<string, number>> = { 1: 4, 2: 8, 3: 16, 4: 32, 5: 64 };

/** Most disks of a machine with so many cores, of the newer series: two a core. */
const maximum = 32;

/** Most managed disks of a machine, e.g. of `Standard_D4s_v3`; its name in any case. */
export function azureDiskLimit(instanceType: string): number {
  const older = /^standard_ds?([1-5])_v2$/i.exec(instanceType)?.[1];
  if (older !== undefined) return byNumber[older] ?? standard;
  const cores = /^standard_(?:[de](\d+)s?_v3|f(\d+)s_v2)$/i.exec(instanceType);
  const count = Number(cores?.[1] ?? cores?.[2] ?? 0);
  return count === 0 ? standard : Math.min(2 * count, maximum);
}
