/** The files of ConfigMaps and Secrets, for volumes of their own and for parts of projected volumes. */
import type { ConfigMap, Secret } from "@longshore/kube";
import type { PodSources, SourceReader } from "../../framework/pod-sources.ts";
import { type KeySelection, type Payload, PayloadError, payloadOfKeys, textOrBytes } from "./payload.ts";

/** What is read and for which volume. */
export interface PayloadEnv {
  readonly sources: PodSources;
  readonly reader: SourceReader;
}

/** The files of a ConfigMap. @throws PayloadError when it or a key is missing and may not be */
export async function configMapPayload(
  { sources, reader }: PayloadEnv,
  name: string,
  selection: KeySelection,
  signal: AbortSignal,
): Promise<Payload> {
  const what = `ConfigMap ${reader.pod.metadata.namespace}/${name}`;
  const configMap = await sources.configMap(reader, name, signal);
  if (configMap === undefined) return whenMissing(what, selection);
  return payloadOfKeys(what, valuesOf(configMap.data, configMap.binaryData), selection);
}

/** The files of a Secret. @throws PayloadError when it or a key is missing and may not be */
export async function secretPayload(
  { sources, reader }: PayloadEnv,
  name: string,
  selection: KeySelection,
  signal: AbortSignal,
): Promise<Payload> {
  const what = `Secret ${reader.pod.metadata.namespace}/${name}`;
  const secret = await sources.secret(reader, name, signal);
  if (secret === undefined) return whenMissing(what, selection);
  return payloadOfKeys(what, valuesOf({}, secret.data), selection);
}

function whenMissing(what: string, { optional }: KeySelection): Payload {
  if (optional === true) return new Map();
  throw new PayloadError(`${what} does not exist: create it, or make the source optional`);
}

function valuesOf(
  texts: ConfigMap["data"] = {},
  encoded: Secret["data"] = {},
): ReadonlyMap<string, string | Uint8Array> {
  return new Map<string, string | Uint8Array>([
    ...Object.entries(texts),
    ...Object.entries(encoded).map(
      ([key, base64]) => [key, textOrBytes(Buffer.from(base64, "base64"))] as const,
    ),
  ]);
}
