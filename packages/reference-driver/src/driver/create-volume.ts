/** CreateVolume: what is asked for is made once, where it may be, or found as it was made. */
import {
  type CreateVolumeRequest,
  CreateVolumeRequestSchema,
  type CsiServices,
  CsiStatusError,
  checkName,
  type VolumeContentSource,
} from "@longshore/csi";
import { CloudError } from "@longshore/volumes";
import type { DiskSource, ProviderDisk } from "../disk-cloud/index.ts";
import { checkCapability } from "./check-capability.ts";
import type { ControllerServiceOptions } from "./controller-service-options.ts";
import type { PendingCalls } from "./pending-calls.ts";
import type { RequestChecks } from "./request-checks.ts";
import type { VolumeIndex } from "./volume-index.ts";
import {
  allowedZones,
  checkMutable,
  checkParameters,
  fingerprintOf,
  isSameSize,
  lowerCased,
  settingsOf,
  sizeOf,
  tagsOf,
  typeOf,
} from "./volume-request.ts";

/** What the handler works with. */
export interface CreateVolumeContext extends ControllerServiceOptions {
  readonly rpc: RequestChecks;
  readonly index: VolumeIndex;
  readonly pending: PendingCalls;
}

type Handler = NonNullable<NonNullable<CsiServices["controller"]>["createVolume"]>;

/** Builds the handler. */
export function createVolume(context: CreateVolumeContext): Handler {
  return context.rpc(CreateVolumeRequestSchema, ["name", "volume_capabilities"], (request, signal) => {
    checkName(request.name);
    return context.pending.alone(`volume ${request.name}`, async () => {
      const disk = await ensureDisk(context, request, signal);
      const { volumeContentSource: contentSource } = request;
      return { volume: { ...context.index.shown(disk), ...(contentSource && { contentSource }) } };
    });
  });
}

async function ensureDisk(
  context: CreateVolumeContext,
  request: CreateVolumeRequest,
  signal: AbortSignal,
): Promise<ProviderDisk> {
  const { cloud } = context;
  for (const capability of request.volumeCapabilities) checkCapability(capability, context.kind);
  checkMutable(request.mutableParameters);
  checkParameters(request.parameters, context.kind);
  sizeOf(request.capacityRange);
  const name = context.kind.diskNameOf?.(request.name) ?? request.name;
  const present = (await cloud.listDisks(signal)).find((disk) => disk.name === name);
  const asked = {
    name,
    type: typeOf(request, context.kind),
    ...(await storagePolicyOf(context, request, signal)),
    tags: { ...tagsOf(request), ...context.kind.tagsOf?.(lowerCased(request.parameters)) },
    settings: settingsOf(request.mutableParameters),
    fingerprint: fingerprintOf(request),
  };
  const source = await sourceOf(context, request.volumeContentSource, present, signal);
  const copied = source === undefined ? {} : { source: source.disk };
  if (
    present !== undefined &&
    isSameSize(request.capacityRange, present.createdBytes, source !== undefined)
  ) {
    const place = await placeOfPresent(context, request, present, signal);
    return cloud.createDisk({ ...asked, ...copied, ...place, sizeBytes: present.createdBytes }, signal);
  }
  const sizeBytes = sizeOf(request.capacityRange, source?.sizeBytes);
  let refused: unknown;
  for (const place of await placesFor(context, request, source?.zone, signal)) {
    try {
      return await cloud.createDisk({ ...asked, ...copied, ...place, sizeBytes }, signal);
    } catch (error) {
      // The next best zone may have the room that this one has not.
      if (!(error instanceof CloudError && error.code === "LimitExceeded")) throw error;
      refused = error;
    }
  }
  throw refused ?? new CsiStatusError("RESOURCE_EXHAUSTED", "the disk cloud has no instance, so no zone");
}

/** The policy that the class names. @throws CsiStatusError INVALID_ARGUMENT for one that the provider does not have */
async function storagePolicyOf(
  { cloud, kind: { policyParameter } }: CreateVolumeContext,
  { parameters }: CreateVolumeRequest,
  signal: AbortSignal,
): Promise<{ readonly storagePolicy?: string }> {
  const storagePolicy = policyParameter && lowerCased(parameters)[policyParameter];
  if (!storagePolicy) return {};
  const known = await cloud.listStoragePolicies(signal);
  if (known.includes(storagePolicy)) return { storagePolicy };
  throw new CsiStatusError(
    "INVALID_ARGUMENT",
    `parameter ${policyParameter} "${storagePolicy}" of the class names no storage policy of the provider: ` +
      `use one of ${known.join(", ")}, or make it there`,
  );
}

interface Source {
  readonly disk: DiskSource;
  readonly sizeBytes?: bigint;
  readonly zone?: string;
}

