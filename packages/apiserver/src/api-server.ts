/** The embedded API server: registry, store and the server's own small controllers, put together. */
import type { KubeClient, KubeObject } from "@longshore/kube";
import type { Component, RuntimeEnv } from "@longshore/runtime";
import { admissionChain } from "./admission/admission.ts";
import { defaultStorageClass } from "./admission/default-storage-class.ts";
import { storageObjectInUseProtection } from "./admission/storage-protection.ts";
import { InProcessClient } from "./client/in-process-client.ts";
import { builtInKinds } from "./registry/kinds/index.ts";
import { apiTime } from "./registry/metadata.ts";
import { KindTable, Registry } from "./registry/registry.ts";
import { adminUser, type UserInfo } from "./registry/request.ts";
import type { Store } from "./storage/store.ts";
import { WatchHub } from "./watch/watch-hub.ts";

/** How the server is made. */
export interface ApiServerOptions {
  readonly store: Store;
}

/** The server. Its clients work from the moment it is made. */
export interface ApiServer extends Component {
  readonly registry: Registry;
  /** False once stopped. */
  readonly running: boolean;
  /** A client in this process; may do everything unless a user is named. */
  client(user?: UserInfo): KubeClient;
  /** Begins the work of the server's own controllers. */
  start(): Promise<void>;
}

/** Namespaces that every cluster has. */
const systemNamespaces = ["default", "kube-node-lease", "kube-public", "kube-system"];

/** Makes a server on a store; nothing runs until `start`. */
export function createApiServer(env: RuntimeEnv, options: ApiServerOptions): ApiServer {
  const watches = new WatchHub(env.clock);
  const registry = new Registry({
    clock: env.clock,
    random: env.random.fork("apiserver"),
    store: options.store,
    kinds: new KindTable(builtInKinds),
    admission: admissionChain([storageObjectInUseProtection, defaultStorageClass]),
    watches,
  });
  ensureNamespaces(registry);
  let running = true;
  const server: ApiServer = {
    registry,
    get running() {
      return running;
    },
    client: (user = adminUser) => new InProcessClient(server, user),
    start: async () => {},
    stop: async () => {
      running = false;
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
