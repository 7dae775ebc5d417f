/**
 * A controller in a process of its own, which kills itself (`kill -9`) at a given point. Its parent sends the
 * orders over their channel: where everything is, then to live, then to end; between lives it only waits.
 */
import { grpcConnector } from "@longshore/csi";
import { createHttpClient, fixedCredential } from "@longshore/kube";
import { newClientForShoot } from "@longshore/migration/gardener";
import {
  type Component,
  createLogger,
  noMeter,
  type RuntimeEnv,
  systemClock,
  systemRandom,
} from "@longshore/runtime";
import {
  type SidecarEnv,
  startAttacher,
  startProvisioner,
  startResizer,
  startSnapshotter,
} from "@longshore/sidecars";
import { Life, type NthCall, type Side } from "@longshore/testing/kube";
import { mortal } from "../../../packages/sidecars/src/testing/crashing.ts";
import type { MigrationCycleName } from "../../components/migration/crash-cycles.ts";
import { type MigrationSeams, startMigration } from "../../components/migration/start-migration.ts";
import type { CycleName } from "../../components/sidecars/work-cycles.ts";

/** Where a component finds its API server. */
interface Server {
  readonly server: string;
  readonly ca: string;
  readonly token: string;
}

/** Where a sidecar finds its world. */
export interface Surroundings extends Server {
  readonly sidecar: CycleName;
  /** The driver's. */
  readonly socket: string;
}

/** Where a distribution's controller finds its world. */
export interface MigrationSurroundings extends Server {
  readonly migration: MigrationCycleName;
}

/** What the parent says. */
export type Order =
  | ({ readonly kind: "live"; readonly diesAt?: NthCall; readonly side?: Side } & (
      | Surroundings
      | MigrationSurroundings
    ))
  | { readonly kind: "end" };

/** What the process answers: it listens; it has begun; it has ended a life, of these calls. */
export type Answer =
  | { readonly kind: "ready" }
  | { readonly kind: "living" }
  | { readonly kind: "ended"; readonly calls: readonly string[] };

const start: Readonly<Record<CycleName, (env: SidecarEnv) => Component>> = {
  attacher: (env) => startAttacher(env),
  provisioner: (env) => startProvisioner(env),
  resizer: (env) => startResizer(env),
  snapshotter: (env) => startSnapshotter(env),
};

let life: Life | undefined;
let end: () => Promise<void> = async () => {};

function begin(order: Extract<Order, { readonly kind: "live" }>): void {
  const runtime: RuntimeEnv = {
    clock: systemClock,
    random: systemRandom,
    logger: createLogger({ format: "human", level: "error" }),
    meter: noMeter,
  };
  const credentials = fixedCredential({ authorization: `Bearer ${order.token}` });
  const kube = createHttpClient(runtime, { server: order.server, ca: order.ca, credentials });
  const own = order.diesAt === undefined ? new Life() : new Life(order.diesAt, order.side);
  void own.death.then(() => process.kill(process.pid, "SIGKILL"));
  life = own;
  if ("migration" in order) {
    const shootClients: MigrationSeams["shootClients"] = (seed) =>
      newClientForShoot({ ...runtime, kube: seed });
    const controller = startMigration(order.migration, { env: runtime, kube, shootClients }, own);
    end = async () => {
      await controller.stop();
      await kube.close();
    };
    return;
  }
  const csi = grpcConnector(runtime).connect(order.socket);
  const sidecar = start[order.sidecar](mortal({ ...runtime, kube, csi }, own));
  end = async () => {
    await sidecar.stop();
    csi.close();
    await kube.close();
  };
}

const answer = (message: Answer) => process.send?.(message);

process.on("message", (order: Order) => {
  if (order.kind === "live") {
    begin(order);
    answer({ kind: "living" });
    return;
  }
  void end().then(() => answer({ kind: "ended", calls: life?.log ?? [] }));
});
process.on("disconnect", () => process.exit(0));
answer({ kind: "ready" });
