/** OpenStack Cinder: disks by UUID, in one zone; virtio shows the first 20 characters of it as serial number. */
import type { Provider } from "./provider.ts";

/** `kubernetes.io/cinder`, `cinder.csi.openstack.org`. */
export const cinder: Provider = {
  name: "cinder",
  idOf({ hex }) {
    const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)];
    return parts.join("-");
  },
  isNumbered: true,
  places: "zone",
  // Of virtio-scsi; machines with virtio-blk have 26.
  attachLimit: 256,
  attaches: "device",
  deviceName: ({ id }) => `disk/by-id/virtio-${id.slice(0, 20)}`,
  codes: {
    NotFound: "itemNotFound",
    InUse: "VolumeInUse",
    LimitExceeded: "TooManyVolumesAttached",
    ZoneMismatch: "InvalidVolume",
    InvalidArgument: "badRequest",
    Throttled: "overLimit",
    NoSpace: "VolumeLimitExceeded",
    Unavailable: "computeFault",
  },
};
