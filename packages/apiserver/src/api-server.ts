/** The embedded API server: combines registry, store and the server's own small controllers. */

import type { KubeClient, KubeObject } from "@longshore/kube";
import { apiTime } from "@longshore/kube/basics";
import type { Component, RuntimeEnv } from "@longshore/runtime";
import { admissionChain } from "./admission/admission-chain.ts";
import { certificateRequests } from "./admission/certificate-requests.ts";
import { defaultStorageClass } from "./admission/default-storage-class.ts";
import { limitRanger } from "./admission/limit-ranger.ts";
import { namespaceLifecycle } from "./admission/namespace-lifecycle.ts";
import { nodeRestriction } from "./admission/node-restriction.ts";
import { persistentVolumeClaimResize } from "./admission/persistent-volume-claim-resize.ts";
import { defaultTolerationSeconds, serviceAccountRequired } from "./admission/pod-defaults.ts";
import { priority } from "./admission/priority.ts";
import { rbacEscalation } from "./admission/rbac-escalation.ts";
import { resourceQuota } from "./admission/resource-quota.ts";
import { runtimeClassOfPods } from "./admission/runtime-class.ts";
import { serviceAccount } from "./admission/service-account.ts";
import { storageObjectInUseProtection } from "./admission/storage-object-in-use-protection.ts";
import { adminUser, type UserInfo } from "./api/api-request.ts";
import { KindTable } from "./api/kind-table.ts";
import { workMsDefault } from "./api/work-time.ts";
import { type Authenticator, createAuthenticator } from "./authentication/authenticator.ts";
import { ServiceAccountTokens } from "./authentication/service-account-tokens.ts";
import { anyToken, type StaticToken, staticTokens } from "./authentication/token-authenticator.ts";
import { type AuthorizationMode, createAccess } from "./authorization/authorization-modes.ts";
import type { Authorizer } from "./authorization/authorizer.ts";
import { ensureDefaultRoles } from "./authorization/rbac/default-roles.ts";
import { InProcessClient } from "./client/in-process-client.ts";
import { Definitions } from "./controllers/definitions.ts";
import { startGarbageCollector } from "./controllers/garbage-collector.ts";
import { startNamespaceLifecycle } from "./controllers/namespace-lifecycle.ts";
import { startQuotaStatus } from "./controllers/quota-status.ts";
import { startRoleAggregation } from "./controllers/role-aggregation.ts";
import { startServiceAccounts } from "./controllers/service-accounts.ts";
import { builtInKinds } from "./registry/kinds/index.ts";
import { systemPriorityClasses } from "./registry/kinds/scheduling.ts";
import { Registry } from "./registry/registry.ts";
import type { Store } from "./storage/store.ts";
import { emulatedVersion } from "./versions/emulated-version.ts";
import { WatchHub } from "./watch/watch-hub.ts";
import { AnsweredRequests } from "./webhooks/answered-requests.ts";

/** How the server is made. */
export interface ApiServerOptions {
  readonly store: Store;
  /** The version of Kubernetes whose behaviour the server shows, `1.20` to `1.36`; default the newest. */
  readonly emulatedVersion?: string;
  /** Feature gates of that version, `A=true,B=false` or as a record. */
  readonly featureGates?: string | Readonly<Record<string, boolean>>;
  /** CustomResourceDefinitions that are there from the start; they take the place of stored ones of their names. */
  readonly definitions?: readonly KubeObject[];
  /** Whether the server collects garbage and empties namespaces itself; default true. */
  readonly controllers?: boolean;
  /** Whether a pod's service account must exist, as in a cluster that has a controller making them; default false. */
  readonly requireServiceAccounts?: boolean;
  /**
   * Whether each namespace gets the service account `default` and the cluster's authority, and each pod a token of
   * its account, as in a whole cluster; default false, as envtest has it.
   */
  readonly serviceAccounts?: boolean;
  /** The certificate of the cluster's authority (PEM), which namespaces and tokens are given. */
  readonly rootCa?: string;
  /** Tokens that are valid from the start, and their users. */
  readonly tokens?: readonly StaticToken[];
  /** Whether requests without credentials are let in, as `system:anonymous`; default false. */
  readonly anonymousAuth?: boolean;
  /** The authorizers, in the order in which they decide; default Node, then RBAC. */
  readonly authorizationModes?: readonly AuthorizationMode[];
  /** The key that signs tokens of service accounts (EC P-256, PEM); default: a new key for each process. */
  readonly serviceAccountKey?: string;
  /** Issuer of those tokens, a URL; also the audience of the API itself. */
  readonly serviceAccountIssuer?: string;
  /**
   * Warnings that go with the creation of an object, by kind and group (`Service`, `Ingress.networking.k8s.io`), such as that nothing in the
   * cluster works on that kind; default none.
   */
  readonly creationWarnings?: Readonly<Record<string, string>>;
  /** Most milliseconds of work for one request, which then ends with 504 and changes nothing; default 5,000. */
  readonly workMsMax?: number;
}

/** The issuer that clusters have by convention. */
const issuerDefault = "https://kubernetes.default.svc";

/**
 * The API server without a network: its clients work from the moment it is made. `start` runs its own controllers
 * (garbage collection, namespaces, aggregated roles, service accounts); `stop` ends these and all watches, and `running` is
 * false from then on. `runApiServer` serves it over HTTPS.
 */
