/** Google Compute Engine: disks by name, in one zone or replicated to others; several instances may read one. */
import { type Provider, plainName } from "./provider.ts";

/** `kubernetes.io/gce-pd`, `pd.csi.storage.gke.io`. */
export const gcePd: Provider = {
  name: "gce-pd",
  idOf: ({ name }) => plainName("the name of a disk", name),
  isNumbered: false,
  places: "zones",
  attachLimit: 127,
  attaches: "device",
  deviceName: ({ name }) => `disk/by-id/google-${name}`,
  sharesReaders: true,
  codes: {
    NotFound: "notFound",
    InUse: "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE",
    AlreadyExists: "alreadyExists",
    LimitExceeded: "LIMIT_EXCEEDED",
    ZoneMismatch: "invalid",
    InvalidArgument: "invalid",
    Throttled: "rateLimitExceeded",
    NoSpace: "ZONE_RESOURCE_POOL_EXHAUSTED",
    Unavailable: "backendError",
  },
};
