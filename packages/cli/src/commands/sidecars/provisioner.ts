/** `longshore run provisioner`: the flags of external-provisioner. */
import type { ProvisionerOptions } from "@longshore/sidecars";
import { releaseGate } from "./common-flags.ts";
import { type ControllerValues, retryBackoff } from "./controller-sidecars.ts";
import {
  duration,
  type FlagValues,
  gates as gatesFlag,
  obsolete,
  text,
  toggle,
  whole,
} from "./flag-table.ts";

/** Those of the provisioner alone. */
export const provisionerFlags = {
  timeout: duration("10s", "deadline of each call to the driver"),
  "worker-threads": whole(100, "claims, and volumes, worked on at the same time", 1),
  "volume-name-prefix": text("prefix", "pvc", "volumes are named after it and the claim's UID"),
  "volume-name-uuid-length": whole(-1, "characters of the UID, without dashes; -1: all of it", -1),
  "strict-topology": toggle(
    false,
    "volumes with delayed binding are asked for in the selected node's segment only",
  ),
  "immediate-topology": toggle(
    true,
    "volumes with immediate binding are asked for where the cluster has nodes",
  ),
  "extra-create-metadata": toggle(false, "tells the driver names of claim and volume"),
  "default-fstype": text("type", "", "file system of volumes whose class names none"),
  "prevent-volume-mode-conversion": toggle(
    true,
    "a volume of another mode than its snapshot's needs leave, by annotation of the snapshot's content",
  ),
  "controller-publish-readonly": toggle(false, "volumes that are only read by many are published read-only"),
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
  master: text("url", "", "address of the API server, in place of the kubeconfig's"),
  provisioner: obsolete("text", "the driver says its name"),
  "connection-timeout": obsolete("text", "the driver is waited for"),
  "leader-election-type": obsolete("text", "leases are the only kind"),
  "enable-leader-election": obsolete("switch", "use --leader-election"),
  "enable-pprof": obsolete("switch", "profiles are Go's"),
} as const;

/** What they mean. */
export function provisionerOptions(
  values: FlagValues<typeof provisionerFlags>,
  common: ControllerValues,
): ProvisionerOptions {
  const { "feature-gates": gates } = values;
  return {
    timeoutMs: values.timeout,
    workers: values["worker-threads"],
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
    backoff: retryBackoff(common),
    ...(common.compat === "reference" ? { compat: "reference" as const } : {}),
  };
}
