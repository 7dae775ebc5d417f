/** Sends requests to the registry as a user, as over HTTP, but without the encoding. */
import { KubeApiError, type KubeObject } from "@longshore/kube";
import type { ApiRequest, UserInfo } from "../api/api-request.ts";
import type { ApiServer } from "../api-server.ts";
import { attributesOfRequest } from "../authorization/authorizer.ts";

/** What to ask: the path of the resource, `apis/GROUP/VERSION/[namespaces/NS/]RESOURCE[/NAME[/SUBRESOURCE]]` or `api/v1/…`. */
export function asker(server: ApiServer, user: UserInfo) {
  /** The object that is answered. @throws KubeApiError */
  const ask = (
    verb: ApiRequest["verb"],
    path: string,
    body?: object,
    rest: Partial<ApiRequest> = {},
  ): KubeObject => {
    const parts = path.split("/");
    const [group, version] = parts[0] === "api" ? ["", parts[1] ?? ""] : [parts[1] ?? "", parts[2] ?? ""];
    let tail = parts.slice(parts[0] === "api" ? 2 : 3);
    let namespace: string | undefined;
    if (tail[0] === "namespaces" && tail.length > 2) {
      namespace = tail[1];
      tail = tail.slice(2);
    }
    const [resource = "", name, subresource] = tail;
    const request: ApiRequest = {
      verb,
      group,
      version,
      resource,
      user,
      query: {},
      ...(namespace === undefined ? {} : { namespace }),
      ...(name === undefined ? {} : { name }),
      ...(subresource === undefined ? {} : { subresource }),
      ...(body === undefined ? {} : { body }),
      ...rest,
    };
    server.registry.authorize(attributesOfRequest(request));
    const answer = server.registry.handle(request);
    return answer.type === "object" ? answer.object : ({ kind: answer.type } as KubeObject);
  };
  /** The outcome in one line: `ok`, or the code and the message of the refusal. */
  const outcome = (...args: Parameters<typeof ask>): string => {
    try {
      ask(...args);
      return "ok";
    } catch (error) {
      if (!(error instanceof KubeApiError)) throw error;
      return `${error.code} ${error.status.message}`;
    }
  };
  return { ask, outcome };
}
