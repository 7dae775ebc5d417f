/** The seam through which the kubelet's probes and hooks reach what containers serve. Real form: `http-probe-network.ts`. */

/** A GET of a probe or a hook. */
export interface ProbeRequest {
  readonly scheme: "http" | "https";
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A health check of gRPC. */
export interface GrpcHealthRequest {
  readonly host: string;
  readonly port: number;
  /** Name of the service; empty: the server as a whole. */
  readonly service: string;
}

/** Reaches the ports of containers. */
export interface ProbeNetwork {
  /** The status of the answer. Redirects are not followed; certificates are not verified. @throws Error without an answer */
  httpGet(request: ProbeRequest, signal: AbortSignal): Promise<number>;
  /** Resolves once a connection was made; it is closed at once. @throws Error when none can be made */
  connect(host: string, port: number, signal: AbortSignal): Promise<void>;
  /** The name of the status that the server gives the service, `SERVING` say. @throws Error without an answer */
  grpcHealth(request: GrpcHealthRequest, signal: AbortSignal): Promise<string>;
}

/** The network of containers that serve nothing: every connection is refused. */
export const noProbeNetwork: ProbeNetwork = {
  httpGet: async ({ host, port }) => {
    throw new Error(`nothing listens on ${host}:${port}`);
  },
  connect: async (host, port) => {
    throw new Error(`nothing listens on ${host}:${port}`);
  },
  grpcHealth: async ({ host, port }) => {
    throw new Error(`nothing listens on ${host}:${port}`);
  },
};
