/** Operators let claims grow, with and without a pod that uses them. In the end API, disk and file system have grown. */
import { resources } from "@longshore/kube";
import { type ClusterPlugin, clusterPlugin, inTreeHandle, writerSetName } from "@longshore/local";
import { diskOf } from "../../contract-watch.ts";
import { worldOf } from "../../world.ts";
import { bytesOf } from "../size-watch.ts";
import { namespace, type Operation, type Operators } from "./operators.ts";

const stepBytes = 32n * 2n ** 20n;
const stepsMax = 4;

/** A claim of a plugin's writers asks for more. */
export const claimGrown: Operation = async (operators, { target, ms, happens }) => {
  const { cluster, plan } = operators.env;
  const growing = plan.plugins.map(clusterPlugin).filter(({ growsInTree }) => growsInTree);
  const claims = cluster
    .objects(resources.persistentVolumeClaims)
    .filter(({ metadata, status }) => status?.phase === "Bound" && pluginOf(metadata.name, growing));
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
    await cluster.kube.patch(resources.persistentVolumeClaims, { namespace, name }, patch, options);
  };
  await operators.insist(grow);
  operators.decided(grow);
  operators.inTheEnd(`${name} has grown to ${bytes} bytes`, () => hasGrown(operators, name, bytes));
};

/** What the claim asks for now. */
function requested({ env: { cluster } }: Operators, name: string): bigint {
  const claim = cluster.objects(resources.persistentVolumeClaims).find((c) => c.metadata.name === name);
  return bytesOf(claim?.spec?.resources?.requests?.storage);
}

/** Everywhere, by what each says: the claim, its volume, the disk, and the file systems where it is mounted. */
async function hasGrown({ env: { cluster } }: Operators, name: string, bytes: bigint): Promise<boolean> {
  const claim = cluster.objects(resources.persistentVolumeClaims).find((c) => c.metadata.name === name);
  const volumeName = claim?.spec?.volumeName ?? "";
  const volume = cluster.objects(resources.persistentVolumes).find((v) => v.metadata.name === volumeName);
  const world = worldOf(cluster);
  const disk = diskOf(inTreeHandle(volume?.spec) ?? volume?.spec?.csi?.volumeHandle ?? "", world);
  const onDisk = cluster.cloud.disks().find(({ id }) => id === disk)?.sizeBytes ?? 0n;
  const said = [claim?.status?.capacity?.storage, volume?.spec?.capacity?.storage].map(bytesOf);
  const mounted = await Promise.all(
    [...world.mounts].flatMap(([node, mounts]) =>
      mounts
        .filter(
          ({ source, target }) => source.startsWith("/dev/loop") && target.split("/").includes(volumeName),
        )
        .map(async ({ target }) => BigInt((await cluster.hostOf(node).usage(target)).totalBytes)),
    ),
  );
  return [onDisk, ...said, ...mounted].every((size) => size >= bytes);
}

function pluginOf(claim: string, plugins: readonly ClusterPlugin[]): ClusterPlugin | undefined {
  return plugins.find(({ name }) => new RegExp(`^data-${writerSetName(name)}(-\\d+)?$`).test(claim));
}
