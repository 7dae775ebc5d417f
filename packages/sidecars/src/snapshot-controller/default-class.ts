/** Which class a snapshot gets that names none. Pure. */
import type { KubeObject, Stored } from "@longshore/kube";
import { SnapshotSourceError } from "./source-volume.ts";

/**
 * The one class of the driver that is marked as default.
 * @param annotation the mark; only the value `true` counts
 * @throws SnapshotSourceError when there is none, or more than one
 */
export function defaultClassOf<C extends KubeObject & { driver: string }>(
  classes: readonly Stored<C>[],
  annotation: string,
  driver: string,
): Stored<C> {
  const defaults = classes.filter(
    (candidate) => candidate.driver === driver && candidate.metadata.annotations?.[annotation] === "true",
  );
  const [found] = defaults;
  if (found === undefined) {
    throw new SnapshotSourceError(
      `no class of driver ${driver} is the default: name one, or annotate one with ${annotation}`,
    );
  }
  if (defaults.length > 1) {
    const names = defaults.map(({ metadata }) => metadata.name).sort();
    throw new SnapshotSourceError(
      `${defaults.length} classes of driver ${driver} are the default: ${names.join(", ")}`,
    );
  }
  return found;
}
