/** The columns of each kind's table (kubernetes pkg/printers/internalversion). */
import type { KubeObject } from "@longshore/kube";
import { humanDuration } from "./human-duration.ts";

/** One column and the cell it has for an object. */
export interface Column {
  readonly name: string;
  readonly type: "string" | "integer" | "boolean";
  readonly format?: "name";
  /** 1: shown in wide tables only. */
  readonly priority?: 1;
  readonly cell: (object: Row, now: Date) => unknown;
}

// biome-ignore lint/suspicious/noExplicitAny: cells look into objects of every kind, each into its own.
type Row = KubeObject & Record<string, any>;

const text = (name: string, cell: Column["cell"]): Column => ({ name, type: "string", cell });
const wide = (name: string, cell: Column["cell"]): Column => ({ name, type: "string", priority: 1, cell });
const integer = (name: string, cell: Column["cell"]): Column => ({ name, type: "integer", cell });
const nameColumn: Column = { name: "Name", type: "string", format: "name", cell: (o) => o.metadata?.name };
const ageColumn = text("Age", (o, now) => age(o.metadata?.creationTimestamp, now));

function age(time: string | undefined, now: Date): string {
  return time === undefined ? "<unknown>" : humanDuration(now.getTime() - Date.parse(time));
}

const shortModes: Readonly<Record<string, string>> = {
  ReadWriteOnce: "RWO",
  ReadOnlyMany: "ROX",
  ReadWriteMany: "RWX",
};

function modes(given: readonly string[] | undefined): string {
  return Object.entries(shortModes)
    .filter(([mode]) => given?.includes(mode))
    .map(([, short]) => short)
    .join(",");
}

const deleting = (o: Row) => o.metadata?.deletionTimestamp !== undefined;
const legacyClass = "volume.beta.kubernetes.io/storage-class";
const classOf = (o: Row) => o.metadata?.annotations?.[legacyClass] ?? o.spec?.storageClassName ?? "";
const joined = (list: readonly unknown[] | undefined) => (list?.length ? list.join(",") : "<none>");
const selector = (given: Row["spec"]) => {
  const labels = Object.entries((given?.matchLabels ?? {}) as Record<string, string>);
  return labels.length === 0 ? "<none>" : labels.map(([key, value]) => `${key}=${value}`).join(",");
};
const containers = (o: Row) => joined(o.spec?.template?.spec?.containers?.map((c: Row) => c.name));
const images = (o: Row) => joined(o.spec?.template?.spec?.containers?.map((c: Row) => c.image));

const defaultMarks = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
];

function nodeStatus(node: Row): string {
  const ready = node.status?.conditions?.find((c: Row) => c.type === "Ready");
  const words = [ready === undefined ? "Unknown" : ready.status === "True" ? "Ready" : "NotReady"];
  if (node.spec?.unschedulable === true) words.push("SchedulingDisabled");
  return words.join(",");
}

function nodeRoles(node: Row): string {
  const prefix = "node-role.kubernetes.io/";
  const roles = Object.entries(node.metadata?.labels ?? {}).flatMap(([key, value]) => {
    if (key.startsWith(prefix)) return [key.slice(prefix.length)];
    return key === "kubernetes.io/role" && value !== "" ? [String(value)] : [];
  });
  return joined(roles.filter((role) => role !== "").sort());
}

const address = (node: Row, type: string) =>
  node.status?.addresses?.find((a: Row) => a.type === type)?.address ?? "<none>";

