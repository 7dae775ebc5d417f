/** The sidecars that elect no leader, and the one that has no driver, as processes: what they do, and how they end. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { grpcConnector } from "@longshore/csi";
import { resources } from "@longshore/kube";
import { systemClock } from "@longshore/runtime";
import { snapshotResources } from "@longshore/storage";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type CrashCluster, startCrashCluster } from "./support/crash-cluster.ts";
import { longshore } from "./support/run-command.ts";
import { SidecarReplica } from "./support/sidecar-replica.ts";

let cluster: CrashCluster;
let directory: string;
const running: SidecarReplica[] = [];
beforeEach(async () => {
  directory = mkdtempSync("/tmp/ls-proc-");
  cluster = await startCrashCluster();
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop()));
  await cluster?.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function start(
  uses: Parameters<typeof SidecarReplica.start>[4],
  ...argv: readonly string[]
): Promise<SidecarReplica> {
  const started = await SidecarReplica.start("one", directory, cluster.surroundings, argv, uses);
  running.push(started);
  return started;
}

/** Status of `GET /healthz`, once the process says where it listens. */
async function healthz(sidecar: SidecarReplica): Promise<number> {
  const address = await cluster.eventually(
    "it listens",
    async () => /serving metrics and health address=(\S+)/.exec(sidecar.log)?.[1],
  );
  return (await fetch(`http://${address}/healthz`)).status;
}

const healthy = (sidecar: SidecarReplica, status: number) =>
  cluster.eventually(`healthz is ${status}`, async () => (await healthz(sidecar)) === status);

test("the liveness probe answers for the driver, and stays when that goes", async () => {
  const probe = await start({ kube: false, lease: false }, "liveness-probe", "--http-endpoint=127.0.0.1:0");
  await healthy(probe, 200);
  probe.cutDriver();
  await healthy(probe, 500);
  await probe.restoreDriver();
  await healthy(probe, 200);
  probe.signal("SIGTERM");
  expect(await probe.ended()).toBe(0);
});

test("the node-driver-registrar registers; refused, it ends with 1; after SIGTERM, it leaves no socket", async () => {
  const argv = [
    "node-driver-registrar",
    `--kubelet-registration-path=${directory}/csi.sock`,
    `--plugin-registration-path=${directory}`,
    "--http-endpoint=127.0.0.1:0",
  ] as const;
  const socket = `${directory}/${cluster.driverName}-reg.sock`;
  const options = { signal: cluster.signal, timeoutMs: 5000 };
  const probed = () =>
    longshore(
      "run",
      "node-driver-registrar",
      `--kubelet-registration-path=${directory}/csi.sock`,
      "--mode=kubelet-registration-probe",
    );
  for (const refused of [false, true]) {
    const registrar = await start({ kube: false, lease: false }, ...argv);
    await healthy(registrar, 200);
    expect((await probed()).code).toBe(1);
    const kubelet = grpcConnector({ clock: systemClock }).connectRegistration(socket);
    expect(await kubelet.getInfo(options)).toMatchObject({
      type: "CSIPlugin",
      name: cluster.driverName,
      endpoint: `${directory}/csi.sock`,
      supportedVersions: ["1.0.0"],
    });
    const status = { pluginRegistered: !refused, error: refused ? "no such driver here" : "" };
    const notified = kubelet.notifyRegistrationStatus(status, options);
    // Refused, the process may end before it has answered.
    await (refused ? notified.catch(() => {}) : notified);
    kubelet.close();
    if (refused) {
      expect(await registrar.ended()).toBe(1);
      expect(registrar.log).toContain("no such driver here");
    } else {
      await cluster.eventually("the exec probe sees it", async () => (await probed()).code === 0);
      registrar.signal("SIGTERM");
      expect(await registrar.ended()).toBe(0);
    }
    expect(existsSync(socket)).toBe(false);
    await registrar.stop();
  }
});

test("the cluster-driver-registrar keeps a CSIDriver while it runs", async () => {
  const read = () =>
    cluster.kube.get(resources.csiDrivers, { name: cluster.driverName }, { signal: cluster.signal });
  const registrar = await start({ lease: false }, "cluster-driver-registrar", "--pod-info-mount-version=v1");
  const object = await cluster.eventually("the object", read);
  expect(object.spec).toMatchObject({ attachRequired: true, podInfoOnMount: true });
  registrar.cutDriver();
  registrar.signal("SIGTERM");
  expect(await registrar.ended()).toBe(0);
  expect(await read()).toBeUndefined();
  const wrong = await start({ lease: false }, "cluster-driver-registrar", "--pod-info-mount-version=v2");
  expect(await wrong.ended()).toBe(2);
});

test("the snapshot controller leads under its own name and binds contents", async () => {
  const { kube, signal } = cluster;
  const controller = await start(
    { driver: false },
    "snapshot-controller",
    "--leader-election",
    "--leader-election-namespace=default",
    "--http-endpoint=127.0.0.1:0",
  );
  await cluster.eventually("it leads", async () => {
    const ref = { name: "snapshot-controller-leader", namespace: "default" };
    return (await kube.get(resources.leases, ref, { signal }))?.spec?.holderIdentity === "one";
  });
  await kube.create(
    snapshotResources.volumeSnapshotContents,
    {
      metadata: { name: "content" },
      spec: {
        driver: cluster.driverName,
        deletionPolicy: "Retain",
        source: { snapshotHandle: "snap-1" },
        volumeSnapshotRef: { name: "s", namespace: "default" },
      },
    },
    { signal },
  );
  const source = { volumeSnapshotContentName: "content" };
  await kube.create(
    snapshotResources.volumeSnapshots,
    { metadata: { name: "s", namespace: "default" }, spec: { source } },
    { signal },
  );
  await cluster.eventually("bound", async () => {
    const ref = { name: "s", namespace: "default" };
    const snapshot = await kube.get(snapshotResources.volumeSnapshots, ref, { signal });
    return snapshot?.status?.boundVolumeSnapshotContentName === "content";
  });
  controller.signal("SIGTERM");
  expect(await controller.ended()).toBe(0);
});
