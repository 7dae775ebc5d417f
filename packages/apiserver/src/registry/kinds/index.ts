/** The table of all kinds that are built in. */
import type { EmulatedVersion } from "../../versions/emulated-version.ts";
import type { Kind } from "../kind.ts";
import {
  configMap,
  event,
  lease,
  namespace,
  node,
  podDisruptionBudget,
  secret,
  service,
  serviceAccount,
} from "./core.ts";
import { persistentVolume } from "./persistent-volume.ts";
import { persistentVolumeClaim } from "./persistent-volume-claim.ts";
import { pod } from "./pod.ts";
import { csiDriver, csiNode, storageClass, volumeAttachment } from "./storage-group.ts";
import { daemonSet, deployment, replicaSet, statefulSet } from "./workloads.ts";

/** Every built-in kind that the version serves, in the versions of its group that it serves. */
export function builtInKinds(version: EmulatedVersion): readonly Kind[] {
  return allKinds.flatMap((kind) => {
    const [first, ...rest] = kind.versions.filter((v) => version.serves(kind.group, v, kind.kind));
    if (first === undefined) return [];
    return [
      rest.length + 1 === kind.versions.length ? kind : { ...kind, versions: [first, ...rest] as const },
    ];
  });
}

const allKinds: readonly Kind[] = [
  namespace,
  node,
  pod,
  persistentVolume,
  persistentVolumeClaim,
  secret,
  configMap,
  event,
  service,
  serviceAccount,
  storageClass,
  volumeAttachment,
  csiNode,
  csiDriver,
  statefulSet,
  deployment,
  replicaSet,
  daemonSet,
  lease,
  podDisruptionBudget,
];