export interface ApiServer extends Component {
  readonly registry: Registry;
  /** Answers requests from outside, with their admission webhooks. */
  readonly requests: AnsweredRequests;
  /** Authenticates requests. */
  readonly authenticate: Authenticator;
  /** Authorizes requests. */
  readonly authorizer: Authorizer;
  /** The tokens of service accounts. */
  readonly accounts: ServiceAccountTokens;
  /** False once stopped. */
  readonly running: boolean;
  /** The warning that goes with the creation of an object of the kind, if there is one. */
  creationWarning(kind: { readonly group: string; readonly kind: string }): string | undefined;
  /** A client in this process; may do everything unless a user is named. */
  client(user?: UserInfo): KubeClient;
  /** Begins the work of the server's own controllers. */
  start(): Promise<void>;
}

/** Namespaces that every cluster has. */
const systemNamespaces = ["default", "kube-node-lease", "kube-public", "kube-system"];

/**
 * Makes a server on a store; nothing runs until `start`.
 * @throws EmulatedVersionError, FeatureGateError when the version or the gates are none
 */
export function createApiServer(env: RuntimeEnv, options: ApiServerOptions): ApiServer {
  const version = emulatedVersion(options.emulatedVersion, options.featureGates);
  const watches = new WatchHub(env.clock);
  const { clock } = env;
  const { store } = options;
  const random = env.random.fork("apiserver");
  const accounts = new ServiceAccountTokens({
    clock,
    random: random.fork("tokens"),
    store,
    version,
    issuer: options.serviceAccountIssuer ?? issuerDefault,
    ...(options.serviceAccountKey === undefined ? {} : { key: options.serviceAccountKey }),
  });
  const { issuer } = accounts;
  const known = anyToken([staticTokens(options.tokens ?? [], issuer), accounts]);
  const access = createAccess(store, version, options.authorizationModes ?? ["Node", "RBAC"]);
  const registry = new Registry({
    clock,
    workMsMax: options.workMsMax ?? workMsDefault,
    random,
    store,
    authorizer: access.authorizer,
    rules: access.rules,
    tokens: {
      audience: issuer,
      authenticateToken: (token, audiences) => known.authenticateToken(token, audiences),
      issue: (parameters) => accounts.issue(parameters),
    },
    kinds: new KindTable(builtInKinds(version)),
    version,
    admission: admissionChain([
      namespaceLifecycle,
      limitRanger,
      ...(options.requireServiceAccounts === true ? [serviceAccountRequired] : []),
      ...(options.serviceAccounts === true ? [serviceAccount] : []),
      defaultTolerationSeconds,
      priority,
      defaultStorageClass,
      persistentVolumeClaimResize,
      runtimeClassOfPods,
      storageObjectInUseProtection,
      rbacEscalation,
      certificateRequests,
      nodeRestriction,
      resourceQuota,
    ]),
    watches,
  });
  ensureNamespaces(registry);
  ensurePriorityClasses(registry);
  ensureDefaultRoles(registry.context);
  const authenticate = createAuthenticator({
    authenticateToken: (token) => known.authenticateToken(token, [issuer]),
    anonymousAuth: options.anonymousAuth === true,
  });
  const definitions = new Definitions(env, registry);
  definitions.install(options.definitions ?? []);
  const requests = new AnsweredRequests(env, registry);
  const warnings = new Map(Object.entries(options.creationWarnings ?? {}));
  let running = true;
  let ends: (() => void)[] = [];
  const server: ApiServer = {
    registry,
    requests,
    authenticate,
    authorizer: access.authorizer,
    accounts,
    get running() {
      return running;
    },
    creationWarning: ({ group, kind }) => warnings.get(group === "" ? kind : `${kind}.${group}`),
    client: (user = adminUser) => new InProcessClient(server, user),
    async start() {
      if (options.controllers === false || ends.length > 0) return;
      ends = [
        startGarbageCollector(env, registry),
        startNamespaceLifecycle(env, registry),
        startRoleAggregation(env, registry),
        startQuotaStatus(env, registry),
        ...(options.serviceAccounts === true
          ? [
              startServiceAccounts(env, registry, {
                accounts,
                ...(options.rootCa === undefined ? {} : { rootCa: options.rootCa }),
              }),
            ]
          : []),
      ];
    },
    async stop() {
      running = false;
      definitions.stop();
      requests.stop();
      for (const end of ends.splice(0)) end();
      watches.closeAll();
    },
  };
  return server;
}

function ensureNamespaces({ context }: Registry): void {
  const { store, random, clock, kinds } = context;
  for (const name of systemNamespaces) {
    if (store.table("namespaces").get("", name) !== undefined) continue;
    const namespace = {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name, uid: random.uuid("uid"), creationTimestamp: apiTime(clock.now()) },
      spec: { finalizers: ["kubernetes"] },
      status: { phase: "Active" },
    };
    const object = kinds.findKind("", "Namespace")?.defaults?.(namespace as KubeObject) ?? namespace;
    store.commit([{ resource: "namespaces", namespace: "", name, object: object as KubeObject }]);
  }
}

/** The classes that the system's own pods name (kubernetes pkg/registry/scheduling, post-start hook). */
function ensurePriorityClasses({ context }: Registry): void {
  const { store, random, clock } = context;
  const resource = "priorityclasses.scheduling.k8s.io";
  for (const made of systemPriorityClasses) {
    const name = made.metadata?.name ?? "";
    if (store.table(resource).get("", name) !== undefined) continue;
    const metadata = {
      name,
      uid: random.uuid("uid"),
      creationTimestamp: apiTime(clock.now()),
      generation: 1,
    };
    store.commit([{ resource, namespace: "", name, object: { ...made, metadata } as KubeObject }]);
  }
}
