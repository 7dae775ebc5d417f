/** Registration and a volume's life over real unix sockets, directories and time, as a kubelet without root has them. */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { grpcConnector, grpcListener } from "@longshore/csi";
import { type Pod, resources } from "@longshore/kube";
import {
  featureGates,
  noMeter,
  SeededRandom,
  silentLogger,
  systemClock,
  unprivilegedHost,
} from "@longshore/runtime";
import { expect, it, vi } from "vitest";
import { volumeGates } from "../csimigration/volume-gates.ts";
import { awsEbsPlugin } from "../plugins/aws-ebs/aws-ebs-plugin.ts";
import { csiPlugin } from "../plugins/csi/csi-plugin.ts";
import { startNodeVolumes } from "./node-volumes.ts";
import { testDriver } from "./testing/test-driver.ts";

const driverName = "ebs.csi.aws.com";

it("registers a driver, mounts without attach, unmounts and deregisters", async () => {
  const dir = await realpath(await mkdtemp(`${tmpdir()}/ls-`));
  const env = { clock: systemClock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const host = unprivilegedHost();
  const { signal } = new AbortController();
  const kube = createApiServer(env, { store: memoryStore() }).client();
  const options = { signal };
  await kube.create(resources.nodes, { apiVersion: "v1", kind: "Node", metadata: { name: "n" } }, options);
  const csiDriver = { metadata: { name: driverName }, spec: { attachRequired: false } };
  await kube.create(
    resources.csiDrivers,
    { apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", ...csiDriver },
    options,
  );
  await host.makeDirectory(`${dir}/plugins_registry`);
  await host.makeDirectory(`${dir}/plugins/${driverName}`);
  await host.truncateFile(`${dir}/disk`, 1 << 20);
  const driver = testDriver(host);
  driver.device = await host.attachLoop(`${dir}/disk`);
  const listener = grpcListener(env);
  const connector = grpcConnector(env);
  const socket = `${dir}/plugins/${driverName}/csi.sock`;
  const server = await listener.serve(socket, driver.services);
  const volumes = startNodeVolumes(
    { ...env, kube, host, connector, runtime: { podsWithRunningContainers: async () => new Set() } },
    {
      nodeName: "n",
      rootDir: dir,
      gates: featureGates(volumeGates, {}),
      plugins: [awsEbsPlugin(), csiPlugin({ connector })],
    },
  );
  const outcomes: boolean[] = [];
  const registrar = await listener.serveRegistration(`${dir}/plugins_registry/r.sock`, {
    getInfo: async () => ({
      type: "CSIPlugin",
      name: driverName,
      endpoint: socket,
      supportedVersions: ["1.0.0"],
    }),
    notifyRegistrationStatus: async ({ pluginRegistered }) => {
      outcomes.push(pluginRegistered);
    },
  });
  await vi.waitFor(() => expect(outcomes).toEqual([true]), 3000);

  const claim = await kube.create(
    resources.persistentVolumeClaims,
    {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "c", namespace: "default" },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "1Mi" } },
        volumeName: "pv",
        storageClassName: "",
      },
    },
    options,
  );
  await kube.create(
    resources.persistentVolumes,
    {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name: "pv" },
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "1Mi" },
        claimRef: { namespace: "default", name: "c", uid: claim.metadata.uid },
        csi: { driver: driverName, volumeHandle: "vol-1", fsType: "ext4" },
      },
    },
    options,
  );
  await kube.patch(
    resources.persistentVolumeClaims,
    { namespace: "default", name: "c" },
    { type: "merge", body: { status: { phase: "Bound" } } },
    { subresource: "status", signal },
  );
  const pod: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", namespace: "default" },
    spec: {
      nodeName: "n",
      containers: [{ name: "c", image: "i", volumeMounts: [{ name: "data", mountPath: "/data" }] }],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: "c" } }],
    },
  };
  const stored = await kube.create(resources.pods, pod, options);
  volumes.setPods([stored]);
  await volumes.waitForAttachAndMount(stored, signal);
  const path = volumes.mountedVolumes(stored.metadata.uid).get("data")?.path ?? "";
  await host.appendFileDurable(`${path}/file`, "written");
  expect((await host.listMounts(dir)).length).toBe(2);
  volumes.setPods([]);
  await vi.waitFor(() => expect(volumes.podVolumesGone(stored.metadata.uid)).toBe(true), 3000);
  await vi.waitFor(async () => expect(await host.listMounts(dir)).toEqual([]), 3000);

  await registrar.close();
  const drivers = async () => (await kube.get(resources.csiNodes, { name: "n" }, options))?.spec.drivers;
  await vi.waitFor(async () => expect(await drivers()).toEqual([]), 8000);
  await volumes.stop();
  await server.close();
  await host.detachLoop(`${dir}/disk`);
  await rm(dir, { recursive: true, force: true });
});
