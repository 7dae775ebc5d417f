/** The figures of volumes as metrics, by the names that the kubelet gives them. Source: docs/behaviour/node-agent.md 10, 13. */
import type { Meter } from "@longshore/runtime";
import type { VolumeStats } from "../../framework/volume-plugin.ts";

/** The claim that a volume is mounted through. */
export interface StatsClaim {
  readonly namespace: string;
  readonly name: string;
}

const labels = ["namespace", "persistentvolumeclaim"];

/** Each with what it reads; undefined where nothing says so. */
const gauges: Readonly<
  Record<string, { readonly help: string; readonly of: (stats: VolumeStats) => number | undefined }>
> = {
  capacity_bytes: { help: "Capacity in bytes of the volume", of: ({ bytes }) => bytes?.total },
  available_bytes: { help: "Number of available bytes in the volume", of: ({ bytes }) => bytes?.available },
  used_bytes: { help: "Number of used bytes in the volume", of: ({ bytes }) => bytes?.used },
  inodes: { help: "Maximum number of inodes in the volume", of: ({ inodes }) => inodes?.total },
  inodes_free: { help: "Number of free inodes in the volume", of: ({ inodes }) => inodes?.available },
  inodes_used: { help: "Number of used inodes in the volume", of: ({ inodes }) => inodes?.used },
  health_status_abnormal: {
    help: "1 while the driver says that something is wrong with the volume",
    of: ({ condition }) => (condition === undefined ? undefined : Number(condition.abnormal)),
  },
};

/** Sets and removes the metrics of claims. */
export interface VolumeStatsMetrics {
  set(claim: StatsClaim, stats: VolumeStats): void;
  remove(claim: StatsClaim): void;
}

/** The metrics `kubelet_volume_stats_*`. */
export function volumeStatsMetrics(meter: Meter): VolumeStatsMetrics {
  const all = Object.entries(gauges).map(([name, { help, of }]) => ({
    gauge: meter.gauge(`kubelet_volume_stats_${name}`, { help, labels }),
    of,
  }));
  const labelsOf = ({ namespace, name }: StatsClaim) => ({ namespace, persistentvolumeclaim: name });
  return {
    set(claim, stats) {
      for (const { gauge, of } of all) {
        const value = of(stats);
        if (value === undefined) gauge.remove(labelsOf(claim));
        else gauge.set(value, labelsOf(claim));
      }
    },
    remove(claim) {
      for (const { gauge } of all) gauge.remove(labelsOf(claim));
    },
  };
}
