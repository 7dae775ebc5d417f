/** What the table of paths that are no resources is made of. */
import type { ApiServer } from "../api-server.ts";
import type { RegistryContext } from "../registry/context.ts";
import type { UserInfo } from "../registry/request.ts";
import type { Request, Response } from "./exchange.ts";

/** A request to a path that is no resource. */
export interface PathCall {
  readonly server: ApiServer;
  readonly context: RegistryContext;
  readonly user: UserInfo;
  readonly url: URL;
  /** The path without a slash at its end. */
  readonly path: string;
  readonly request: Request;
  readonly response: Response;
}

/** One entry of the table. */
export interface PathEndpoint {
  /** The paths that it answers; a text is one path exactly. */
  readonly path: string | RegExp;
  readonly answer: (call: PathCall) => void | Promise<void>;
}
