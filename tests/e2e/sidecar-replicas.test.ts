/** Two real processes of the same sidecars: one is killed, stopped, ended, or loses its driver; the work goes on. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { resources } from "@longshore/kube";
import { systemClock } from "@longshore/runtime";
import { leaseName } from "@longshore/storage";
import { afterEach, beforeEach, expect, test } from "vitest";
import { workCycles } from "../components/sidecars/work-cycles.ts";
import { type CrashCluster, startCrashCluster } from "./support/crash-cluster.ts";
import { SidecarReplica } from "./support/sidecar-replica.ts";

let cluster: CrashCluster;
let directory: string;
const replicas: SidecarReplica[] = [];
beforeEach(async () => {
  directory = mkdtempSync("/tmp/ls-rep-");
  cluster = await startCrashCluster();
});
afterEach(async () => {
  await Promise.all(replicas.splice(0).map((replica) => replica.stop()));
  await cluster?.stop();
  rmSync(directory, { recursive: true, force: true });
});

const leaseDurationMs = 4000;
const election = [
  "--leader-election",
  `--leader-election-lease-duration=${leaseDurationMs}ms`,
  "--leader-election-renew-deadline=3s",
  "--leader-election-retry-period=500ms",
  "--leader-election-namespace=default",
];

async function start(identity: string, ...argv: readonly string[]): Promise<SidecarReplica> {
  const replica = await SidecarReplica.start(identity, directory, cluster.surroundings, [
    ...argv,
    ...election,
  ]);
  replicas.push(replica);
  return replica;
}

const holder = async (sidecar: "attacher" | "provisioner" | "resizer" | "snapshotter") => {
  const name = leaseName(sidecar, cluster.driverName);
  const lease = await cluster.kube.get(
    resources.leases,
    { name, namespace: "default" },
    { signal: cluster.signal },
  );
  return lease?.spec?.holderIdentity;
};

const heldBy = (identity: string, ...sidecars: readonly Parameters<typeof holder>[0][]) =>
  cluster.eventually(`${identity} holds the leases`, async () => {
    const holders = await Promise.all(sidecars.map(holder));
    return holders.every((each) => each === identity);
  });

const all = ["attacher", "provisioner", "resizer", "snapshotter"] as const;

/** Each sidecar has said on its Lease that this one leads. */
const ledBy = (identity: string) =>
  cluster.eventually(`${identity} is named in events of the leases`, async () => {
    const { items } = await cluster.kube.list(resources.events, { signal: cluster.signal });
    const said = items
      .filter(({ reason }) => reason === "LeaderElection")
      .map(({ source, message }) => `${source?.component}: ${message}`);
    return all.every((sidecar) =>
      said.includes(`${leaseName(sidecar, cluster.driverName)}/${identity}: ${identity} became leader`),
    );
  });
const cycles = async (id: string) => {
  for (const name of ["attacher", "provisioner", "resizer"] as const)
    await workCycles[name](cluster, `${id}${name}`);
};

test("kill -9 of the one that works: the other takes every lease over and finishes", async () => {
  const first = await start("first", "sidecars");
  await heldBy("first", ...all);
  const second = await start("second", "sidecars");
  await cycles("a");
  await ledBy("first");
  expect(second.writesSince(0)).toEqual([]);
  const working = cycles("b");
  await cluster.eventually("the first is in the midst of it", async () => first.writesSince(0).length > 20);
  first.signal("SIGKILL");
  await working;
  await heldBy("second", ...all);
  expect(second.writesSince(0).length).toBeGreaterThan(0);
  expect(await first.ended()).toBe("SIGKILL");
  await ledBy("second");
  // As in the reference: the driver, the machine, and what no other process has.
  const provisioned = await cluster.eventually("a volume that was made is in the events", async () => {
    const { items } = await cluster.kube.list(resources.events, { signal: cluster.signal });
    const made = items.filter(({ reason }) => reason === "ProvisioningSucceeded");
    return made.length > 0 && made;
  });
  for (const { source } of provisioned) {
    expect(source?.component).toMatch(
      new RegExp(`^${cluster.driverName.replaceAll(".", "\\.")}_${hostname()}_[0-9a-f-]{36}$`),
    );
  }
});

