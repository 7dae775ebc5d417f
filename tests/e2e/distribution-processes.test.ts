/**
 * The controllers of OpenShift and Gardener as `longshore run` starts them: two replicas under a lease, metrics and health, what
 * happens when the one that works is killed, and how they end.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { resources } from "@longshore/kube";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type MigrationCycleName, migrationCycles } from "../components/migration/crash-cycles.ts";
import { type MigrationServer, startMigrationServer } from "./support/migration-server.ts";
import { longshore } from "./support/run-command.ts";
import { SidecarReplica } from "./support/sidecar-replica.ts";

let world: MigrationServer;
let directory: string;
const running: SidecarReplica[] = [];
beforeAll(async () => {
  world = await startMigrationServer();
});
beforeEach(() => {
  directory = mkdtempSync("/tmp/ls-dist-");
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop()));
  rmSync(directory, { recursive: true, force: true });
});
afterAll(() => world?.stop());

const election = [
  "--leader-election",
  "--leader-election-lease-duration=4s",
  "--leader-election-renew-deadline=3s",
  "--leader-election-retry-period=500ms",
  "--leader-election-namespace=default",
  "--http-endpoint=127.0.0.1:0",
];

async function start(identity: string, argv: readonly string[]): Promise<SidecarReplica> {
  const replica = await SidecarReplica.start(
    identity,
    directory,
    world.surroundings,
    [...argv, ...election],
    { driver: false },
  );
  running.push(replica);
  return replica;
}

const heldBy = (identity: string, name: string) =>
  world.eventually(`${identity} holds ${name}`, async () => {
    const ref = { name, namespace: "default" };
    const lease = await world.kube.get(resources.leases, ref, { signal: world.signal });
    return lease?.spec?.holderIdentity === identity;
  });

test.each<[MigrationCycleName, lease: string, metric: string, argv: readonly string[]]>([
  [
    "feature-gate-operator",
    "longshore-feature-gate-operator",
    "feature_gate_operator",
    ["feature-gate-operator", "--kubernetes=1.20", "--plugins=kubernetes.io/aws-ebs"],
  ],
  [
    "migration-controller",
    "longshore-migration-controller-aws",
    "csimigration_controller",
    [
      ...["migration-controller", "--provider-type=aws", "--csi-migration-kubernetes-version=1.18"],
      "--legacy-storage-classes=default:kubernetes.io/aws-ebs",
    ],
  ],
])("%s: one of two works, and the other takes over", async (cycle, lease, metric, argv) => {
  const first = await start("first", argv);
  await heldBy("first", lease);
  const second = await start("second", argv);
  const rests = await migrationCycles[cycle](world, "a");
  expect(second.writesSince(0)).toEqual([]);

  const address = /serving metrics and health address=(\S+)/.exec(first.log)?.[1];
  const get = async (path: string) => (await fetch(`http://${address}${path}`)).text();
  expect(await get("/healthz/leader-election")).toBe("ok");
  expect(await get("/metrics")).toContain(`workqueue_work_duration_seconds_count{name="${metric}"}`);

  first.signal("SIGKILL");
  await heldBy("second", lease);
  expect(await migrationCycles[cycle](world, "b")).toEqual(rests);
  second.signal("SIGTERM");
  expect(await second.ended()).toBe(0);
});

test.each([
  [["feature-gate-operator"], "--kubernetes is required"],
  [["feature-gate-operator", "--kubernetes=newest"], "--kubernetes: Kubernetes version"],
  [["feature-gate-operator", "--kubernetes=1.20", "--order=backwards"], "--order"],
  [["migration-controller", "--csi-migration-kubernetes-version=1.18"], "--provider-type is required"],
  [
    ["migration-controller", "--provider-type=aws", "--csi-migration-kubernetes-version=newest"],
    "is not a version: give one like 1.18.5",
  ],
])("%j is refused", async (argv, message) => {
  const { code, err } = await longshore("run", ...argv);
  expect([code, err]).toEqual([2, expect.stringContaining(message)]);
});
