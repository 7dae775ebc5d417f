/** The options of a connection to a pod or a node, from the query (core/v1 PodExecOptions, PodAttachOptions, PodPortForwardOptions, NodeProxyOptions). */
import type { KubeObject } from "@longshore/kube";
import type { ApiRequest, UserInfo } from "../api/api-request.ts";
import type { ResourceRequest } from "./parsed-request.ts";

const flags = ["stdin", "stdout", "stderr", "tty"] as const;

/** What webhooks are asked about it. */
export function connectOptions(
  { asked, below }: ResourceRequest,
  params: URLSearchParams,
  kind: string,
): KubeObject {
  const options: Record<string, unknown> = { kind, apiVersion: "v1" };
  if (asked.subresource === "proxy") return { ...options, path: below } as KubeObject;
  for (const flag of flags) {
    const value = params.get(flag);
    if (value === "true" || value === "1") options[flag] = true;
  }
  const container = params.get("container") ?? "";
  if (container !== "") options.container = container;
  const command = params.getAll("command");
  if (command.length > 0) options.command = command;
  const ports = params.getAll("ports").map(Number).filter(Number.isInteger);
  if (ports.length > 0) options.ports = ports;
  return options as KubeObject;
}

/** The request of the connection, as the webhooks' rules see it. */
export function connectRequest({ asked }: ResourceRequest, user: UserInfo): ApiRequest {
  const { group, version, resource, subresource, namespace, name } = asked;
  return {
    verb: "create",
    group,
    version,
    resource,
    ...(subresource === undefined ? {} : { subresource }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    query: {},
    user,
  };
}
