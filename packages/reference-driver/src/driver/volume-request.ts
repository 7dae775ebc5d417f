/** What a request asks of a volume, as pure functions: its size, where it may be, its settings. */
import { type CreateVolumeRequest, CsiStatusError, type TopologyRequirement } from "@longshore/csi";
import type { DriverKind } from "./kinds/driver-kind.ts";

const gibibyte = 1024n ** 3n;
/** The largest disk of the provider: 64 TiB (io2 Block Express). */
export const volumeBytesMax = 64n * 1024n ** 4n;
/** Volumes have whole GiB. */
export const volumeBytesMin = gibibyte;

type Range = { readonly requiredBytes: bigint; readonly limitBytes: bigint } | undefined;

/**
 * Whole GiB, at least one, and at least `leastBytes` (that of a source).
 * @throws CsiStatusError INVALID_ARGUMENT or OUT_OF_RANGE
 */
export function sizeOf(range: Range, leastBytes = 0n): bigint {
  const { requiredBytes = 0n, limitBytes = 0n } = range ?? {};
  if (requiredBytes < 0n || limitBytes < 0n) {
    throw new CsiStatusError("INVALID_ARGUMENT", "capacity_range is negative");
  }
  if (limitBytes !== 0n && limitBytes < requiredBytes) {
    throw new CsiStatusError("INVALID_ARGUMENT", "capacity_range.limit_bytes is below required_bytes");
  }
  const wholeBytes = ((requiredBytes + gibibyte - 1n) / gibibyte || 1n) * gibibyte;
  const sizeBytes = wholeBytes > leastBytes ? wholeBytes : leastBytes;
  if (sizeBytes > volumeBytesMax) {
    throw new CsiStatusError(
      "OUT_OF_RANGE",
      `a volume cannot have ${sizeBytes} bytes: ask for at most ${volumeBytesMax}`,
    );
  }
  if (limitBytes !== 0n && sizeBytes > limitBytes) {
    const why = leastBytes > wholeBytes ? "the source is larger than that" : "volumes have whole GiB";
    throw new CsiStatusError("OUT_OF_RANGE", `${why}: ${sizeBytes} bytes are needed, ${limitBytes} allowed`);
  }
  return sizeBytes;
}

/** Whether a volume that was made with so many bytes is what the range asks for. */
export function isSameSize(range: Range, createdBytes: bigint, isCopy: boolean): boolean {
  const { requiredBytes = 0n, limitBytes = 0n } = range ?? {};
  if (limitBytes !== 0n && createdBytes > limitBytes) return false;
  if (requiredBytes === 0n) return true;
  // A copy may have been made larger than was requested, as large as its source.
  return isCopy ? requiredBytes <= createdBytes : sizeOf(range) === createdBytes;
}

/**
 * Zones that will do, best first; undefined when any will. A preferred zone counts only where it is also requisite.
 * @throws CsiStatusError RESOURCE_EXHAUSTED when no zone can be had
 */
export function allowedZones(
  requirement: TopologyRequirement | undefined,
  topologyKey: string | undefined,
  zones: readonly string[],
): readonly string[] | undefined {
  if (requirement === undefined || topologyKey === undefined) return undefined;
  const { requisite, preferred } = requirement;
  if (requisite.length + preferred.length === 0) return undefined;
  const zoneOf = ({ segments }: { readonly segments: Readonly<Record<string, string>> }) =>
    segments[topologyKey];
  const required = requisite.map(zoneOf);
  const wanted = preferred.map(zoneOf).filter((zone) => requisite.length === 0 || required.includes(zone));
  const allowed = [...new Set([...wanted, ...required])].filter((zone) => zone !== undefined);
  const known = allowed.filter((zone) => zones.includes(zone));
  if (known.length === 0) {
    throw new CsiStatusError(
      "RESOURCE_EXHAUSTED",
      allowed.length === 0
        ? `no topology that is asked for has the key ${topologyKey}`
        : `there is no ${topologyKey} ${allowed.join(" or ")}: the driver has ${zones.join(", ")}`,
    );
  }
  return known;
}

/** Settings that can be changed while the volume is in use, and what they may be. */
const mutableSettings: Readonly<Record<string, RegExp>> = {
  type: /^[a-z][a-z0-9-]{0,31}$/,
  iops: /^[1-9]\d{0,5}$/,
  throughput: /^[1-9]\d{0,3}$/,
};

/** @throws CsiStatusError INVALID_ARGUMENT naming the key that is not known or has no such value */
export function checkMutable(parameters: Readonly<Record<string, string>>): void {
  const reason = mutableReason(parameters);
  if (reason !== undefined) throw new CsiStatusError("INVALID_ARGUMENT", reason);
}

/** Why these cannot be set, or undefined. */
export function mutableReason(parameters: Readonly<Record<string, string>>): string | undefined {
  for (const [key, value] of Object.entries(parameters)) {
    const pattern = Object.hasOwn(mutableSettings, key) ? mutableSettings[key] : undefined;
    if (pattern === undefined) {
      const known = Object.keys(mutableSettings).join(", ");
      return `mutable parameter ${key} is not known: the driver has ${known}`;
    }
    if (!pattern.test(value)) return `mutable parameter ${key} cannot have this value`;
  }
  return undefined;
}

/** Parameters of a class by their keys in lower case: keys may come in any. */
export function lowerCased(parameters: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(parameters).map(([key, value]) => [key.toLowerCase(), value]));
}

/** @throws CsiStatusError INVALID_ARGUMENT naming a parameter that the driver does not know, where it refuses such */
export function checkParameters(
  parameters: Readonly<Record<string, string>>,
  { parameters: known }: Pick<DriverKind, "parameters">,
): void {
  if (known === undefined) return;
  const unknown = Object.keys(parameters).find(
    (key) => !key.startsWith(metadataPrefix) && !known.includes(key.toLowerCase()),
  );
  if (unknown === undefined) return;
  throw new CsiStatusError(
    "INVALID_ARGUMENT",
    `parameter ${unknown} is not known: remove it from the class; the driver has ${known.join(", ")}`,
  );
}

/** The disk's type: mutable parameters come first. */
export function typeOf(
  request: Pick<CreateVolumeRequest, "parameters" | "mutableParameters">,
  { type: { parameter, standard } }: Pick<DriverKind, "type">,
): string {
  return request.mutableParameters.type ?? (lowerCased(request.parameters)[parameter] || standard);
}

/** The settings of the disk besides its type. */
export function settingsOf(parameters: Readonly<Record<string, string>>): Record<string, string> {
  const { type: _type, ...settings } = parameters;
  return settings;
}

const metadataPrefix = "csi.storage.k8s.io/";

/** The disk's tags: the name, and what the CO says of the claim. */
export function tagsOf(request: CreateVolumeRequest): Record<string, string> {
  const given = Object.entries(request.parameters).filter(([key]) => key.startsWith(metadataPrefix));
  return { CSIVolumeName: request.name, ...Object.fromEntries(given) };
}

/** The parameters in one line, to compare two requests; what the CO adds of its own is left out. */
export function fingerprintOf(request: CreateVolumeRequest): string {
  const sorted = (map: Readonly<Record<string, string>>) =>
    Object.entries(map)
      .filter(([key]) => !key.startsWith(metadataPrefix))
      .sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([sorted(request.parameters), sorted(request.mutableParameters)]);
}
