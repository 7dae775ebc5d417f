/** Tables of the storage kinds (kubernetes pkg/printers/internalversion). */
import type { Column, Row } from "../api/column.ts";
import { ageColumn, boolean, deleting, integer, joined, nameColumn, text, wide } from "./column.ts";

const shortModes: Readonly<Record<string, string>> = {
  ReadWriteOnce: "RWO",
  ReadOnlyMany: "ROX",
  ReadWriteMany: "RWX",
  ReadWriteOncePod: "RWOP",
};

function modes(given: readonly string[] | undefined): string {
  return Object.entries(shortModes)
    .filter(([mode]) => given?.includes(mode))
    .map(([, short]) => short)
    .join(",");
}

const legacyClass = "volume.beta.kubernetes.io/storage-class";
const classOf = (o: Row) => o.metadata?.annotations?.[legacyClass] ?? o.spec?.storageClassName ?? "";
const attributesClass: Column = {
  ...text("VolumeAttributesClass", (o) => o.spec?.volumeAttributesClassName ?? "<unset>"),
  since: "attributesClassColumns",
};
const volumeMode = wide("VolumeMode", (o) => o.spec?.volumeMode ?? "<unset>");

const defaultMarks = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
];

/** By resource key. */
export const storageTables: Readonly<Record<string, readonly Column[]>> = {
  persistentvolumes: [
    nameColumn,
    text("Capacity", (o) => o.spec?.capacity?.storage ?? "0"),
    text("Access Modes", (o) => modes(o.spec?.accessModes)),
    text("Reclaim Policy", (o) => o.spec?.persistentVolumeReclaimPolicy ?? ""),
    text("Status", (o) => (deleting(o) ? "Terminating" : (o.status?.phase ?? ""))),
    text("Claim", (o) =>
      o.spec?.claimRef === undefined
        ? ""
        : `${o.spec.claimRef.namespace ?? ""}/${o.spec.claimRef.name ?? ""}`,
    ),
    text("StorageClass", classOf),
    attributesClass,
    text("Reason", (o) => o.status?.reason ?? ""),
    ageColumn,
    volumeMode,
  ],
  persistentvolumeclaims: [
    nameColumn,
    text("Status", (o) => (deleting(o) ? "Terminating" : (o.status?.phase ?? ""))),
    text("Volume", (o) => o.spec?.volumeName ?? ""),
    text("Capacity", (o) => (o.spec?.volumeName ? (o.status?.capacity?.storage ?? "0") : "")),
    text("Access Modes", (o) => (o.spec?.volumeName ? modes(o.status?.accessModes) : "")),
    text("StorageClass", classOf),
    attributesClass,
    ageColumn,
    volumeMode,
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
    boolean("Attached", (o) => o.status?.attached ?? false),
    ageColumn,
  ],
  "csinodes.storage.k8s.io": [nameColumn, integer("Drivers", (o) => o.spec?.drivers?.length ?? 0), ageColumn],
  "csidrivers.storage.k8s.io": [
    nameColumn,
    boolean("AttachRequired", (o) => o.spec?.attachRequired ?? true),
    boolean("PodInfoOnMount", (o) => o.spec?.podInfoOnMount ?? false),
    { ...boolean("StorageCapacity", (o) => o.spec?.storageCapacity ?? false), since: "driverColumns" },
    {
      ...text("TokenRequests", (o) => {
        const requests: readonly Row[] = o.spec?.tokenRequests ?? [];
        return requests.length === 0 ? "<unset>" : requests.map(({ audience }) => audience).join(",");
      }),
      since: "driverColumns",
    },
    { ...boolean("RequiresRepublish", (o) => o.spec?.requiresRepublish ?? false), since: "driverColumns" },
    text("Modes", (o) => joined(o.spec?.volumeLifecycleModes)),
    ageColumn,
  ],
  "csistoragecapacities.storage.k8s.io": [
    nameColumn,
    text("StorageClassName", (o) => o.storageClassName ?? ""),
    text("Capacity", (o) => o.capacity ?? "<unset>"),
  ],
  "volumeattributesclasses.storage.k8s.io": [
    nameColumn,
    text("DriverName", (o) => o.driverName ?? ""),
    ageColumn,
  ],
};
