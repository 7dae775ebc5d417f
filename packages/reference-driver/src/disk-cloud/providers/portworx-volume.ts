/** Portworx: disks by number, without zones; a node attaches them itself, one node at a time. */
import type { Provider } from "./provider.ts";

/** `kubernetes.io/portworx-volume`, `pxd.portworx.com`. */
export const portworxVolume: Provider = {
  name: "portworx-volume",
  idOf: ({ hex }) => BigInt(`0x${hex.slice(-15)}`).toString(),
  isNumbered: true,
  places: "anywhere",
  attachLimit: undefined,
  attaches: "device",
  deviceName: ({ id }) => `pxd/pxd${id}`,
  codes: {
    NotFound: "VolumeNotFound",
    InUse: "VolumeAttachedOnRemoteNode",
    AlreadyExists: "VolumeExists",
    Throttled: "ResourceExhausted",
    NoSpace: "InsufficientPoolSpace",
    Unavailable: "NotInQuorum",
  },
};