/** The status column of a pod: its phase, or what keeps it from it. */
function podStatus(pod: Row): string {
  let reason = pod.status?.reason || pod.status?.phase || "";
  for (const status of [...(pod.status?.containerStatuses ?? [])].reverse()) {
    const { waiting, terminated } = status.state ?? {};
    if (waiting?.reason) reason = waiting.reason;
    else if (terminated?.reason) reason = terminated.reason;
    else if (terminated !== undefined) {
      reason = terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode ?? 0}`;
    }
  }
  if (deleting(pod)) return pod.status?.reason === "NodeLost" ? "Unknown" : "Terminating";
  return reason;
}

const statuses = (pod: Row): readonly Row[] => pod.status?.containerStatuses ?? [];

const eventAge = (o: Row, now: Date) => {
  const last = o.series?.lastObservedTime ?? o.lastTimestamp ?? o.eventTime ?? o.firstTimestamp;
  return age(last, now);
};

/** Columns by resource key. */
const columns: Readonly<Record<string, readonly Column[]>> = {
  persistentvolumes: [
    nameColumn,
    text("Capacity", (o) => o.spec?.capacity?.storage ?? ""),
    text("Access Modes", (o) => modes(o.spec?.accessModes)),
    text("Reclaim Policy", (o) => o.spec?.persistentVolumeReclaimPolicy ?? ""),
    text("Status", (o) => (deleting(o) ? "Terminating" : (o.status?.phase ?? ""))),
    text("Claim", (o) =>
      o.spec?.claimRef === undefined
        ? ""
        : `${o.spec.claimRef.namespace ?? ""}/${o.spec.claimRef.name ?? ""}`,
    ),
    text("StorageClass", classOf),
    text("Reason", (o) => o.status?.reason ?? ""),
    ageColumn,
    wide("VolumeMode", (o) => o.spec?.volumeMode ?? "<unset>"),
  ],
  persistentvolumeclaims: [
    nameColumn,
    text("Status", (o) => (deleting(o) ? "Terminating" : (o.status?.phase ?? ""))),
    text("Volume", (o) => o.spec?.volumeName ?? ""),
    text("Capacity", (o) => (o.spec?.volumeName ? (o.status?.capacity?.storage ?? "0") : "")),
    text("Access Modes", (o) => (o.spec?.volumeName ? modes(o.status?.accessModes) : "")),
    text("StorageClass", classOf),
    ageColumn,
    wide("VolumeMode", (o) => o.spec?.volumeMode ?? "<unset>"),
  ],
  "storageclasses.storage.k8s.io": [
    {
      ...nameColumn,
      cell: (o) =>
        defaultMarks.some((mark) => o.metadata?.annotations?.[mark] === "true")
          ? `${o.metadata?.name} (default)`
          : o.metadata?.name,
    },
    text("Provisioner", (o) => o.provisioner),
    text("ReclaimPolicy", (o) => o.reclaimPolicy ?? "Delete"),
    text("VolumeBindingMode", (o) => o.volumeBindingMode ?? "Immediate"),
    text("AllowVolumeExpansion", (o) => o.allowVolumeExpansion ?? false),
    ageColumn,
  ],
  "volumeattachments.storage.k8s.io": [
    nameColumn,
    { ...text("Attacher", (o) => o.spec?.attacher), format: "name" },
    text("PV", (o) => o.spec?.source?.persistentVolumeName ?? ""),
    text("Node", (o) => o.spec?.nodeName),
    { name: "Attached", type: "boolean", cell: (o) => o.status?.attached ?? false },
    ageColumn,
  ],
  "csinodes.storage.k8s.io": [nameColumn, integer("Drivers", (o) => o.spec?.drivers?.length ?? 0), ageColumn],
  "csidrivers.storage.k8s.io": [
    nameColumn,
    { name: "AttachRequired", type: "boolean", cell: (o) => o.spec?.attachRequired ?? true },
    { name: "PodInfoOnMount", type: "boolean", cell: (o) => o.spec?.podInfoOnMount ?? false },
    text("Modes", (o) => joined(o.spec?.volumeLifecycleModes)),
    ageColumn,
  ],
  nodes: [
    nameColumn,
    text("Status", nodeStatus),
    text("Roles", nodeRoles),
    ageColumn,
    text("Version", (o) => o.status?.nodeInfo?.kubeletVersion ?? ""),
    wide("Internal-IP", (o) => address(o, "InternalIP")),
    wide("External-IP", (o) => address(o, "ExternalIP")),
    wide("OS-Image", (o) => o.status?.nodeInfo?.osImage || "<unknown>"),
    wide("Kernel-Version", (o) => o.status?.nodeInfo?.kernelVersion || "<unknown>"),
    wide("Container-Runtime", (o) => o.status?.nodeInfo?.containerRuntimeVersion || "<unknown>"),
  ],
  pods: [
    nameColumn,
    text("Ready", (o) => {
      const ready = statuses(o).filter((s) => s.ready && s.state?.running !== undefined).length;
      return `${ready}/${o.spec?.containers?.length ?? 0}`;
    }),
    text("Status", podStatus),
    integer("Restarts", (o) => statuses(o).reduce((sum, s) => sum + (s.restartCount ?? 0), 0)),
    ageColumn,
    wide("IP", (o) => o.status?.podIPs?.[0]?.ip ?? o.status?.podIP ?? "<none>"),
    wide("Node", (o) => o.spec?.nodeName || "<none>"),
    wide("Nominated Node", (o) => o.status?.nominatedNodeName || "<none>"),
    wide("Readiness Gates", (o) => {
      const gates: readonly Row[] = o.spec?.readinessGates ?? [];
      if (gates.length === 0) return "<none>";
      const met = gates.filter((gate) =>
        o.status?.conditions?.some((c: Row) => c.type === gate.conditionType && c.status === "True"),
      );
      return `${met.length}/${gates.length}`;
    }),
  ],
  namespaces: [nameColumn, text("Status", (o) => o.status?.phase ?? ""), ageColumn],
  configmaps: [
    nameColumn,
    text("Data", (o) => Object.keys(o.data ?? {}).length + Object.keys(o.binaryData ?? {}).length),
    ageColumn,
  ],
  secrets: [
    nameColumn,
    text("Type", (o) => o.type ?? ""),
    text("Data", (o) => Object.keys(o.data ?? {}).length),
    ageColumn,
  ],
  serviceaccounts: [nameColumn, text("Secrets", (o) => o.secrets?.length ?? 0), ageColumn],
  services: [
    nameColumn,
    text("Type", (o) => o.spec?.type ?? ""),
    text("Cluster-IP", (o) => o.spec?.clusterIP ?? "<none>"),
    text("External-IP", () => "<none>"),
    text("Port(s)", (o) => joined(o.spec?.ports?.map((p: Row) => `${p.port}/${p.protocol ?? "TCP"}`))),
    ageColumn,
    wide("Selector", (o) => selector({ matchLabels: o.spec?.selector })),
  ],
  events: [
    text("Last Seen", eventAge),
    text("Type", (o) => o.type ?? ""),
    text("Reason", (o) => o.reason ?? ""),
    text(
      "Object",
      (o) => `${String(o.involvedObject?.kind ?? "").toLowerCase()}/${o.involvedObject?.name ?? ""}`,
    ),
    wide("Subobject", (o) => o.involvedObject?.fieldPath ?? ""),
    wide("Source", (o) =>
      [o.source?.component ?? o.reportingComponent, o.source?.host].filter(Boolean).join(", "),
    ),
    text("Message", (o) => String(o.message ?? "").trim()),
    wide("First Seen", (o, now) => age(o.firstTimestamp ?? o.eventTime, now)),
    wide("Count", (o) => o.series?.count ?? o.count ?? 1),
    { ...nameColumn, priority: 1 },
  ],
  "leases.coordination.k8s.io": [nameColumn, text("Holder", (o) => o.spec?.holderIdentity ?? ""), ageColumn],
  "statefulsets.apps": [
    nameColumn,
    text("Ready", (o) => `${o.status?.readyReplicas ?? 0}/${o.spec?.replicas ?? 0}`),
    ageColumn,
    wide("Containers", containers),
    wide("Images", images),
  ],
  "deployments.apps": [
    nameColumn,
    text("Ready", (o) => `${o.status?.readyReplicas ?? 0}/${o.spec?.replicas ?? 0}`),
    text("Up-to-date", (o) => o.status?.updatedReplicas ?? 0),
    text("Available", (o) => o.status?.availableReplicas ?? 0),
    ageColumn,
    wide("Containers", containers),
    wide("Images", images),
    wide("Selector", (o) => selector(o.spec?.selector)),
  ],
  "replicasets.apps": [
    nameColumn,
    integer("Desired", (o) => o.spec?.replicas ?? 0),
    integer("Current", (o) => o.status?.replicas ?? 0),
    integer("Ready", (o) => o.status?.readyReplicas ?? 0),
    ageColumn,
    wide("Containers", containers),
    wide("Images", images),
    wide("Selector", (o) => selector(o.spec?.selector)),
  ],
  "daemonsets.apps": [
    nameColumn,
    integer("Desired", (o) => o.status?.desiredNumberScheduled ?? 0),
    integer("Current", (o) => o.status?.currentNumberScheduled ?? 0),
    integer("Ready", (o) => o.status?.numberReady ?? 0),
    integer("Up-to-date", (o) => o.status?.updatedNumberScheduled ?? 0),
    integer("Available", (o) => o.status?.numberAvailable ?? 0),
    text("Node Selector", (o) => selector({ matchLabels: o.spec?.template?.spec?.nodeSelector })),
    ageColumn,
    wide("Containers", containers),
    wide("Images", images),
    wide("Selector", (o) => selector(o.spec?.selector)),
  ],
  "poddisruptionbudgets.policy": [
    nameColumn,
    text("Min Available", (o) => String(o.spec?.minAvailable ?? "N/A")),
    text("Max Unavailable", (o) => String(o.spec?.maxUnavailable ?? "N/A")),
    integer("Allowed Disruptions", (o) => o.status?.disruptionsAllowed ?? 0),
    ageColumn,
  ],
};

const plain: readonly Column[] = [
  nameColumn,
  { ...text("Created At", (o) => o.metadata?.creationTimestamp ?? "<unknown>") },
];

/** The columns of a resource, `plural` or `plural.group`. */
export function columnsOf(resource: string): readonly Column[] {
  return columns[resource] ?? plain;
}
