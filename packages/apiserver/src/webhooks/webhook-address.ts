/**
 * Where a webhook's Service is reached: at one of its endpoints, since nothing forwards the addresses of Services here, or
 * at its own address where it has one (apiserver util/webhook, util/proxy ResolveEndpoint and ResolveCluster).
 */
import type { Stored } from "@longshore/kube";
import type { Store } from "../storage/store.ts";
import type { WebhookClientConfig } from "./webhook.ts";

/** An address to connect to. */
export interface WebhookAddress {
  /** What is called, as errors show it. */
  readonly url: URL;
  /** Where to connect instead of the URL's host. */
  readonly connect?: { readonly host: string; readonly port: number };
  /** The name that the certificate must have. */
  readonly serverName: string;
}

interface Port {
  readonly name?: string;
  readonly port?: number;
  readonly protocol?: string;
}

interface ServiceObject extends Stored {
  readonly spec?: {
    readonly type?: string;
    readonly clusterIP?: string;
    readonly externalName?: string;
    readonly ports?: readonly Port[];
  };
}

interface EndpointsObject extends Stored {
  readonly subsets?: readonly {
    readonly addresses?: readonly { readonly ip?: string }[];
    readonly ports?: readonly Port[];
  }[];
}

/** The address. @param pick chooses one of so many @throws Error in words for the client, when the Service leads nowhere */
export function webhookAddress(
  { url, service }: WebhookClientConfig,
  store: Store,
  pick: (count: number) => number,
): WebhookAddress {
  if (service === undefined) {
    const target = new URL(url ?? "");
    return { url: target, serverName: target.hostname.replace(/^\[|\]$/g, "") };
  }
  const { name, namespace, port = 443, path = "" } = service;
  const serverName = `${name}.${namespace}.svc`;
  const target = new URL(`https://${serverName}:${port}${path.startsWith("/") ? "" : "/"}${path}`);
  return { url: target, connect: serviceAddress(store, namespace, name, port, pick), serverName };
}

/** The URL as errors show it, where the port of a Service is always named. */
export function shownUrl({ url, connect }: WebhookAddress, port: number | undefined): string {
  if (connect === undefined || url.port !== "") return url.href;
  return `${url.protocol}//${url.hostname}:${port ?? 443}${url.pathname}${url.search}`;
}

function serviceAddress(
  store: Store,
  namespace: string,
  name: string,
  port: number,
  pick: (count: number) => number,
): { readonly host: string; readonly port: number } {
  const service = store.table("services").get(namespace, name) as ServiceObject | undefined;
  if (service === undefined) throw new Error(`service ${JSON.stringify(name)} not found`);
  const { type, clusterIP = "", externalName = "", ports = [] } = service.spec ?? {};
  if (type === "ExternalName") return { host: externalName, port };
  const servicePort = ports.find((one) => one.port === port);
  if (servicePort === undefined) {
    throw new Error(`no service port ${port} found for service ${JSON.stringify(name)}`);
  }
  const ready = endpointsOf(store, namespace, name, servicePort.name ?? "");
  if (ready.length > 0) return ready[pick(ready.length)] as { host: string; port: number };
  if (clusterIP !== "" && clusterIP !== "None") return { host: clusterIP, port };
  throw new Error(`no endpoints available for service ${JSON.stringify(name)}`);
}

function endpointsOf(store: Store, namespace: string, name: string, portName: string) {
  const endpoints = store.table("endpoints").get(namespace, name) as EndpointsObject | undefined;
  return (endpoints?.subsets ?? []).flatMap(({ addresses = [], ports = [] }) => {
    const port = ports.find((one) => (one.name ?? "") === portName)?.port;
    if (port === undefined) return [];
    return addresses.flatMap(({ ip }) => (ip === undefined ? [] : [{ host: ip, port }]));
  });
}
