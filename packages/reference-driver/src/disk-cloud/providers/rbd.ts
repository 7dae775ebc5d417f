/** Ceph RBD: images of pools, mapped by nodes that know a user's key; several nodes may map one read-only. */
import { type Provider, plainName } from "./provider.ts";

/** Pool of images for which none is asked (tag `pool`). */
const standard = "rbd";

/** `kubernetes.io/rbd`, `rbd.csi.ceph.com`. */
export const rbd: Provider = {
  name: "rbd",
  idOf({ name, tags }) {
    const pool = plainName("tag pool", tags.pool || standard);
    return `${pool}/${plainName("the name of an image", name)}`;
  },
  isNumbered: false,
  places: "anywhere",
  attachLimit: undefined,
  attaches: "device",
  deviceName: ({ slot }) => `rbd${slot}`,
  sharesReaders: true,
  asksFor: "user",
  codes: {
    NotFound: "ENOENT",
    InUse: "EBUSY (exclusive lock held)",
    AlreadyExists: "EEXIST",
    InvalidArgument: "EINVAL",
    Throttled: "EAGAIN (slow ops)",
    NoSpace: "ENOSPC",
    Unauthenticated: "EACCES",
    Unavailable: "ETIMEDOUT",
  },
};
