/**
 * How many volumes and claims there are, bound and unbound, in the metrics `pv_collector_*`. They are counted at each
 * change, so that a scrape costs nothing in proportion to the cluster. Source: docs/behaviour/controllers.md A11.
 */
import type { Informer, PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import type { Meter } from "@longshore/runtime";
import type { VolumePluginManager } from "../../framework/volume-plugin-manager.ts";
import { specOfPersistentVolume } from "../../framework/volume-spec.ts";
import { TalliedGauge } from "../../metrics/tallied-gauge.ts";
import { volumePluginLabel } from "../../metrics/volume-plugin-label.ts";

/** What is counted. */
export interface CountedCaches {
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly volumes: Informer<PersistentVolume>;
}

/** Counts until the function is called that it returns; nothing is left of the metrics then. */
export function countBound(
  meter: Meter,
  { claims, volumes }: CountedCaches,
  plugins: Pick<VolumePluginManager, "findPluginBySpec">,
): () => void {
  const gauge = (name: string, help: string, labels: readonly string[]) =>
    new TalliedGauge(meter, `pv_collector_${name}`, { help, labels: [...labels] });
  const bound = gauge("bound_pv_count", "Number of bound volumes", ["storage_class"]);
  const unbound = gauge("unbound_pv_count", "Number of unbound volumes", ["storage_class"]);
  const total = gauge("total_pv_count", "Number of volumes", ["plugin_name", "volume_mode"]);
  const boundClaims = gauge("bound_pvc_count", "Number of bound claims", ["namespace"]);
  const unboundClaims = gauge("unbound_pvc_count", "Number of unbound claims", ["namespace"]);

  const ofVolume = (volume: Stored<PersistentVolume>, by: 1 | -1) => {
    const { spec, status } = volume;
    (status?.phase === "Bound" ? bound : unbound).add({ storage_class: spec?.storageClassName ?? "" }, by);
    const volume_mode = spec?.volumeMode ?? "Filesystem";
    total.add({ plugin_name: pluginNameOf(plugins, volume), volume_mode }, by);
  };
  const ofClaim = ({ metadata, status }: Stored<PersistentVolumeClaim>, by: 1 | -1) =>
    (status?.phase === "Bound" ? boundClaims : unboundClaims).add(
      { namespace: metadata.namespace ?? "" },
      by,
    );

  const ends = [follow(volumes, ofVolume), follow(claims, ofClaim)];
  return () => {
    for (const end of ends) end();
    for (const one of [bound, unbound, total, boundClaims, unboundClaims]) one.clear();
  };
}

/** Calls `count` for what comes and what goes; a change is both. */
function follow<T extends PersistentVolume | PersistentVolumeClaim>(
  informer: Informer<T>,
  count: (object: Stored<T>, by: 1 | -1) => void,
): () => void {
  return informer.onChange({
    added: (object) => count(object, 1),
    updated(before, after) {
      if (before === after) return;
      count(after, 1);
      count(before, -1);
    },
    deleted: (object) => count(object, -1),
  });
}

/** With the driver, where it is a CSI volume; of a volume that no plugin serves `N/A`. */
function pluginNameOf(
  plugins: Pick<VolumePluginManager, "findPluginBySpec">,
  volume: PersistentVolume,
): string {
  const spec = specOfPersistentVolume(volume, false);
  try {
    return volumePluginLabel(plugins.findPluginBySpec(spec).pluginName, spec);
  } catch {
    return "N/A";
  }
}
