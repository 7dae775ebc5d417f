/**
 * The seam through which components talk to CSI drivers: typed calls by service. Forms: gRPC over
 * a unix socket, and in process. The generated message types are those of `csi.proto`.
 */
import type {
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { Controller, GroupController, Identity, Node, SnapshotMetadata } from "./gen/csi_pb.ts";

/** Options of every call. Secrets in requests are never logged. */
export interface CsiCallOptions {
  readonly signal: AbortSignal;
  /** The call's deadline, in milliseconds; of a stream: until its end. */
  readonly timeoutMs: number;
  /** Whether the call serves an object of a migrated in-tree plugin: the label `migrated` of its metric. */
  readonly migrated?: boolean;
}

/**
 * The methods of a service as calls; failures are `CsiCallError`. A streaming call is made when its first answer is
 * requested, and ends when the loop over it does. Answers that the driver gave just before it failed may be missing.
 */
export type CsiClient<S extends DescService> = {
  readonly [M in keyof S["method"]]: S["method"][M] extends DescMethodUnary<infer I, infer O>
    ? (request: MessageInitShape<I>, options: CsiCallOptions) => Promise<MessageShape<O>>
    : S["method"][M] extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageInitShape<I>, options: CsiCallOptions) => AsyncIterable<MessageShape<O>>
      : never;
};

/**
 * The methods of a service as a driver implements them; a missing one answers UNIMPLEMENTED. A streaming one is
 * asked for more only as its caller takes what came before (but for a few that are on the way), and its `finally` runs
 * when the caller goes.
 */
export type CsiHandlers<S extends DescService> = {
  readonly [M in keyof S["method"]]?: S["method"][M] extends DescMethodUnary<infer I, infer O>
    ? (request: MessageShape<I>, signal: AbortSignal) => Promise<MessageInitShape<O>>
    : S["method"][M] extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageShape<I>, signal: AbortSignal) => AsyncIterable<MessageInitShape<O>>
      : never;
};

/** The services that a driver serves at one endpoint. */
export interface CsiServices {
  readonly identity: CsiHandlers<typeof Identity>;
  readonly controller?: CsiHandlers<typeof Controller>;
  readonly groupController?: CsiHandlers<typeof GroupController>;
  readonly snapshotMetadata?: CsiHandlers<typeof SnapshotMetadata>;
  readonly node?: CsiHandlers<typeof Node>;
}

/**
 * A connection to one driver. Opening it does no I/O; each call connects as needed, and calls run at the same time and in
 * any order. A failure is a `CsiCallError`: `answered: false` (a deadline, a lost connection) says that the driver may have
 * done the work nevertheless, so the caller repeats the call or undoes it. The owner that opened it closes it.
 */
export interface CsiConnection {
  readonly identity: CsiClient<typeof Identity>;
  readonly controller: CsiClient<typeof Controller>;
  readonly groupController: CsiClient<typeof GroupController>;
  readonly snapshotMetadata: CsiClient<typeof SnapshotMetadata>;
  readonly node: CsiClient<typeof Node>;
  /**
   * Calls `listener` once when an established connection is lost: a different driver process may answer later calls
   * (csi-lib-utils, connection.OnConnectionLoss). It is not called for a driver that was never reached, nor after
   * `close`. Returns a function that unsubscribes.
   */
  onLost(listener: () => void): () => void;
  close(): void;
}

/**
 * A kubelet's side of a registration socket (pluginregistration.v1): `getInfo` names the plugin and its socket, and
 * `notifyRegistrationStatus` reports once whether the kubelet accepted it. Failures are `CsiCallError`. Called by the node
 * agent's plugin registration, in this order.
 */
export interface PluginRegistrationClient {
  getInfo(options: CsiCallOptions): Promise<{
    readonly type: string;
    readonly name: string;
    /** Socket of the driver; empty: the registration socket itself. */
    readonly endpoint: string;
    readonly supportedVersions: readonly string[];
  }>;
  notifyRegistrationStatus(
    status: { readonly pluginRegistered: boolean; readonly error: string },
    options: CsiCallOptions,
  ): Promise<void>;
  close(): void;
}

/** What a connection does with what a driver says (decision 0018). */
export interface CsiConnectOptions {
  /**
   * `checked`, which is the default: no status message and no message of a condition holds a secret value, or a control
   * character, or is longer than some KiB; an answer that contains a credential in an id, a context or topology, or
   * with strings too large to keep, fails with INTERNAL and `answered: false`. `masked`: likewise, but such a
   * credential is passed on, as the reference sidecars do. `raw`: answers unchanged, for tests of a driver.
   */
  readonly answers?: "checked" | "masked" | "raw";
}

/**
 * Opens connections. `endpoint` is a socket's absolute path, or `unix://` and the path. Does no I/O: a socket without a
 * server is an UNAVAILABLE of each call. Called by sidecars, the node agent and the driver checks; the
 * caller closes the connection.
 */
export interface CsiConnector {
  connect(endpoint: string, options?: CsiConnectOptions): CsiConnection;
  connectRegistration(socketPath: string): PluginRegistrationClient;
}

/**
 * A server that listens until it is closed. `close` removes its socket and aborts the signals of the calls in flight,
 * whose callers get UNAVAILABLE; over a socket it resolves once the handlers have ended.
 */
export interface CsiServer {
  readonly endpoint: string;
  close(): Promise<void>;
}

/**
 * What a registrar serves on its registration socket. The kubelet calls `getInfo` first, again whenever the socket is
 * recreated, and then reports the result; an error of either is answered to it as a gRPC status.
 */
export interface PluginRegistrationHandlers {
  getInfo(): Promise<{
    readonly type: string;
    readonly name: string;
    readonly endpoint: string;
    readonly supportedVersions: readonly string[];
  }>;
  notifyRegistrationStatus(status: {
    readonly pluginRegistered: boolean;
    readonly error: string;
  }): Promise<void>;
}

/**
 * Makes sockets: a stale one is removed first, a new one has mode 0600. The promise resolves once the server accepts calls.
 * Called by drivers, forwarders and the node-driver-registrar.
 */
export interface CsiListener {
  /** @throws when the path is longer than a unix socket allows, or taken by a live server */
  serve(endpoint: string, services: CsiServices): Promise<CsiServer>;
  serveRegistration(socketPath: string, handlers: PluginRegistrationHandlers): Promise<CsiServer>;
}