/** @throws CsiStatusError INVALID_ARGUMENT or NOT_FOUND */
async function sourceOf(
  { cloud, index, kind }: CreateVolumeContext,
  source: VolumeContentSource | undefined,
  present: ProviderDisk | undefined,
  signal: AbortSignal,
): Promise<Source | undefined> {
  if (source === undefined) return undefined;
  if (kind.isShare) {
    throw new CsiStatusError("INVALID_ARGUMENT", "volume_content_source: the driver does not copy shares");
  }
  const { type } = source;
  const id = type.case === "snapshot" ? type.value.snapshotId : type.value?.volumeId;
  if (type.case === undefined || id === undefined || id === "") {
    throw new CsiStatusError("INVALID_ARGUMENT", "volume_content_source names neither snapshot nor volume");
  }
  if (type.case === "snapshot") {
    const snapshot = (await cloud.listSnapshots(signal)).find((s) => s.id === id);
    if (snapshot !== undefined) return { disk: { kind: "snapshot", id }, sizeBytes: snapshot.sizeBytes };
  } else {
    const disk = await index.find(id, signal);
    if (disk !== undefined) {
      return { disk: { kind: "disk", id: disk.id }, sizeBytes: disk.sizeBytes, zone: disk.zone };
    }
  }
  // Made already, and the source deleted since: the copy is what was requested.
  const made = present?.source;
  const isMade = type.case === "snapshot" ? made?.id === id : kind.diskIdsOf(id).includes(made?.id ?? "");
  if (made !== undefined && isMade) return { disk: made };
  throw new CsiStatusError("NOT_FOUND", `${type.case} ${id} does not exist`);
}

/** Where a disk is: its zone, and the others of a regional one. */
interface Place {
  readonly zone: string;
  readonly replicaZones?: readonly string[];
}

/** A repeated request may prefer another zone, but the volume is where it is. */
async function placeOfPresent(
  { cloud, kind }: CreateVolumeContext,
  request: CreateVolumeRequest,
  present: ProviderDisk,
  signal: AbortSignal,
): Promise<Place> {
  const zones = await cloud.listZones(signal);
  const allowed = allowedZones(request.accessibilityRequirements, kind.topologyKey, zones);
  const { zone, replicaZones } = present;
  if (allowed !== undefined && ![zone, ...(replicaZones ?? [])].some((each) => allowed.includes(each))) {
    throw new CsiStatusError(
      "ALREADY_EXISTS",
      `volume ${present.id} has the name ${request.name} but is in zone ${zone}: choose another name`,
    );
  }
  return replicaZones === undefined ? { zone } : { zone, replicaZones };
}

/** The places to try, best first. @throws CsiStatusError INVALID_ARGUMENT without zones enough for a regional disk */
async function placesFor(
  context: CreateVolumeContext,
  request: CreateVolumeRequest,
  sourceZone: string | undefined,
  signal: AbortSignal,
): Promise<readonly Place[]> {
  const { cloud, kind } = context;
  const count = kind.zonesOf?.(lowerCased(request.parameters)) ?? 1;
  const zones = await zonesFor(context, request, sourceZone, signal);
  if (count === 1) return zones.map((zone) => ({ zone }));
  // Where the request leaves it open, the others are any of the provider's zones.
  const all = new Set(zones.length >= count ? zones : [...zones, ...(await cloud.listZones(signal))]);
  const [zone, ...replicaZones] = [...all].slice(0, count);
  if (zone === undefined || replicaZones.length < count - 1) {
    throw new CsiStatusError(
      "INVALID_ARGUMENT",
      `a volume in ${count} zones needs as many: there are ${all.size}`,
    );
  }
  return [{ zone, replicaZones }];
}

/** The zones to try, best first. */
async function zonesFor(
  { cloud, kind, zone }: CreateVolumeContext,
  request: CreateVolumeRequest,
  sourceZone: string | undefined,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const zones = await cloud.listZones(signal);
  // The provider's disks are nowhere in particular.
  if (zones.every((each) => each === "")) return zones;
  if (kind.topologyKey !== undefined && request.accessibilityRequirements !== undefined) {
    const allowed = allowedZones(request.accessibilityRequirements, kind.topologyKey, zones);
    if (allowed !== undefined) return allowed;
  }
  if (zone !== undefined) return [zone];
  if (sourceZone !== undefined) return [sourceZone];
  const used = [...new Set((await cloud.listInstances(signal)).map((i) => i.zone))].sort();
  let sum = 0;
  for (const char of request.name) sum += char.codePointAt(0) ?? 0;
  const first = sum % (used.length || 1);
  return [...used.slice(first), ...used.slice(0, first)];
}
