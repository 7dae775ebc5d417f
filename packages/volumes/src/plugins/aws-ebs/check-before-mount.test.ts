/** The in-tree node half looks for errors of a file system before it mounts it read-write. */
import {
  HostError,
  noMeter,
  SeededRandom,
  SimulatedHost,
  silentLogger,
  VirtualClock,
} from "@longshore/runtime";
import { expect, test } from "vitest";
import type { VolumeHost } from "../../framework/volume-host.ts";
import { specOfPersistentVolume } from "../../framework/volume-spec.ts";
import { globalMountPath } from "../disk/global-directories.ts";
import { awsEbs, awsEbsPlugin } from "./aws-ebs-plugin.ts";

const path = globalMountPath("/node", awsEbs, "vol-1");

async function aDevice(readOnly = false) {
  const host = new SimulatedHost();
  await host.truncateFile("/disk", 8 << 20);
  const device = await host.attachLoop("/disk");
  await host.format(device, "ext4");
  const fileSystem = host.disks.byDevice(device)?.backing.disk.fileSystem;
  const env = {
    clock: new VirtualClock(),
    random: new SeededRandom(1),
    logger: silentLogger,
    meter: noMeter,
  };
  const kubelet = { nodeName: "node-1", rootDir: "/node", host, setKubeletError: () => {} };
  const half = awsEbsPlugin();
  await half.init({ ...env, kubelet } as unknown as VolumeHost);
  const awsElasticBlockStore = { volumeID: "vol-1", fsType: "ext4", readOnly };
  const spec = specOfPersistentVolume(
    { metadata: { name: "pv" }, spec: { accessModes: ["ReadWriteOnce"], awsElasticBlockStore } },
    readOnly,
  );
  const signal = new AbortController().signal;
  const mount = () => half.newDeviceMounter().mountDevice(spec, device, path, signal);
  const setUp = async () => {
    const mounter = await half.newMounter(spec, {
      metadata: { name: "p", uid: "u" },
      spec: { containers: [] },
    });
    await mounter.setUp({}, signal);
    return mounter.getPath();
  };
  return { host, device, fileSystem, mount, setUp };
}

test("errors that are safe to correct are corrected", async () => {
  const { host, fileSystem, mount } = await aDevice();
  if (fileSystem !== undefined) fileSystem.errors = "correctable";
  await mount();
  expect(fileSystem?.errors).toBe("none");
  expect(await host.isMountPoint(path)).toBe(true);
});

test("with others it is not mounted, and no directory is left", async () => {
  const { host, fileSystem, mount } = await aDevice();
  if (fileSystem !== undefined) fileSystem.errors = "uncorrectable";
  await expect(mount()).rejects.toThrow(HostError);
  expect(await host.stat(path)).toBeUndefined();
});

test("a volume that is only read is mounted as it is", async () => {
  const { host, fileSystem, mount } = await aDevice(true);
  if (fileSystem !== undefined) fileSystem.errors = "uncorrectable";
  await mount();
  expect(await host.isMountPoint(path)).toBe(true);
});

test("one that has become read-only meanwhile is not given to a pod that is to write", async () => {
  const { host, device, mount, setUp } = await aDevice();
  await mount();
  expect(await host.isMountPoint(await setUp())).toBe(true);
  await host.unmount("/node/pods/u/volumes/kubernetes.io~aws-ebs/pv");
  await host.unmount(path);
  // As the kernel leaves it after an error.
  await host.mountDevice(device, path, { fsType: "ext4", readOnly: true });
  await expect(setUp()).rejects.toThrow(/has become read-only, .* end all pods/);
});
