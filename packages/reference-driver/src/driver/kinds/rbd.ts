/** `rbd.csi.ceph.com`. */
import { createHash } from "node:crypto";
import { CsiStatusError } from "@longshore/csi";
import {
  type DriverKind,
  driverKindOf,
  manyReaders,
  type NamedDisk,
  renamed,
  uuidFor,
} from "./driver-kind.ts";

const standardPool = "rbd";
const standardCluster = "longshore";
/** Images of this driver are named after volumes, with a UUID. */
const ownImage = /^csi-vol-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
/** Version, length and id of the cluster, number of the pool, UUID. */
const ownHandle = /^0001-[0-9a-f]{4}-.+-[0-9a-f]{16}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Hash of the monitors, image without the prefix of the in-tree plugin, pool in hexadecimal. */
const migratedHandle = /^mig_mons-(.*)_image-(.*)_((?:[0-9a-f]{2})*)$/;
const inTreeImage = "kubernetes-dynamic-pvc-";

/** Ceph RBD: the node maps images. Source: docs/behaviour/volume-plugins.md 8.3. */
export const rbd: DriverKind = driverKindOf("rbd", {
  usesDiskIds: false,
  volumeIdOf,
  diskIdsOf,
  isMeant: (volumeId, disk) => !ownHandle.test(volumeId) || volumeId === volumeIdOf(disk),
  attachesOn: "node",
  sharedModes: manyReaders,
  attachesReaders: true,
  diskNameOf: (volumeName) => `csi-vol-${uuidFor(volumeName)}`,
  type: { parameter: "imageformat", standard: "2" },
  tagsOf: (parameters) => renamed(parameters, { pool: "pool", clusterid: "clusterID" }),
  volumeContextOf: (disk) => {
    const { pool, image } = imageOf(disk);
    return {
      ...(disk.tags.clusterID === undefined ? {} : { clusterID: disk.tags.clusterID }),
      pool,
      imageName: image,
      imageFeatures: "layering",
    };
  },
  credentialsOf({ userID, userKey }) {
    if (userID === undefined || userKey === undefined) {
      throw new CsiStatusError(
        "INVALID_ARGUMENT",
        "secrets lack userID or userKey: name the secret of the Ceph user",
      );
    }
    return { user: userID, key: userKey };
  },
});

function imageOf({ id }: NamedDisk): { readonly pool: string; readonly image: string } {
  const slash = id.indexOf("/");
  return { pool: id.slice(0, slash), image: id.slice(slash + 1) };
}

function volumeIdOf(disk: NamedDisk): string {
  const { pool, image } = imageOf(disk);
  const cluster = disk.tags.clusterID ?? standardCluster;
  const uuid = ownImage.exec(image)?.[1];
  if (uuid === undefined) {
    const own = image.startsWith(inTreeImage) ? image.slice(inTreeImage.length) : image;
    return `mig_mons-${cluster}_image-${own}_${Buffer.from(pool).toString("hex")}`;
  }
  const length = cluster.length.toString(16).padStart(4, "0");
  return `0001-${length}-${cluster}-${poolNumber(pool)}-${uuid}`;
}

function diskIdsOf(volumeId: string, context: Readonly<Record<string, string>> = {}): readonly string[] {
  // The number does not say which pool it is: the images are gone through.
  if (ownHandle.test(volumeId)) return [];
  const migrated = migratedHandle.exec(volumeId);
  if (migrated === null) return [`${context.pool || standardPool}/${volumeId}`];
  const pool = Buffer.from(migrated[3] ?? "", "hex").toString() || standardPool;
  return [`${pool}/${inTreeImage}${migrated[2]}`, `${pool}/${migrated[2]}`];
}

function poolNumber(pool: string): string {
  return createHash("md5").update(pool).digest("hex").slice(0, 16);
}
