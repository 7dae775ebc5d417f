/** The table of all kinds that are built in. */
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

/** Every built-in kind. */
export const builtInKinds: readonly Kind[] = [
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
