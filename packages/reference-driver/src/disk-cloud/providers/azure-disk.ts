/** Azure managed disks: ids are URIs without regard to case; a disk on an instance has a LUN. */
import { type Provider, plainName } from "./provider.ts";

const disks = "/subscriptions/longshore/resourceGroups/longshore/providers/Microsoft.Compute/disks";

/** `kubernetes.io/azure-disk`, `disk.csi.azure.com`. */
export const azureDisk: Provider = {
  name: "azure-disk",
  idOf: ({ name }) => `${disks}/${plainName("the name of a disk", name)}`,
  isNumbered: false,
  canonicalId: (id) => id.toLowerCase(),
  places: "zone",
  // That of Standard_D8s_v3 and of others with 8 cores.
  attachLimit: 16,
  attaches: "device",
  deviceName: ({ slot }) => `disk/azure/scsi1/lun${slot}`,
  showsLun: true,
  cachingModes: ["None", "ReadOnly", "ReadWrite"],
  codes: {
    NotFound: "ResourceNotFound",
    InUse: "AttachDiskWhileBeingDetached",
    AlreadyExists: "PropertyChangeNotAllowed",
    LimitExceeded: "MaximumDataDiskCountExceeded",
    ZoneMismatch: "BadRequest",
    InvalidArgument: "InvalidParameter",
    Throttled: "TooManyRequests",
    NoSpace: "AllocationFailed",
    Unavailable: "InternalServerError",
  },
};
