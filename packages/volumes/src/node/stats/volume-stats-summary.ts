/**
 * The volumes' part of the kubelet's summary API (`/stats/summary`, k8s.io/kubelet/pkg/apis/stats/v1alpha1).
 * Source: docs/behaviour/node-agent.md 13.
 */
import type { VolumeUse } from "../volume-manager/volume-use.ts";
import type { MeasuredVolume } from "./decide-stats-step.ts";
import type { StatsClaim } from "./volume-stats-metrics.ts";

/** The figures of one volume in one pod. */
export interface VolumeStatsEntry {
  /** When it was measured. */
  readonly time: string;
  /** By the pod's spec. */
  readonly name: string;
  readonly pvcRef?: StatsClaim;
  readonly capacityBytes?: number;
  readonly availableBytes?: number;
  readonly usedBytes?: number;
  readonly inodes?: number;
  readonly inodesFree?: number;
  readonly inodesUsed?: number;
  readonly volumeHealthStats?: { readonly abnormal: boolean };
}

/** The figures of all volumes of a pod. */
export interface PodVolumeStats {
  readonly podRef: { readonly name: string; readonly namespace: string; readonly uid: string };
  readonly volume: readonly VolumeStatsEntry[];
}

/** What was measured of a volume, and who has it. */
export interface MeasuredUse {
  readonly use: VolumeUse;
  readonly measured: MeasuredVolume;
}

/** The claim of the volume; undefined for one that is inline. */
export function claimOf({ users: [{ spec }] }: VolumeUse): StatsClaim | undefined {
  const { namespace, name } = spec.persistentVolume?.spec?.claimRef ?? {};
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}

/** Pods in the order of namespace and name, volumes in that of their names. Pure. */
export function volumeStatsSummary(volumes: Iterable<MeasuredUse>): readonly PodVolumeStats[] {
  const pods = new Map<string, { podRef: PodVolumeStats["podRef"]; volume: VolumeStatsEntry[] }>();
  for (const { use, measured } of volumes) {
    for (const { pod, outerNames } of use.users) {
      const { name, namespace = "", uid } = pod.metadata;
      const entry = pods.get(uid) ?? { podRef: { name, namespace, uid }, volume: [] };
      pods.set(uid, entry);
      for (const outerName of outerNames) entry.volume.push(entryOf(outerName, use, measured));
    }
  }
  const order = ({ podRef: { namespace, name, uid } }: PodVolumeStats) => `${namespace}/${name}/${uid}`;
  return [...pods.values()]
    .map(({ podRef, volume }) => ({ podRef, volume: volume.sort(by(({ name }) => name)) }))
    .sort(by(order));
}

const by =
  <T>(key: (one: T) => string) =>
  (a: T, b: T) =>
    key(a) < key(b) ? -1 : 1;

function entryOf(name: string, use: VolumeUse, { stats, time }: MeasuredVolume): VolumeStatsEntry {
  const { bytes, inodes, condition } = stats;
  const pvcRef = claimOf(use);
  return {
    time,
    name,
    ...(pvcRef !== undefined && { pvcRef }),
    ...(bytes !== undefined && {
      capacityBytes: bytes.total,
      ...(bytes.available !== undefined && { availableBytes: bytes.available }),
      ...(bytes.used !== undefined && { usedBytes: bytes.used }),
    }),
    ...(inodes !== undefined && {
      inodes: inodes.total,
      ...(inodes.available !== undefined && { inodesFree: inodes.available }),
      ...(inodes.used !== undefined && { inodesUsed: inodes.used }),
    }),
    ...(condition !== undefined && { volumeHealthStats: { abnormal: condition.abnormal } }),
  };
}
