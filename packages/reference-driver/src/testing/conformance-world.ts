/** The reference driver as the conformance suite sees it: in process, on a simulated machine, under a virtual clock. */
import type { ConformanceEnv, ConformanceOptions } from "@longshore/conformance";
import { inProcessCsi } from "@longshore/csi";
import { SeededRandom, SimulatedHost, VirtualClock } from "@longshore/runtime";
import { defaultCephUsers } from "../disk-cloud/index.ts";
import { driverKind } from "../driver/driver-kinds.ts";
import type { FaultName } from "../driver/faults/index.ts";
import { createReferenceDriver } from "../driver/reference-driver.ts";
import { csi, instance, openCloud, testEnv } from "./cloud-fixture.ts";

const socket = "/csi/csi.sock";
const attachLimit = 8;
const unlimited: readonly string[] = ["azure-file", "portworx-volume", "rbd"];
/** With these a node may map images. */
const ceph = { userID: "admin", userKey: defaultCephUsers.admin ?? "" };

/** A driver under test. */
export interface ConformanceWorld {
  readonly clock: VirtualClock;
  readonly host: SimulatedHost;
  readonly env: ConformanceEnv;
  readonly options: ConformanceOptions;
}

/** Serves the driver with these faults. It can be killed and started again, with its cloud. */
export async function conformanceWorld(
  faults: readonly FaultName[] = [],
  driverName = "ebs.csi.aws.com",
): Promise<ConformanceWorld> {
  const host = new SimulatedHost();
  const clock = new VirtualClock();
  const env = testEnv(clock);
  const hub = inProcessCsi({ clock });
  for (const dir of ["/staging", "/target"]) await host.makeDirectory(dir);
  const kind = driverKind(driverName);
  // Few enough to fill a node with; a provider without a limit has none here either.
  const limits = unlimited.includes(kind.provider) ? {} : { attachLimits: { [kind.provider]: attachLimit } };
  const start = async () => {
    const instances = [1, 2, 3].map((n) => ({ ...instance(n), ...limits, zone: instance(1).zone }));
    const service = await openCloud(host, "/cloud", { env, instances });
    const services = createReferenceDriver(
      { ...env, host, cloud: service.forCaller({ ...csi, provider: kind.provider }) },
      { driverName, nodeName: "node-1", services: "both", recordsFile: "/records/r.json", faults },
    );
    await hub.serve(socket, services);
    return service;
  };
  let service = await start();
  const rpcs = [
    ...[
      "CreateVolume",
      "DeleteVolume",
      "ControllerPublishVolume",
      "CreateSnapshot",
      "ControllerExpandVolume",
    ],
    ...["NodeStageVolume", "NodePublishVolume", "GetMetadataAllocated", "GetMetadataDelta"],
  ];
  return {
    clock,
    host,
    env: { clock, random: new SeededRandom(3), connector: hub, host },
    options: {
      endpoint: socket,
      stagingDir: "/staging",
      targetDir: "/target",
      secondNodeId: kind.nodeIdOf({ ...instance(2), zone: instance(1).zone }),
      fillNode: true,
      mutableParameters: { iops: "4000" },
      secrets: Object.fromEntries(
        rpcs.map((rpc) => [
          rpc,
          { token: `s3cr3t-${rpc}`, ...(kind.provider === "rbd" && rpc === "NodeStageVolume" ? ceph : {}) },
        ]),
      ),
      restartDriver: async () => {
        hub.crash(socket);
        await service.stop();
        service = await start();
      },
    },
  };
}