test("stopped for longer than its leases, it wakes and writes nothing: it steps down, and takes over again when it must", async () => {
  const first = await start("first", "sidecars");
  await heldBy("first", ...all);
  const second = await start("second", "sidecars");
  const working = cycles("a");
  await cluster.eventually("the first is in the midst of it", async () => first.writesSince(0).length > 5);
  first.signal("SIGSTOP");
  await heldBy("second", ...all);
  await working;
  // There is work while it wakes, too.
  const more = cycles("b");
  const wokenMs = systemClock.monotonicMs();
  first.signal("SIGCONT");
  await cluster.eventually("it competes again", async () =>
    /became leader[\s\S]*leadership ended/.test(first.log),
  );
  await more;
  await cycles("c");
  expect(first.writesSince(wokenMs)).toEqual([]);
  expect(await holder("attacher")).toBe("second");
  second.signal("SIGKILL");
  await heldBy("first", ...all);
  await cycles("d");
  expect(first.writesSince(wokenMs).length).toBeGreaterThan(0);
});

test("a single sidecar that was stopped that long ends with 1 and says why", async () => {
  const first = await start("first", "attacher");
  await heldBy("first", "attacher");
  await start("second", "attacher");
  const working = workCycles.attacher(cluster, "a");
  await cluster.eventually("the first is at work", async () => first.writesSince(0).length > 0);
  first.signal("SIGSTOP");
  await heldBy("second", "attacher");
  await working;
  const wokenMs = systemClock.monotonicMs();
  first.signal("SIGCONT");
  expect(await first.ended()).toBe(1);
  expect(first.writesSince(wokenMs)).toEqual([]);
  expect(readFileSync(first.terminationLog, "utf8")).toBe("the attacher lost its lease\n");
});

test("without its driver it ends with 1 and says why, and with SIGTERM with 0; its lease is kept, or let go if so asked", async () => {
  const first = await start("first", "sidecars", "--feature-gates=ReleaseLeaderElectionOnExit=true");
  await heldBy("first", ...all);
  first.cutDriver();
  expect(await first.ended()).toBe(1);
  expect(readFileSync(first.terminationLog, "utf8")).toBe("Lost connection to CSI driver, exiting\n");
  expect(await holder("attacher")).toBe("");
  const second = await start("second", "attacher");
  await heldBy("second", "attacher");
  second.signal("SIGTERM");
  expect(await second.ended()).toBe(0);
  expect(readFileSync(second.terminationLog, "utf8")).toBe("");
  expect(await holder("attacher")).toBe("second");
});

test("metrics and health are served, and an address that cannot be served at is an error", async () => {
  const replica = await start("first", "sidecars", "--http-endpoint=127.0.0.1:0", "--metrics-path=/m");
  await heldBy("first", ...all);
  await workCycles.attacher(cluster, "a");
  const port = /serving metrics and health address=127\.0\.0\.1:(\d+)/.exec(replica.log)?.[1];
  const get = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: response.status, text: await response.text() };
  };
  expect(await get("/healthz/leader-election")).toEqual({ status: 200, text: "ok" });
  const { status, text } = await get("/m");
  expect(status).toBe(200);
  const line = text
    .split("\n")
    .find((each) => /^csi_sidecar_operations_seconds_count.*ControllerPublish/.test(each));
  for (const label of [
    'driver_name="ebs.csi.aws.com"',
    'method_name="/csi.v1.Controller/ControllerPublishVolume"',
    'grpc_status_code="OK"',
    'migrated="true"',
  ]) {
    expect(line).toContain(label);
  }
  expect(text).toContain("process_start_time_seconds");
  expect((await get("/metrics")).status).toBe(404);
  const other = await start("second", "attacher", `--http-endpoint=127.0.0.1:${port}`);
  expect(await other.ended()).toBe(1);
  expect(other.log).toContain("cannot listen at");
});
