/** What distinguishes one of the drivers that in-tree plugins migrate to: names, places, parameters, who attaches. */
import { createHash } from "node:crypto";
import { VolumeCapability_AccessMode_Mode as Mode, type RequestLimits } from "@longshore/csi";
import type { CloudCredentials, CloudProvider, Disk, Instance } from "@longshore/volumes";

/** What ids and contexts of volumes are made of. */
export type NamedDisk = Pick<Disk, "id" | "name" | "zone" | "replicaZones" | "tags">;

type Texts = Readonly<Record<string, string>>;

/** How a driver names things, and what it can do. */
export interface DriverKind extends RequestLimits {
  /** Whose disks it serves. */
  readonly provider: CloudProvider;
  /** Undefined: the driver has no topology. */
  readonly topologyKey: string | undefined;
  /** The region that in-tree volumes of the provider are said to be in, by the name of their zone; left out where none is said. */
  regionOfZone?(zone: string): string | undefined;
  /** The region in which the driver runs, where that is known. */
  readonly region?: string | undefined;
  volumeIdOf(disk: NamedDisk): string;
  /** Ids of the disks that a volume id may mean, the likely one first. @param context the volume's, where the call has it */
  diskIdsOf(volumeId: string, context?: Texts): readonly string[];
  /** Whether a disk with one of these ids is what the volume id means; default yes. */
  isMeant?(volumeId: string, disk: NamedDisk): boolean;
  /** True when volume ids are the cloud's own: the cloud need not be asked for one. */
  readonly usesDiskIds: boolean;
  nodeIdOf(instance: Pick<Instance, "instanceId" | "nodeName" | "zone">): string;
  /** The node's name in its id; undefined: node ids are those of instances. */
  readonly nodeNameOf: ((nodeId: string) => string) | undefined;
  /** Who attaches: the controller at ControllerPublishVolume, or the node when it stages. */
  readonly attachesOn: "controller" | "node";
  /** Volumes are shares of files: they have no device and no snapshots. */
  readonly isShare: boolean;
  /** Access modes besides those of one node. */
  readonly sharedModes: readonly Mode[];
  /** Whether a volume for several readers is attached read-only, so that several nodes can have it. */
  readonly attachesReaders: boolean;
  /** The name of the disk for a volume of this name; default the same. */
  diskNameOf?(volumeName: string): string;
  /** Parameters of classes, in lower case; undefined: others are ignored, too. Those of the CO are always understood. */
  readonly parameters: readonly string[] | undefined;
  /** The parameter with the type of the disk, in lower case, and the type without it. */
  readonly type: { readonly parameter: string; readonly standard: string };
  /** The parameter that names a storage policy of the provider's, in lower case, where there are such. */
  readonly policyParameter?: string;
  /** Tags of the disk that come from parameters (keys in lower case): what its id and its context are made of. */
  tagsOf?(parameters: Texts): Texts;
  /** How many zones a disk with these parameters (keys in lower case) is in; default one. */
  zonesOf?(parameters: Texts): number;
  volumeContextOf?(disk: NamedDisk): Texts;
  /** The file system of a blank volume for which none is asked, where the provider has kept it since the disk was made. */
  fsTypeOf?(disk: NamedDisk): string | undefined;
  /** How the machine is to cache the disk that is attached, out of the volume's context (keys in lower case). */
  cachingOf?(context: Texts): string | undefined;
  /** What a node proves with, out of the secret of the call. @throws CsiStatusError INVALID_ARGUMENT where it is needed and missing */
  credentialsOf?(secrets: Texts): CloudCredentials | undefined;
}

/** A driver of disks whose ids are the volumes' and whose nodes are named; what is special is in `rest`. */
export function driverKindOf(
  provider: CloudProvider,
  rest: Partial<Omit<DriverKind, "provider">>,
): DriverKind {
  return {
    provider,
    topologyKey: undefined,
    volumeIdOf: ({ id }) => id,
    diskIdsOf: (volumeId) => [volumeId],
    usesDiskIds: true,
    nodeIdOf: ({ nodeName }) => nodeName,
    nodeNameOf: (nodeId) => nodeId,
    attachesOn: "controller",
    isShare: false,
    sharedModes: [],
    attachesReaders: false,
    parameters: undefined,
    type: { parameter: "type", standard: "" },
    ...rest,
  };
}

/** One UUID for one name, so that a repeated request finds its disk. */
export function uuidFor(name: string): string {
  const hex = createHash("sha256").update(name).digest("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join(
    "-",
  );
}

/**
 * Disks that are named after their volumes; a volume whose name cannot stand in an id has a disk with a name of its own.
 * @param charsMax with more the id would exceed its 128 bytes
 */
export function shortNames(charsMax: number): (volumeName: string) => string {
  return (name) =>
    /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name) && name.length <= charsMax ? name : `pvc-${uuidFor(name)}`;
}

/** What a node id is for drivers that take the provider's. */
export const instanceIds = {
  nodeIdOf: ({ instanceId }: Pick<Instance, "instanceId">) => instanceId,
  nodeNameOf: undefined,
};

/** Readers on any number of nodes. */
export const manyReaders: readonly Mode[] = [Mode.MULTI_NODE_READER_ONLY];

/** Pods on any number of nodes, whatever they do. */
export const manyUsers: readonly Mode[] = [
  ...manyReaders,
  Mode.MULTI_NODE_SINGLE_WRITER,
  Mode.MULTI_NODE_MULTI_WRITER,
];

/** These entries of a map that are there, under other names. */
export function renamed(from: Texts, names: Texts): Texts {
  const entries = Object.entries(names).map(([name, to]) => [to, from[name] ?? ""] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== ""));
}
