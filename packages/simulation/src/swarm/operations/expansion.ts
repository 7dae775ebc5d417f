/** Operators let claims grow, with and without a pod that uses them. In the end API, disk and file system have grown. */
import { isNotFound, type PersistentVolumeClaim, resources, type Stored } from "@longshore/kube";
import { clusterPlugin, type InProcessCluster, inTreeHandle } from "@longshore/local";
import type { Mount } from "@longshore/runtime";
import { diskOf } from "../../contract-watch.ts";
import { worldOf } from "../../world.ts";
import { bytesOf } from "../size-watch.ts";
import { namespace, type Operation, type Operators } from "./operators.ts";

const stepBytes = 32n * 2n ** 20n;
const stepsMax = 4;

/** A claim asks for more, of whichever workload: of a claim's or a pod's own volume, of in-tree code or a driver. */
export const claimGrown: Operation = async (operators, { target, ms, happens }) => {
  const { cluster, plan } = operators.env;
  const claims = cluster
    .objects(resources.persistentVolumeClaims)
    .filter((each) => each.status?.phase === "Bound" && mayGrow(operators, each));
  const claim = claims[target % Math.max(1, claims.length)];
  if (claim === undefined) return;
  const { name } = claim.metadata;
  const bytes = bytesOf(claim.spec?.resources?.requests?.storage) + stepBytes * BigInt(1 + (ms % stepsMax));
  if (!happens(`${name} grows to ${bytes} bytes`)) return;
  const body = { spec: { resources: { requests: { storage: `${bytes}` } } } };
  const options = { signal: operators.signal };
  const grow = async () => {
    if (requested(operators, name) >= bytes) return;
    const patch = { type: "merge", body } as const;
    await cluster.kube
      .patch(resources.persistentVolumeClaims, { namespace, name }, patch, options)
      .catch((error) => {
        // It may go with its pod, and a conversion makes it again with the size that it had.
        if (!isOfPod(claim) || !isNotFound(error)) throw error;
      });
  };
  await operators.insist(grow);
  operators.decided(grow);
  // One that is made again has the size of its template.
  const mayBeNew = isOfPod(claim) || plan.operations.includes("claimDeleted");
  const least = () => (mayBeNew ? requested(operators, name) : bytes);
  operators.inTheEnd(`${name} has grown to ${bytes} bytes`, () => hasGrown(operators, name, least()));
};

/** Where the class lets it; no claim of a snapshot, which its reader removes. */
function mayGrow({ env: { cluster, plan } }: Operators, { metadata, spec }: Stored<PersistentVolumeClaim>) {
  const isOf = (name: string | undefined) => name === spec?.storageClassName;
  const storageClass = cluster.objects(resources.storageClasses).find((each) => isOf(each.metadata.name));
  if (storageClass?.allowVolumeExpansion !== true) return false;
  if (spec?.dataSource != null || metadata.deletionTimestamp !== undefined) return false;
  const inTree = plan.plugins
    .map(clusterPlugin)
    .find(({ inTreeName }) => inTreeName === storageClass.provisioner);
  return inTree?.growsInTree ?? true;
}

/** The claim of a generic ephemeral volume: another one of its name comes with the next pod. */
function isOfPod({ metadata }: Stored<PersistentVolumeClaim>): boolean {
  return metadata.ownerReferences?.some(({ kind }) => kind === "Pod") === true;
}

/** What the claim of this name asks for now; nothing where it is gone. */
function requested({ env: { cluster } }: Operators, name: string): bigint {
  const claim = cluster.objects(resources.persistentVolumeClaims).find((c) => c.metadata.name === name);
  return bytesOf(claim?.spec?.resources?.requests?.storage);
}

/** Everywhere, by what each says: the claim, its volume, the disk, and the file systems where it is mounted. */
async function hasGrown({ env: { cluster } }: Operators, name: string, bytes: bigint): Promise<boolean> {
  const claim = cluster.objects(resources.persistentVolumeClaims).find((c) => c.metadata.name === name);
  const volumeName = claim?.spec?.volumeName ?? "";
  const volume = cluster.objects(resources.persistentVolumes).find((v) => v.metadata.name === volumeName);
  const disk = diskOf(inTreeHandle(volume?.spec) ?? volume?.spec?.csi?.volumeHandle ?? "", worldOf(cluster));
  const onDisk = cluster.cloud.disks().find(({ id }) => id === disk)?.sizeBytes ?? 0n;
  const said = [claim?.status?.capacity?.storage, volume?.spec?.capacity?.storage].map(bytesOf);
  // A pod that has the device itself sees what the disk has.
  const used = claim?.spec?.volumeMode === "Block" ? [] : await fileSystemSizes(cluster, volumeName);
  return [onDisk, ...said, ...used].every((size) => size >= bytes);
}

async function fileSystemSizes(cluster: InProcessCluster, volumeName: string): Promise<readonly bigint[]> {
  const isOf = ({ source, target }: Mount) =>
    source.startsWith("/dev/loop") && target.split("/").includes(volumeName);
  const targets = [...worldOf(cluster).mounts].flatMap(([node, mounts]) =>
    mounts.filter(isOf).map(({ target }) => ({ host: cluster.hostOf(node), target })),
  );
  return Promise.all(targets.map(async ({ host, target }) => BigInt((await host.usage(target)).totalBytes)));
}
