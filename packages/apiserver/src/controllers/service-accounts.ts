/**
 * What every namespace gets: the service account `default` and the ConfigMap with the cluster's authority; and what
 * Secrets of type `kubernetes.io/service-account-token` get: a token (kubernetes pkg/controller/serviceaccount and
 * certificates/rootcacertpublisher).
 *
 * Each `ensure…` reads the store, decides, and writes at most what is missing; a second call writes nothing.
 */
import { isDeleting, KubeApiError, type KubeObject, type Stored } from "@longshore/kube/basics";
import type { Random, RuntimeEnv } from "@longshore/runtime";
import { adminUser } from "../api/api-request.ts";
import type { Kind } from "../api/kind.ts";
import { generatedName } from "../api/names.ts";
import type { ServiceAccountTokens } from "../authentication/service-account-tokens.ts";
import type { Registry } from "../registry/registry.ts";
import {
  type AccountLike,
  accountNameAnnotation,
  accountNameOf,
  accountUidAnnotation,
  decideTokenSecretStep,
  isTokenSecret,
  needsTokenSecret,
  type SecretLike,
  tokenSecretType,
} from "./decide-token-secret-step.ts";
import { followTables } from "./follow-tables.ts";

/** Name of the ConfigMap with the cluster's authority. */
export const rootCaConfigMap = "kube-root-ca.crt";

const controller = { ...adminUser, name: "system:serviceaccount:kube-system:service-account-controller" };
const followed: ReadonlySet<string> = new Set(["namespaces", "serviceaccounts", "secrets", "configmaps"]);

/** What the controller works with. */
export interface ServiceAccountControllerOptions {
  readonly accounts: ServiceAccountTokens;
  /** The certificate of the cluster's authority, PEM; without, there is no ConfigMap. */
  readonly rootCa?: string;
}

interface Context extends ServiceAccountControllerOptions {
  readonly registry: Registry;
  /** For the names of token Secrets. */
  readonly random: Random;
}

/** Starts the controller. Returns a function that stops it. */
export function startServiceAccounts(
  env: RuntimeEnv,
  registry: Registry,
  options: ServiceAccountControllerOptions,
): () => void {
  const { store, kinds, random } = registry.context;
  const context: Context = { ...options, registry, random: random.fork("token secrets") };
  const changed = new Set<string>();
  return followTables(env.clock, store, kinds, (kind) => kind.group === "" && followed.has(kind.plural), {
    onChange(kind, { object }) {
      const namespace = namespaceOf(kind, object);
      if (namespace !== undefined) changed.add(namespace);
    },
    onIdle() {
      for (const namespace of [...changed]) {
        changed.delete(namespace);
        try {
          ensureNamespace(context, namespace);
        } catch (error) {
          // Conflict: the other write queues the namespace again.
          if (!(error instanceof KubeApiError)) throw error;
          env.logger.debug("service accounts are looked at again later", { namespace, error });
        }
      }
    },
  });
}

/** The namespace to look at after a change of the object; undefined when the object does not matter here. */
function namespaceOf({ plural }: Kind, object: SecretLike): string | undefined {
  const { name, namespace = "" } = object.metadata;
  if (plural === "namespaces") return name;
  if (plural === "configmaps" && name !== rootCaConfigMap) return undefined;
  if (plural === "secrets" && !isTokenSecret(object)) return undefined;
  return namespace;
}

function ensureNamespace(context: Context, name: string): void {
  const namespace = tableOf(context, "namespaces").get("", name);
  if (namespace === undefined || isDeleting(namespace)) return;
  ensureDefaultAccount(context, name);
  ensureRootCa(context, name);
  for (const secret of tableOf(context, "secrets").list(name)) ensureTokenSecret(context, secret);
  // From 1.24 on, tokens come from requests alone.
  if (context.registry.context.version.has("noServiceAccountSecrets")) return;
  for (const account of tableOf(context, "serviceaccounts").list(name)) ensureAccountSecret(context, account);
}

function ensureDefaultAccount(context: Context, namespace: string): void {
  if (tableOf(context, "serviceaccounts").get(namespace, "default") !== undefined) return;
  write(context, "create", "serviceaccounts", { metadata: { name: "default", namespace } });
}

function ensureRootCa(context: Context, namespace: string): void {
  if (context.rootCa === undefined) return;
  const data = { "ca.crt": context.rootCa };
  const stored: SecretLike | undefined = tableOf(context, "configmaps").get(namespace, rootCaConfigMap);
  if (stored === undefined) {
    write(context, "create", "configmaps", { metadata: { name: rootCaConfigMap, namespace }, data });
  } else if (stored.data?.["ca.crt"] !== context.rootCa) {
    write(context, "update", "configmaps", { ...stored, data });
  }
}

/** Fills a token Secret, or deletes it when its account no longer exists. */
function ensureTokenSecret(context: Context, secret: SecretLike): void {
  const { namespace = "" } = secret.metadata;
  const account = tableOf(context, "serviceaccounts").get(namespace, accountNameOf(secret));
  const decision = decideTokenSecretStep(secret, account);
  if (decision.step === "deleteSecret") write(context, "delete", "secrets", secret);
  if (decision.step === "fillSecret") fillTokenSecret(context, secret, decision.account);
}

function fillTokenSecret(context: Context, secret: SecretLike, account: Stored): void {
  const { metadata } = secret;
  const annotations = { ...metadata.annotations, [accountUidAnnotation]: account.metadata.uid };
  const data = { ...secret.data, ...tokenData(context, account, metadata.name) };
  write(context, "update", "secrets", { ...secret, metadata: { ...metadata, annotations }, data });
}

/** Creates a token Secret for an account that has none, as versions before 1.24 do. */
function ensureAccountSecret(context: Context, account: AccountLike): void {
  const { namespace = "" } = account.metadata;
  const listed = (account.secrets ?? []).flatMap(
    ({ name = "" }) => tableOf(context, "secrets").get(namespace, name) ?? [],
  );
  if (needsTokenSecret(account, listed)) createTokenSecret(context, account);
}

function createTokenSecret(context: Context, account: AccountLike): void {
  const { name: accountName, namespace = "", uid } = account.metadata;
  const name = generatedName(`${accountName}-token-`, context.random);
  const annotations = { [accountNameAnnotation]: accountName, [accountUidAnnotation]: uid };
  write(context, "create", "secrets", {
    metadata: { name, namespace, annotations },
    type: tokenSecretType,
    data: tokenData(context, account, name),
  });
  const secrets = [...(account.secrets ?? []), { name }];
  write(context, "update", "serviceaccounts", { ...account, secrets });
}

function tokenData({ accounts, rootCa }: Context, account: Stored, secretName: string) {
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  return {
    token: base64(accounts.issueLegacy(account, secretName)),
    namespace: base64(account.metadata.namespace ?? ""),
    ...(rootCa === undefined ? {} : { "ca.crt": base64(rootCa) }),
  };
}

function tableOf({ registry }: Context, resource: string) {
  return registry.context.store.table(resource);
}

/** Writes an object of the core group. @throws KubeApiError */
function write<T extends KubeObject>(
  { registry }: Context,
  verb: "create" | "update" | "delete",
  resource: string,
  object: T,
): void {
  const { name = "", namespace = "" } = object.metadata ?? {};
  const target = {
    verb,
    group: "",
    version: "v1",
    resource,
    namespace,
    query: {},
    user: controller,
  } as const;
  if (verb === "create") registry.handle({ ...target, body: object });
  else if (verb === "update") registry.handle({ ...target, name, body: object });
  else registry.handle({ ...target, name });
}
