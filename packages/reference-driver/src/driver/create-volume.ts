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
  fingerprintOf,
  isSameSize,
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
  for (const capability of request.volumeCapabilities) checkCapability(capability);
  checkMutable(request.mutableParameters);
  sizeOf(request.capacityRange);
  const present = (await cloud.listDisks(signal)).find((disk) => disk.name === request.name);
  const asked = {
    name: request.name,
    type: typeOf(request),
    tags: tagsOf(request),
    settings: settingsOf(request.mutableParameters),
    fingerprint: fingerprintOf(request),
  };
  const source = await sourceOf(context, request.volumeContentSource, present, signal);
  const copied = source === undefined ? {} : { source: source.disk };
  if (
    present !== undefined &&
    isSameSize(request.capacityRange, present.createdBytes, source !== undefined)
  ) {
    const zone = await zoneOfPresent(context, request, present, signal);
    return cloud.createDisk({ ...asked, ...copied, zone, sizeBytes: present.createdBytes }, signal);
  }
  const sizeBytes = sizeOf(request.capacityRange, source?.sizeBytes);
  let refused: unknown;
  for (const zone of await zonesFor(context, request, source?.zone, signal)) {
    try {
      return await cloud.createDisk({ ...asked, ...copied, zone, sizeBytes }, signal);
    } catch (error) {
      // The next best zone may have the room that this one has not.
      if (!(error instanceof CloudError && error.code === "LimitExceeded")) throw error;
      refused = error;
    }
  }
  throw refused ?? new CsiStatusError("RESOURCE_EXHAUSTED", "the disk cloud has no instance, so no zone");
}

interface Source {
  readonly disk: DiskSource;
  readonly sizeBytes?: bigint;
  readonly zone?: string;
}

/** @throws CsiStatusError INVALID_ARGUMENT or NOT_FOUND */
async function sourceOf(
  { cloud, index }: CreateVolumeContext,
  source: VolumeContentSource | undefined,
  present: ProviderDisk | undefined,
  signal: AbortSignal,
): Promise<Source | undefined> {
  if (source === undefined) return undefined;
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
  if (made !== undefined && made.id === id) return { disk: made };
  throw new CsiStatusError("NOT_FOUND", `${type.case} ${id} does not exist`);
}

/** A repeated request may prefer another zone, but the volume is where it is. */
async function zoneOfPresent(
  { cloud, kind }: CreateVolumeContext,
  request: CreateVolumeRequest,
  present: ProviderDisk,
  signal: AbortSignal,
): Promise<string> {
  const zones = await cloud.listZones(signal);
  const allowed = allowedZones(request.accessibilityRequirements, kind.topologyKey, zones);
  if (allowed !== undefined && !allowed.includes(present.zone)) {
    throw new CsiStatusError(
      "ALREADY_EXISTS",
      `volume ${present.id} has the name ${request.name} but is in zone ${present.zone}: choose another name`,
    );
  }
  return present.zone;
}

/** The zones to try, best first. */
async function zonesFor(
  { cloud, kind, zone }: CreateVolumeContext,
  request: CreateVolumeRequest,
  sourceZone: string | undefined,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (kind.topologyKey !== undefined && request.accessibilityRequirements !== undefined) {
    const zones = await cloud.listZones(signal);
    const allowed = allowedZones(request.accessibilityRequirements, kind.topologyKey, zones);
    if (allowed !== undefined) return allowed;
  }
  if (zone !== undefined) return [zone];
  if (sourceZone !== undefined) return [sourceZone];
  const zones = [...new Set((await cloud.listInstances(signal)).map((i) => i.zone))].sort();
  let sum = 0;
  for (const char of request.name) sum += char.codePointAt(0) ?? 0;
  const first = sum % (zones.length || 1);
  return [...zones.slice(first), ...zones.slice(0, first)];
}
