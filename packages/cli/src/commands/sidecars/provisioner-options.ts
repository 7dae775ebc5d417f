/** `longshore run provisioner`: the flags of external-provisioner. */
import { hostname } from "node:os";
import { systemRandom } from "@longshore/runtime/basics";
import type { ProvisionerOptions } from "@longshore/sidecars";
import { UsageError } from "../../exit.ts";
import { releaseGate } from "./common-flags.ts";
import { type ControllerValues, nodeName, retryBackoff } from "./controller-sidecars.ts";
import {
  duration,
  type FlagValues,
  gates as gatesFlag,
  obsolete,
  text,
  toggle,
  unlimited,
  whole,
} from "./flag-table.ts";

/** This process, among replicas and after restarts. */
const instance = `${hostname()}_${systemRandom.uuid("instance of the provisioner")}`;

/** Those of the provisioner alone. */
export const provisionerFlags = {
  timeout: duration("10s", "deadline of each call to the driver"),
  "worker-threads": whole(100, "claims, and volumes, worked on at the same time", 1),
  "volume-name-prefix": text("prefix", "pvc", "volumes are named after it and the claim's UID"),
  "volume-name-uuid-length": whole(-1, "characters of the UID, without dashes; -1: all of it", -1),
  "strict-topology": toggle(
    false,
    "request volumes with delayed binding in the selected node's segment only",
  ),
  "immediate-topology": toggle(true, "request volumes with immediate binding where the cluster has nodes"),
  "extra-create-metadata": toggle(false, "passes the names of claim and volume to the driver"),
  "default-fstype": text("type", "", "file system of volumes whose class names none"),
  "prevent-volume-mode-conversion": toggle(
    true,
    "changing the volume mode needs an annotation on the snapshot content",
  ),
  "controller-publish-readonly": toggle(false, "volumes that are only read by many are published read-only"),
  "cloning-protection-threads": whole(1, "clone-source finalizers removed in parallel", 1),
  "snapshot-orphan-sweep-interval": duration(
    "5m",
    "how often left-over protection of snapshots is looked for; 0: never",
    { mayBeZero: true },
  ),
  "enable-capacity": toggle(
    false,
    "reports the driver's free capacity to schedulers, in CSIStorageCapacity objects",
  ),
  "capacity-poll-interval": duration("1m", "poll interval of the capacity"),
  "capacity-threads": whole(1, "capacity figures polled in parallel", 1),
  "capacity-ownerref-level": whole(
    1,
    "how far above the pod (POD_NAME in NAMESPACE) the owner of the objects is; -1: none",
    Number.NEGATIVE_INFINITY,
  ),
  "capacity-for-immediate-binding": toggle(false, "also for classes with immediate binding"),
  "kube-api-capacity-qps": unlimited(1, "capacity objects written per second"),
  "kube-api-capacity-burst": unlimited(5, "capacity objects written at once beyond --kube-api-capacity-qps"),
  "node-deployment": toggle(false, "runs on each node (NODE_NAME) and serves what belongs to it"),
  "node-deployment-immediate-binding": toggle(true, "takes claims with immediate binding, too"),
  "node-deployment-base-delay": duration("20s", "shortest pause before such a claim is taken"),
  "node-deployment-max-delay": duration("60s", "longest pause before such a claim is taken"),
  "feature-gates": gatesFlag({
    ...releaseGate,
    Topology: { default: true, help: "volumes are made where their pods can run" },
    CrossNamespaceVolumeDataSource: {
      default: false,
      help: "volumes may be made from sources in other namespaces, where a ReferenceGrant allows it",
    },
    VolumeAttributesClass: { default: true, help: "volumes are made as their VolumeAttributesClass says" },
    HonorPVReclaimPolicy: {
      default: true,
      help: "volumes with policy Delete carry a finalizer, so that none goes before its disk",
    },
  }),
  provisioner: obsolete("text", "the driver says its name"),
  "connection-timeout": obsolete("text", "the driver is waited for"),
  "leader-election-type": obsolete("text", "leases are the only kind"),
  "enable-leader-election": obsolete("switch", "use --leader-election"),
  "enable-pprof": obsolete("switch", "profiling is not supported"),
} as const;

/** What they mean. */
export function provisionerOptions(
  values: FlagValues<typeof provisionerFlags>,
  common: ControllerValues,
): ProvisionerOptions {
  const { "feature-gates": gates } = values;
  if (values["volume-name-prefix"] === "") throw new UsageError("--volume-name-prefix must not be empty");
  return {
    timeoutMs: values.timeout,
    workers: values["worker-threads"],
    instance,
    volumeNamePrefix: values["volume-name-prefix"],
    volumeNameUuidLength: values["volume-name-uuid-length"],
    strictTopology: values["strict-topology"],
    immediateTopology: values["immediate-topology"],
    extraCreateMetadata: values["extra-create-metadata"],
    defaultFsType: values["default-fstype"],
    controllerPublishReadOnly: values["controller-publish-readonly"],
    preventModeConversion: values["prevent-volume-mode-conversion"],
    topology: gates.Topology,
    crossNamespaceDataSource: gates.CrossNamespaceVolumeDataSource,
    volumeAttributesClass: gates.VolumeAttributesClass,
    protectVolumes: gates.HonorPVReclaimPolicy,
    cloningProtectionThreads: values["cloning-protection-threads"],
    snapshotSweepMs: values["snapshot-orphan-sweep-interval"],
    backoff: retryBackoff(common),
    ...(values["enable-capacity"] ? { capacity: capacityOptions(values) } : {}),
    ...(values["node-deployment"] ? { nodeDeployment: nodeDeployment(values) } : {}),
    ...(common.compat === "reference" ? { compat: "reference" as const } : {}),
  };
}

type Values = FlagValues<typeof provisionerFlags>;

function capacityOptions(values: Values): NonNullable<ProvisionerOptions["capacity"]> {
  const { NAMESPACE, POD_NAMESPACE, POD_NAME: podName = "" } = process.env;
  const namespace = NAMESPACE || POD_NAMESPACE || "";
  if (namespace === "") {
    throw new UsageError(
      "--enable-capacity needs the variable NAMESPACE: set it from metadata.namespace of the pod",
    );
  }
  const ownerRefLevel = values["capacity-ownerref-level"];
  if (podName === "" && ownerRefLevel >= 0) {
    throw new UsageError(
      "--enable-capacity needs the variable POD_NAME: set it from metadata.name of the pod, or --capacity-ownerref-level=-1",
    );
  }
  const { "kube-api-capacity-qps": qps, "kube-api-capacity-burst": burst } = values;
  return {
    namespace,
    ...(podName === "" ? {} : { podName }),
    ownerRefLevel,
    pollIntervalMs: values["capacity-poll-interval"],
    threads: values["capacity-threads"],
    forImmediateBinding: values["capacity-for-immediate-binding"],
    ...(qps === undefined ? {} : { writes: { qps, burst: Math.max(1, burst ?? 5 * qps) } }),
  };
}

function nodeDeployment(values: Values): NonNullable<ProvisionerOptions["nodeDeployment"]> {
  const baseDelayMs = values["node-deployment-base-delay"];
  const maxDelayMs = values["node-deployment-max-delay"];
  if (maxDelayMs < baseDelayMs) {
    throw new UsageError("--node-deployment-max-delay must not be shorter than --node-deployment-base-delay");
  }
  return {
    nodeName: nodeName(),
    immediateBinding: values["node-deployment-immediate-binding"],
    baseDelayMs,
    maxDelayMs,
  };
}
