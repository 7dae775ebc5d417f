/** What in the cluster still needs a driver: without it, it is stranded. */
import { type KubeObject, type PersistentVolume, resources } from "@longshore/kube";
import { isPVMigratable, translateInTreePVToCSI } from "@longshore/translation";
import { snapshotContents } from "../deployed-kinds.ts";
import { isServed, listAll } from "./deployed-objects.ts";
import { persistently, type Rollout } from "./rollout.ts";

/** Things of one kind that need the driver. */
export interface Dependents {
  /** What they are, in the plural. */
  readonly what: string;
  /** What happens to them without the driver. */
  readonly consequence: string;
  readonly names: readonly string[];
}

/** All that needs the driver; empty: nothing is stranded. */
export async function dependentsOf(rollout: Rollout, driver: string): Promise<readonly Dependents[]> {
  const { kube } = rollout.env;
  const list = <T extends KubeObject>(resource: Parameters<typeof listAll<T>>[1]) =>
    persistently(rollout, (signal) => listAll(kube, resource, { signal }));
  const attachments = (await list(resources.volumeAttachments)).filter(
    ({ spec }) => spec.attacher === driver,
  );
  const volumes = (await list(resources.persistentVolumes)).filter((pv) => driverOf(pv) === driver);
  const pods = (await list(resources.pods)).filter(({ spec }) =>
    spec?.volumes?.some(({ csi }) => csi?.driver === driver),
  );
  const contents = (await isServed(rollout, snapshotContents)) ? await list(snapshotContents) : [];
  const snapshots = contents.filter(
    (content) => (content as { readonly spec?: { readonly driver?: string } }).spec?.driver === driver,
  );
  const all: readonly Dependents[] = [
    {
      what: "VolumeAttachments",
      consequence: "their volumes stay attached, and no other node may have them",
      names: attachments.map(({ metadata }) => metadata.name),
    },
    {
      what: "PersistentVolumes",
      consequence: "they can be neither mounted nor deleted, and their disks stay",
      names: volumes.map(({ metadata }) => metadata.name),
    },
    {
      what: "pods with inline volumes",
      consequence: "they cannot start again, and their volumes stay mounted",
      names: pods.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
    },
    {
      what: "VolumeSnapshotContents",
      consequence: "their snapshots stay",
      names: snapshots.map(({ metadata }) => metadata.name),
    },
  ];
  return all.filter(({ names }) => names.length > 0);
}

/** The driver that serves the volume: its own, or the one that its in-tree plugin migrates to. */
function driverOf(pv: PersistentVolume): string | undefined {
  if (pv.spec?.csi) return pv.spec.csi.driver;
  if (!isPVMigratable(pv)) return undefined;
  try {
    return (translateInTreePVToCSI(pv) as PersistentVolume).spec?.csi?.driver;
  } catch {
    return undefined; // It never was a volume of the driver.
  }
}

const namesMax = 5;

/** One line on the dependents. */
export function dependentsText({ what, consequence, names }: Dependents): string {
  const shown = names.slice(0, namesMax).join(", ");
  const more = names.length > namesMax ? ` and ${names.length - namesMax} more` : "";
  return `${names.length} ${what} (${shown}${more}): ${consequence}`;
}
