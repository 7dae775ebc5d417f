/** Volumes that join Secrets, ConfigMaps, what is known of the pod, and tokens of its service account. Source: docs/behaviour/pod-volumes.md 3. */
import type { Volume } from "@longshore/kube";
import type { VolumePlugin } from "../../framework/volume-plugin.ts";
import { downwardApiFiles } from "../downward-api/downward-api-plugin.ts";
import { type FilesOf, filesPlugin } from "../pod-files/files-plugin.ts";
import { configMapPayload, secretPayload } from "../pod-files/object-payloads.ts";
import { type Payload, PayloadError, selectionOf, usualMode } from "../pod-files/payload.ts";

type Projection = NonNullable<NonNullable<Volume["projected"]>["sources"]>[number];
type TokenProjection = NonNullable<Projection["serviceAccountToken"]>;

/** The plugin `kubernetes.io/projected`. */
export function projectedPlugin(): VolumePlugin {
  return filesPlugin({
    pluginName: "kubernetes.io/projected",
    source: "projected",
    isSecret: true,
    followsPod: ({ projected }) =>
      projected?.sources?.some(({ downwardAPI }) => downwardAPI != null) === true,
    async payload(of) {
      const { sources = [], defaultMode = usualMode } = of.volume.volume.projected ?? {};
      const joined = new Map();
      for (const source of sources) {
        for (const [path, file] of await payloadOf(of, source, defaultMode)) joined.set(path, file);
      }
      return joined;
    },
  });
}

function payloadOf(of: FilesOf, source: Projection, defaultMode: number): Promise<Payload> {
  const { secret, configMap, downwardAPI, serviceAccountToken } = source;
  if (secret != null) {
    return secretPayload(of, secret.name ?? "", selectionOf(secret, defaultMode), of.signal);
  }
  if (configMap != null) {
    return configMapPayload(of, configMap.name ?? "", selectionOf(configMap, defaultMode), of.signal);
  }
  if (downwardAPI != null) return downwardApiFiles(of, downwardAPI.items ?? [], defaultMode);
  if (serviceAccountToken != null) return tokenPayload(of, serviceAccountToken, defaultMode);
  const kinds = Object.keys(source).join(", ");
  throw new PayloadError(
    `projected: a source of this kind (${kinds}) is not supported: use secret, configMap, downwardAPI or serviceAccountToken`,
  );
}

/** A token that a group is given is for this group and the owner alone. Source: upstream projected.go, collectData. */
async function tokenPayload(
  { sources, reader, args, signal }: FilesOf,
  { audience = "", expirationSeconds = 3600, path }: TokenProjection,
  defaultMode: number,
): Promise<Payload> {
  const { token } = await sources.serviceAccountToken(reader, { audience, expirationSeconds }, signal);
  return new Map([[path, { data: token, mode: args.fsGroup === undefined ? defaultMode : 0o600 }]]);
}
