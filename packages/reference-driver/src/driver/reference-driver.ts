/**
 * The reference CSI driver on the disk cloud. It serves under the name of any of the eight drivers
 * that in-tree plugins migrate to, with that driver's volume ids and topology, or under one of its own.
 */
import type { CsiServices } from "@longshore/csi";
import { type Host, invariant, type RuntimeEnv } from "@longshore/runtime";
import type { ProviderCloud } from "../disk-cloud/index.ts";
import { controllerService } from "./controller-service.ts";
import { driverKind } from "./driver-kinds.ts";
import { type FaultName, withFaults } from "./faults/index.ts";
import { identityService } from "./identity-service.ts";
import { nodeService } from "./node-service.ts";
import { groupControllerService } from "./snapshot-handlers.ts";
import { snapshotMetadataService } from "./snapshot-metadata-service.ts";

/** What the driver runs on. */
export interface ReferenceDriverEnv extends RuntimeEnv {
  /** The node's machine; the controller service does not touch it. */
  readonly host: Host;
  /** The cloud as this driver may call it: with the disks of the provider of its name (`providerOfDriver`). */
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
  /** Key of the topology, whose values are the cloud's zones; default the driver's own. Unused by a driver without topology. */
  readonly topologyKey?: string;
  /** The region of its zones, so that it is named where their names do not lead to it. Default: none is known. */
  readonly region?: string | undefined;
  /**
   * File in which the node service keeps how volumes were staged and published, so that it distinguishes a repeat from
   * another request after a restart, too; default in memory.
   */
  readonly recordsFile?: string;
  /** The file system of a blank volume for which none is asked; default ext4. */
  readonly defaultFsType?: string;
  /**
   * Directory in which the node service makes ephemeral volumes: those of pods that name the driver themselves
   * (`csi.storage.k8s.io/ephemeral`). Needs `recordsFile`, to remove after a restart what it made. Default: it makes none.
   */
  readonly ephemeralDir?: string | undefined;
  /** Rules to break, to see whether a check notices. */
  readonly faults?: readonly FaultName[];
}

/** The services of the driver, to be served with a `CsiListener`. */
export function createReferenceDriver(env: ReferenceDriverEnv, options: ReferenceDriverOptions): CsiServices {
  return withFaults(faultlessServices(env, options), options.faults ?? [], env);
}

function faultlessServices(env: ReferenceDriverEnv, options: ReferenceDriverOptions): CsiServices {
  const { driverName, nodeName, services, zone, region, recordsFile, defaultFsType = "ext4" } = options;
  const { ephemeralDir } = options;
  const own = driverKind(driverName);
  const { topologyKey = own.topologyKey } = own.topologyKey === undefined ? {} : options;
  const kind = { ...own, topologyKey, region };
  const { host, cloud } = env;
  const identity = identityService(driverName, kind);
  const controllers =
    services === "node"
      ? {}
      : {
          controller: controllerService({ cloud, kind, zone }),
          ...(kind.isShare
            ? {}
            : {
                groupController: groupControllerService(cloud, kind),
                snapshotMetadata: snapshotMetadataService(cloud),
              }),
        };
  if (services === "controller") return { identity, ...controllers };
  invariant(nodeName !== undefined, "a driver with the node service needs a nodeName");
  invariant(ephemeralDir === undefined || recordsFile !== undefined, "ephemeral volumes need a recordsFile");
  return {
    identity,
    ...controllers,
    node: nodeService({ host, cloud, kind, nodeName, recordsFile, defaultFsType, ephemeralDir }),
  };
}
