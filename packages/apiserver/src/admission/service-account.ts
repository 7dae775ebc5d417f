/**
 * ServiceAccount: a pod runs as an account that is there, and its containers find a token of it
 * (kubernetes plugin/pkg/admission/serviceaccount).
 */
import type { KubeObject, Stored } from "@longshore/kube";
import { apiError, forbidden } from "../api/errors.ts";
import { generatedName } from "../api/names.ts";
import { tokenSecretType } from "../controllers/decide-token-secret-step.ts";
import { rootCaConfigMap } from "../controllers/service-accounts.ts";
import type { Loose, LooseObject } from "../registry/kinds/shaping.ts";
import type { RegistryContext } from "../registry/registry-context.ts";
import type { AdmissionPlugin } from "./admission-chain.ts";

/** Where containers look for their token. */
const mountPath = "/var/run/secrets/kubernetes.io/serviceaccount";
const mirrorAnnotation = "kubernetes.io/config.mirror";
/** Seconds; the odd number distinguishes tokens requested here from others. */
const tokenLifetime = 3607;

interface Account extends Stored {
  readonly automountServiceAccountToken?: boolean;
  readonly imagePullSecrets?: readonly object[];
  readonly secrets?: readonly { readonly name?: string }[];
}

/** Sets the service account of a new pod and mounts a token of it. */
export const serviceAccount: AdmissionPlugin = {
  name: "ServiceAccount",
  onCreate(context, { of }, object) {
    if (of.group !== "" || of.plural !== "pods") return object;
    const pod = object as LooseObject;
    const { name = "", namespace = "", annotations = {} } = pod.metadata ?? {};
    const spec: Loose = pod.spec ?? {};
    if (annotations[mirrorAnnotation] !== undefined) {
      if ((spec.serviceAccountName ?? "") === "") return object;
      throw forbidden(pods, name, "a mirror pod may not reference service accounts");
    }
    const ofPod: string = spec.serviceAccountName || spec.serviceAccount || "default";
    const account = context.store.table("serviceaccounts").get(namespace, ofPod) as Account | undefined;
    if (account === undefined) {
      const why = `error looking up service account ${namespace}/${ofPod}: serviceaccount "${ofPod}" not found`;
      throw forbidden(pods, name, why);
    }
    const pull = account.imagePullSecrets ?? [];
    const named: Loose = {
      ...spec,
      serviceAccountName: ofPod,
      // The former name of the field, which is kept the same (core/v1 PodSpec).
      serviceAccount: ofPod,
      ...((spec.imagePullSecrets ?? []).length === 0 && pull.length > 0 ? { imagePullSecrets: pull } : {}),
    };
    const wants = spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true;
    return { ...pod, spec: wants ? withToken(context, account, named) : named } as KubeObject;
  },
};

const pods = { group: "", resource: "pods" };

/** The spec with a volume that holds the token, mounted in every container that has nothing in its place. */
function withToken(context: RegistryContext, account: Account, spec: Loose): Loose {
  const containers = [...(spec.initContainers ?? []), ...(spec.containers ?? [])] as Loose[];
  const lacks = (container: Loose) =>
    !(container.volumeMounts ?? []).some((mount: Loose) => mount.mountPath === mountPath);
  if (!containers.some(lacks)) return spec;
  const volumes: readonly Loose[] = spec.volumes ?? [];
  const { added, name } = tokenVolume(context, account, volumes);
  const mount = { name, readOnly: true, mountPath };
  const mounted = (list: readonly Loose[] | undefined) =>
    list?.map((container) =>
      lacks(container)
        ? { ...container, volumeMounts: [...(container.volumeMounts ?? []), mount] }
        : container,
    );
  return {
    ...spec,
    volumes: added === undefined ? volumes : [...volumes, added],
    ...(spec.initContainers === undefined ? {} : { initContainers: mounted(spec.initContainers) }),
    containers: mounted(spec.containers) ?? [],
  };
}

function tokenVolume(
  context: RegistryContext,
  account: Account,
  volumes: readonly Loose[],
): { readonly added?: Loose; readonly name: string } {
  if (!context.version.has("projectedTokens")) return secretVolume(context, account, volumes);
  const name = generatedName("kube-api-access-", context.random);
  const fieldRef = { apiVersion: "v1", fieldPath: "metadata.namespace" };
  const sources = [
    { serviceAccountToken: { expirationSeconds: tokenLifetime, path: "token" } },
    { configMap: { name: rootCaConfigMap, items: [{ key: "ca.crt", path: "ca.crt" }] } },
    { downwardAPI: { items: [{ path: "namespace", fieldRef }] } },
  ];
  return { name, added: { name, projected: { sources, defaultMode: 0o644 } } };
}

/** Before 1.21 the token is that of a Secret, which a controller makes for each account. */
function secretVolume(
  { store }: RegistryContext,
  account: Account,
  volumes: readonly Loose[],
): { readonly added?: Loose; readonly name: string } {
  const { name, namespace = "" } = account.metadata;
  const secretName = (account.secrets ?? [])
    .map((reference) => reference.name ?? "")
    .find((of) => (store.table("secrets").get(namespace, of) as Loose | undefined)?.type === tokenSecretType);
  if (secretName === undefined) {
    const why = `No API token found for service account "${name}", retry after the token is automatically created and added to the service account`;
    const details = { name: "create pod", kind: "serviceaccounts", retryAfterSeconds: 1 };
    throw apiError(500, "ServerTimeout", why, details);
  }
  const there = volumes.find((volume) => volume.secret?.secretName === secretName);
  if (there !== undefined) return { name: there.name };
  return { name: secretName, added: { name: secretName, secret: { secretName, defaultMode: 0o644 } } };
}
