/** The embedded API server: registry, store and the server's own small controllers, put together. */
import type { KubeClient, KubeObject } from "@longshore/kube";
import type { Component, RuntimeEnv } from "@longshore/runtime";
import { admissionChain } from "./admission/admission.ts";
import { persistentVolumeClaimResize } from "./admission/claim-resize.ts";
import { defaultStorageClass } from "./admission/default-storage-class.ts";
import { podDefaults, serviceAccountRequired } from "./admission/pod-defaults.ts";
import { storageObjectInUseProtection } from "./admission/storage-protection.ts";
import type { Authorizer } from "./authorization/authorizer.ts";
import { InProcessClient } from "./client/in-process-client.ts";
import { startGarbageCollector } from "./controllers/garbage-collector.ts";
import { startNamespaceLifecycle } from "./controllers/namespace-lifecycle.ts";
import { groupAuthorizer } from "./http/authorization.ts";
import { KindTable } from "./registry/kind-table.ts";
import { builtInKinds } from "./registry/kinds/index.ts";
import { apiTime } from "./registry/metadata.ts";
import { Registry } from "./registry/registry.ts";
import { adminUser, type UserInfo } from "./registry/request.ts";
import type { Store } from "./storage/store.ts";
import { emulatedVersion } from "./versions/emulated-version.ts";
import { WatchHub } from "./watch/watch-hub.ts";

/** How the server is made. */
export interface ApiServerOptions {
  readonly store: Store;
  /** The version of Kubernetes whose behaviour the server shows, `1.20` to `1.36`; default the newest. */
  readonly emulatedVersion?: string;
  /** Feature gates of that version, `A=true,B=false` or as a record. */
  readonly featureGates?: string | Readonly<Record<string, boolean>>;
  /** Whether the server collects garbage and empties namespaces itself; default true. */
  readonly controllers?: boolean;
  /** Whether a pod's service account must exist, as in a cluster that has a controller making them; default false. */
  readonly requireServiceAccounts?: boolean;
}

/** The server. Its clients work from the moment it is made. */
export interface ApiServer extends Component {
  readonly registry: Registry;
  /** Decides who may do what. */
  readonly authorizer: Authorizer;
  /** False once stopped. */
  readonly running: boolean;
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
  const registry = new Registry({
    clock: env.clock,
    random: env.random.fork("apiserver"),
    store: options.store,
    kinds: new KindTable(builtInKinds(version)),
    version,
    admission: admissionChain([
      ...(options.requireServiceAccounts === true ? [serviceAccountRequired] : []),
      podDefaults,
      defaultStorageClass,
      persistentVolumeClaimResize,
      storageObjectInUseProtection,
    ]),
    watches,
  });
  ensureNamespaces(registry);
  let running = true;
  let ends: (() => void)[] = [];
  const server: ApiServer = {
    registry,
    authorizer: groupAuthorizer,
    get running() {
      return running;
    },
    client: (user = adminUser) => new InProcessClient(server, user),
    async start() {
      if (options.controllers === false || ends.length > 0) return;
      ends = [startGarbageCollector(env, registry), startNamespaceLifecycle(env, registry)];
    },
    async stop() {
      running = false;
      for (const end of ends.splice(0)) end();
      watches.closeAll();
    },
  };
  return server;
}

function ensureNamespaces({ context }: Registry): void {
  const { store, random, clock } = context;
  for (const name of systemNamespaces) {
    if (store.table("namespaces").get("", name) !== undefined) continue;
    const namespace = {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name, uid: random.uuid("uid"), creationTimestamp: apiTime(clock.now()) },
      spec: { finalizers: ["kubernetes"] },
      status: { phase: "Active" },
    };
    store.commit([{ resource: "namespaces", namespace: "", name, object: namespace as KubeObject }]);
  }
}
