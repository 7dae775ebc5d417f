/** vSphere: disks are files of a datastore, which every machine can reach. */
import { type Provider, plainName } from "./provider.ts";

/** Datastore of disks for which none is asked (tag `datastore`). */
const standard = "longshore";

/** `kubernetes.io/vsphere-volume`, `csi.vsphere.vmware.com`. */
export const vsphereVolume: Provider = {
  name: "vsphere-volume",
  idOf({ name, tags }) {
    const datastore = plainName("tag datastore", tags.datastore || standard);
    return `[${datastore}] kubevols/${plainName("the name of a disk", name)}.vmdk`;
  },
  isNumbered: false,
  places: "anywhere",
  attachLimit: 59,
  storagePolicies: ["vSAN Default Storage Policy", "gold", "silver"],
  attaches: "device",
  // A disk's UUID begins with the vendor's number.
  deviceName: ({ hex }) => `disk/by-id/wwn-0x6000c29${hex.padStart(25, "0")}`,
  codes: {
    NotFound: "ManagedObjectNotFound",
    InUse: "ResourceInUse",
    AlreadyExists: "FileAlreadyExists",
    LimitExceeded: "TooManyDevices",
    InvalidArgument: "InvalidArgument",
    Throttled: "TaskInProgress",
    NoSpace: "InsufficientStorageSpace",
    Unavailable: "HostCommunication",
  },
};
