/** The answer of a Flexvolume driver, read from what it has printed. Pure. Source: docs/behaviour/flexvolume.md 4.2. */

/** What a driver says it can do. */
export interface DriverCapabilities {
  readonly attach: boolean;
  readonly selinuxRelabel: boolean;
  readonly supportsMetrics: boolean;
  readonly fsGroup: boolean;
  readonly requiresFSResize: boolean;
}

const defaultCapabilities: DriverCapabilities = {
  attach: true,
  selinuxRelabel: true,
  supportsMetrics: false,
  fsGroup: true,
  requiresFSResize: true,
};

/** The status object. */
export interface DriverStatus {
  /** `Success`, `Failure` or `Not supported`; anything else counts as a failure. */
  readonly status: string;
  readonly message: string;
  /** Empty where the driver names none. */
  readonly device: string;
  /** Undefined where the driver does not say. */
  readonly attached: boolean | undefined;
  /** Bytes; undefined where the driver does not say. */
  readonly volumeNewSize: bigint | undefined;
  readonly capabilities: DriverCapabilities;
}

/** What was printed is no status object. The message says what is wrong with it, and quotes nothing of it. */
export class DriverOutputError extends Error {
  override readonly name = "DriverOutputError";
}

/** Most characters of an answer; a driver has no reason to print more. */
const outputMax = 1 << 20;

/**
 * Reads the status object. Names of fields match in any letter case, as in the reference; one that is not there, or null,
 * has its default.
 * @throws DriverOutputError
 */
export function parseDriverStatus(output: string): DriverStatus {
  if (output.length > outputMax) throw new DriverOutputError(`printed more than ${outputMax} characters`);
  const object = objectOf(output);
  const status = textOf(object, "status");
  if (status === "") throw new DriverOutputError('printed an object without a "status"');
  return {
    status,
    message: textOf(object, "message"),
    device: textOf(object, "device"),
    attached: booleanOf(object, "attached"),
    volumeNewSize: sizeOf(object),
    capabilities: capabilitiesOf(fieldOf(object, "capabilities")),
  };
}

function objectOf(output: string): object {
  let value: unknown;
  try {
    value = JSON.parse(output);
  } catch {
    throw new DriverOutputError(
      output.trim() === "" ? "printed nothing" : "printed something that is not JSON",
    );
  }
  if (isObject(value)) return value;
  throw new DriverOutputError("printed JSON that is not an object");
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The field with exactly this name, or one that differs in letter case; undefined: none, or null. */
function fieldOf(object: object, name: string): unknown {
  const fields = Object.entries(object);
  const exact = fields.find(([key]) => key === name);
  const field = exact ?? fields.find(([key]) => key.toLowerCase() === name.toLowerCase());
  return field?.[1] ?? undefined;
}

function textOf(object: object, name: string): string {
  const value = fieldOf(object, name) ?? "";
  if (typeof value === "string") return value;
  throw new DriverOutputError(`printed an object whose "${name}" is no string`);
}

function booleanOf(object: object, name: string): boolean | undefined {
  const value = fieldOf(object, name);
  if (value === undefined || typeof value === "boolean") return value;
  throw new DriverOutputError(`printed an object whose "${name}" is neither true nor false`);
}

function sizeOf(object: object): bigint | undefined {
  const value = fieldOf(object, "volumeNewSize");
  if (value === undefined) return undefined;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  throw new DriverOutputError('printed an object whose "volumeNewSize" is no number of bytes');
}

function capabilitiesOf(value: unknown): DriverCapabilities {
  if (value === undefined) return defaultCapabilities;
  if (!isObject(value)) throw new DriverOutputError('printed an object whose "capabilities" is no object');
  const said = (name: keyof DriverCapabilities) => booleanOf(value, name) ?? defaultCapabilities[name];
  return {
    attach: said("attach"),
    selinuxRelabel: said("selinuxRelabel"),
    supportsMetrics: said("supportsMetrics"),
    fsGroup: said("fsGroup"),
    requiresFSResize: said("requiresFSResize"),
  };
}
