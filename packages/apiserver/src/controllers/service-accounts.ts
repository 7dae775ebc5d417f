/**
 * What every namespace gets: the service account `default` and the ConfigMap with the cluster's authority; and what
 * Secrets of type `kubernetes.io/service-account-token` get: a token (kubernetes pkg/controller/serviceaccount and
 * certificates/rootcacertpublisher).
 */
import { KubeApiError, type KubeObject, type Stored } from "@longshore/kube/basics";
import type { RuntimeEnv } from "@longshore/runtime";
import { type ApiRequest, adminUser } from "../api/api-request.ts";
import { generatedName } from "../api/names.ts";
import type { ServiceAccountTokens } from "../authentication/service-account-tokens.ts";
import type { Registry } from "../registry/registry.ts";
import { followTables } from "./follow-tables.ts";

/** Type of a Secret that holds the token of a service account. */
export const tokenSecretType = "kubernetes.io/service-account-token";
/** Annotation of such a Secret: the account. */
export const accountNameAnnotation = "kubernetes.io/service-account.name";
const accountUidAnnotation = "kubernetes.io/service-account.uid";

/** Name of the ConfigMap with the cluster's authority. */
export const rootCaConfigMap = "kube-root-ca.crt";

const controller = { ...adminUser, name: "system:serviceaccount:kube-system:service-account-controller" };

interface SecretLike extends Stored {
  readonly type?: string;
  readonly data?: Readonly<Record<string, string>>;
}

interface AccountLike extends Stored {
  readonly secrets?: readonly { readonly name?: string }[];
}

/** What the controller works with. */
export interface ServiceAccountControllerOptions {
  readonly accounts: ServiceAccountTokens;
  /** The certificate of the cluster's authority, PEM; without, there is no ConfigMap. */
  readonly rootCa?: string;
}

/** Starts the controller. Returns a function that stops it. */
export function startServiceAccounts(
  env: RuntimeEnv,
  registry: Registry,
  { accounts, rootCa }: ServiceAccountControllerOptions,
): () => void {
  const { store, kinds, version, random } = registry.context;
  const names = random.fork("token secrets");
  const dirty = new Set<string>();
  const table = (name: string) => store.table(name);

  function write(
    verb: "create" | "update" | "delete",
    resource: string,
    namespace: string,
    name: string,
    body?: object,
  ): void {
    const request: ApiRequest = {
      verb,
      group: "",
      version: "v1",
      resource,
      namespace,
      ...(verb === "create" ? {} : { name }),
      query: {},
      ...(body === undefined ? {} : { body }),
      user: controller,
    };
    registry.handle(request);
  }

  function tend(namespace: string): void {
    const stored = table("namespaces").get("", namespace);
    if (stored === undefined || stored.metadata.deletionTimestamp !== undefined) return;
    if (table("serviceaccounts").get(namespace, "default") === undefined) {
      write("create", "serviceaccounts", namespace, "default", { metadata: { name: "default", namespace } });
    }
    if (rootCa !== undefined) tendRootCa(namespace, rootCa);
    for (const secret of table("secrets").list(namespace)) tendSecret(secret as SecretLike);
    if (version.has("noServiceAccountSecrets")) return;
    for (const account of table("serviceaccounts").list(namespace)) giveSecret(account as AccountLike);
  }

  function tendRootCa(namespace: string, certificate: string): void {
    const data = { "ca.crt": certificate };
    const there = table("configmaps").get(namespace, rootCaConfigMap) as
      | (Stored & { data?: Readonly<Record<string, string>> })
      | undefined;
    if (there === undefined) {
      write("create", "configmaps", namespace, rootCaConfigMap, {
        metadata: { name: rootCaConfigMap, namespace },
        data,
      });
    } else if (there.data?.["ca.crt"] !== certificate) {
      write("update", "configmaps", namespace, rootCaConfigMap, { ...there, data });
    }
  }

  /** Fills a token Secret, or deletes it when its account no longer exists. */
  function tendSecret(secret: SecretLike): void {
    if (secret.type !== tokenSecretType || secret.metadata.deletionTimestamp !== undefined) return;
    const { name, namespace = "", annotations = {} } = secret.metadata;
    const account = table("serviceaccounts").get(namespace, annotations[accountNameAnnotation] ?? "");
    const uid = annotations[accountUidAnnotation];
    if (account === undefined || (uid !== undefined && uid !== account.metadata.uid)) {
      write("delete", "secrets", namespace, name);
      return;
    }
    if ((secret.data?.token ?? "") !== "" && uid !== undefined) return;
    write("update", "secrets", namespace, name, {
      ...secret,
      metadata: {
        ...secret.metadata,
        annotations: { ...annotations, [accountUidAnnotation]: account.metadata.uid },
      },
      data: { ...secret.data, ...tokenData(account, name) },
    });
  }

  function tokenData(account: Stored, secretName: string): Readonly<Record<string, string>> {
    const base64 = (text: string) => Buffer.from(text).toString("base64");
    return {
      token: base64(accounts.issueLegacy(account, secretName)),
      namespace: base64(account.metadata.namespace ?? ""),
      ...(rootCa === undefined ? {} : { "ca.crt": base64(rootCa) }),
    };
  }

  /** Creates a token Secret for the account, as versions before 1.24 do. */
  function giveSecret(account: AccountLike): void {
    const { name: ofAccount, namespace = "", uid } = account.metadata;
    const has = (account.secrets ?? []).some((reference) => {
      const secret = table("secrets").get(namespace, reference.name ?? "") as SecretLike | undefined;
      return secret?.type === tokenSecretType;
    });
    if (has || account.metadata.deletionTimestamp !== undefined) return;
    const name = generatedName(`${ofAccount}-token-`, names);
    write("create", "secrets", namespace, name, {
      metadata: {
        name,
        namespace,
        annotations: { [accountNameAnnotation]: ofAccount, [accountUidAnnotation]: uid },
      },
      type: tokenSecretType,
      data: tokenData(account, name),
    });
    const secrets = [...(account.secrets ?? []), { name }];
    write("update", "serviceaccounts", namespace, ofAccount, { ...account, secrets });
  }

  const followed: ReadonlySet<string> = new Set(["namespaces", "serviceaccounts", "secrets", "configmaps"]);
  return followTables(env.clock, store, kinds, (kind) => kind.group === "" && followed.has(kind.plural), {
    onChange(kind, { object }) {
      const { name, namespace = "" } = object.metadata as KubeObject["metadata"] & { name: string };
      if (kind.plural === "configmaps" && name !== rootCaConfigMap) return;
      if (kind.plural === "secrets" && (object as SecretLike).type !== tokenSecretType) return;
      dirty.add(kind.plural === "namespaces" ? name : namespace);
    },
    onIdle() {
      for (const namespace of [...dirty]) {
        dirty.delete(namespace);
        try {
          tend(namespace);
        } catch (error) {
          // Conflict: the other write queues the namespace again.
          if (!(error instanceof KubeApiError)) throw error;
          env.logger.debug("service accounts are tended later", { namespace, error });
        }
      }
    },
  });
}
