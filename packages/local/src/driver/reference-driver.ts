/**
 * The reference CSI driver on the disk cloud. It serves under the name of any of the eight drivers
 * that in-tree plugins migrate to, with that driver's volume ids and topology.
 */
import type { CsiServices } from "@longshore/csi";
import { type Host, invariant, type RuntimeEnv } from "@longshore/runtime";
import type { ProviderCloud } from "../disk-cloud/index.ts";
import { controllerService } from "./controller-service.ts";
import { driverKind } from "./driver-kinds.ts";
import { identityService } from "./identity-service.ts";
import { nodeService } from "./node-service.ts";

/** What the driver runs on. */
export interface ReferenceDriverEnv extends RuntimeEnv {
  /** The node's machine; the controller service does not touch it. */
  readonly host: Host;
  /** The cloud as this driver may call it. */
  readonly cloud: ProviderCloud;
}

/** Options of {@link createReferenceDriver}. */
export interface ReferenceDriverOptions {
  readonly driverName: string;
  /** The node that the node service is on; needed with it. */
  readonly nodeName?: string;
  /** Where volumes without a topology requirement are made; default any zone that has instances. */
  readonly zone?: string;
  readonly services: "controller" | "node" | "both";
  /** Form volume ids like this driver's; default `driverName`'s own. */
  readonly volumeIdFormat?: string;
}

/** The services of the driver, to be served with a `CsiListener`. */
export function createReferenceDriver(env: ReferenceDriverEnv, options: ReferenceDriverOptions): CsiServices {
  const { driverName, nodeName, services, zone } = options;
  const own = driverKind(driverName);
  const kind =
    options.volumeIdFormat === undefined
      ? own
      : { ...driverKind(options.volumeIdFormat), topologyKey: own.topologyKey };
  const { host, cloud } = env;
  const identity = identityService(driverName, kind);
  const controller = services === "node" ? {} : { controller: controllerService({ cloud, kind, zone }) };
  if (services === "controller") return { identity, ...controller };
  invariant(nodeName !== undefined, "a driver with the node service is told its nodeName");
  return { identity, ...controller, node: nodeService({ host, cloud, kind, nodeName }) };
}
