/**
 * The files of a volume that is made from objects of the API: which keys become which paths, with which modes.
 * Source: upstream pkg/volume/configmap MakePayload, pkg/volume/secret MakePayload.
 */

/** One file. */
export interface PayloadFile {
  readonly data: string | Uint8Array;
  /** Permission bits. */
  readonly mode: number;
}

/** The files of a volume by their path in it. */
export type Payload = ReadonlyMap<string, PayloadFile>;

/** A volume cannot be filled as it is described; names object and key, never a value. */
export class PayloadError extends Error {
  override readonly name = "PayloadError";
}

/** Which keys are wanted; core/v1 KeyToPath and its surroundings. */
export interface KeySelection {
  /** Left out or empty: every key, under its name. */
  readonly items?: readonly { readonly key: string; readonly path: string; readonly mode?: number }[];
  /** Missing keys of `items` are no error. */
  readonly optional?: boolean;
  /** Permission bits of files that have none of their own. */
  readonly defaultMode: number;
}

/** Permission bits of files where the volume says nothing. Source: core/v1, defaultMode. */
export const usualMode = 0o644;

/**
 * The files that keys of one object make.
 *
 * @param what names the object, e.g. `ConfigMap default/settings`
 * @throws PayloadError when a key of `items` is missing and may not be
 */
export function payloadOfKeys(
  what: string,
  values: ReadonlyMap<string, string | Uint8Array>,
  { items = [], optional = false, defaultMode }: KeySelection,
): Payload {
  if (items.length === 0) {
    return new Map([...values].map(([key, data]) => [key, { data, mode: defaultMode }]));
  }
  const payload = new Map<string, PayloadFile>();
  for (const { key, path, mode } of items) {
    const data = values.get(key);
    if (data !== undefined) payload.set(path, { data, mode: mode ?? defaultMode });
    else if (!optional)
      throw new PayloadError(`${what} has no key "${key}": add it, or make the source optional`);
  }
  return payload;
}

/** Bytes as text where they are UTF-8, so that they can be compared with a file that is read as text. */
export function textOrBytes(bytes: Uint8Array): string | Uint8Array {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return bytes;
  }
}

/** A source as the API has it, with its defaults. @param defaultMode of the volume that it is a part of */
export function selectionOf(
  source: Partial<KeySelection> | undefined,
  defaultMode: number = source?.defaultMode ?? usualMode,
): KeySelection {
  return { items: source?.items ?? [], optional: source?.optional === true, defaultMode };
}
