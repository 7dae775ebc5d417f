/** What the table of paths that are no resources is made of. */

import type { UserInfo } from "../api/api-request.ts";
import { methodNotAllowed } from "../api/errors.ts";
import type { ApiServer } from "../api-server.ts";
import type { RegistryContext } from "../registry/registry-context.ts";
import type { Request, Response } from "./exchange.ts";
import type { MetricsText } from "./request-metrics.ts";

/** A request to a path that is no resource. */
export interface PathCall {
  readonly server: ApiServer;
  readonly context: RegistryContext;
  readonly user: UserInfo;
  readonly method: string;
  /** The authorized path; for endpoints that accept them, without slashes at its end. */
  readonly path: string;
  readonly params: URLSearchParams;
  readonly request: Request;
  readonly response: Response;
  /** Left out where the metrics of the server cannot be read. */
  readonly metrics?: MetricsText;
}

/** One entry of the table. */
export interface PathEndpoint {
  /** The paths that it answers; a text is one path exactly. */
  readonly path: string | RegExp;
  /** Whether slashes may follow the path, as after those of documents (go-restful); default not. */
  readonly takesSlashes?: boolean;
  readonly answer: (call: PathCall) => void | Promise<void>;
}

/** @throws KubeApiError 405 unless the request is one that reads */
export function checkReads({ method }: PathCall): void {
  if (method !== "GET" && method !== "HEAD") throw methodNotAllowed();
}
