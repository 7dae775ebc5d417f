/** The fake driver served in process, on a simulated host, under a virtual clock. */

import type { ConformanceEnv, ConformanceOptions } from "@longshore/conformance";
import { type CsiServices, type InProcessCsi, inProcessCsi } from "@longshore/csi";
import { type Host, SeededRandom, SimulatedHost, VirtualClock } from "@longshore/runtime";
import { type FakeDriverOptions, FakeState, fakeDriver } from "./fake-driver.ts";

const socket = "/csi/csi.sock";

/** Changes what a driver does. The data of its volumes are in `/data` of the host, by volume id. */
export type Fault = (services: CsiServices, host: Host) => CsiServices;

/** A driver under test with what a run needs. */
export interface FakeWorld {
  readonly clock: VirtualClock;
  readonly host: SimulatedHost;
  readonly csi: InProcessCsi;
  readonly state: FakeState;
  readonly env: ConformanceEnv;
  readonly options: ConformanceOptions;
  /** How often the driver has been started. */
  starts(): number;
}

/** Serves a fake. `fault` is applied again at each start, so that a crash loses what it keeps in memory. */
export async function fakeWorld(
  given: Partial<FakeDriverOptions> & { readonly fault?: Fault } = {},
): Promise<FakeWorld> {
  const clock = new VirtualClock();
  const host = new SimulatedHost();
  const csi = inProcessCsi({ clock });
  const state = new FakeState();
  let starts = 0;
  for (const dir of ["/staging", "/target", "/data"]) await host.makeDirectory(dir);
  const { fault = (services: CsiServices) => services, ...driver } = given;
  const seconds = () => BigInt(Math.floor(clock.now().getTime() / 1000));
  const start = async () => {
    starts++;
    await csi.serve(socket, fault(fakeDriver({ host, state, dir: "/data", seconds, ...driver }), host));
  };
  await start();
  return {
    clock,
    host,
    csi,
    state,
    env: { clock, random: new SeededRandom(7), connector: csi, host },
    options: {
      endpoint: socket,
      stagingDir: "/staging",
      targetDir: "/target",
      mutableParameters: { iops: "100" },
      secondNodeId: "node-2",
      fillNode: true,
      secrets: allSecrets,
      restartDriver: async () => {
        csi.crash(socket);
        await start();
      },
    },
    starts: () => starts,
  };
}

/** A secret for every call that the suite makes without. */
export const allSecrets = Object.fromEntries(
  [
    "CreateVolume",
    "DeleteVolume",
    "ControllerPublishVolume",
    "CreateSnapshot",
    "ControllerExpandVolume",
    "NodeStageVolume",
  ].map((rpc) => [rpc, { token: `s3cr3t-${rpc}` }]),
);
