/** Amazon EBS: numbered disks in one zone; as many as the instance says. Its device has no name but its own. */
import type { Provider } from "./provider.ts";

/** `kubernetes.io/aws-ebs`, `ebs.csi.aws.com`. */
export const awsEbs: Provider = {
  name: "aws-ebs",
  idOf: ({ hex }) => `vol-0${hex.slice(-16)}`,
  isNumbered: true,
  places: "zone",
  attachLimit: "instance",
  attaches: "device",
  codes: {
    NotFound: "InvalidVolume.NotFound",
    InUse: "VolumeInUse",
    LimitExceeded: "AttachmentLimitExceeded",
    ZoneMismatch: "InvalidVolume.ZoneMismatch",
    Throttled: "RequestLimitExceeded",
    NoSpace: "InsufficientVolumeCapacity",
  },
};
