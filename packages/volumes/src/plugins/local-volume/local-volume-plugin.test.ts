/** Local volumes as devices of pods. Source: docs/behaviour/pod-volumes.md 8. */
import { noMeter, SeededRandom, SimulatedHost, silentLogger, VirtualClock } from "@longshore/runtime";
import { expect, it } from "vitest";
import type { VolumeHost } from "../../framework/volume-host.ts";
import { specOfPersistentVolume } from "../../framework/volume-spec.ts";
import { LocalVolumeError, localVolumePlugin } from "./local-volume-plugin.ts";

const signal = new AbortController().signal;
const pod = { metadata: { name: "p", namespace: "default", uid: "uid-1" } };

it("a block volume is the device at the path, which has to be one (8.2)", async () => {
  const host = new SimulatedHost();
  await host.truncateFile("/disk", 1 << 20);
  const device = await host.attachLoop("/disk");
  const env = {
    clock: new VirtualClock(),
    random: new SeededRandom(1),
    logger: silentLogger,
    meter: noMeter,
  };
  const kubelet = { nodeName: "n", rootDir: "/k", host, setKubeletError: () => {} };
  const plugin = localVolumePlugin();
  await plugin.init({ ...env, kubelet } as unknown as VolumeHost);
  const mapperOf = (path: string) => {
    const spec = { local: { path }, volumeMode: "Block" };
    return plugin.newBlockVolumeMapper(
      specOfPersistentVolume({ metadata: { name: "pv" }, spec }, false),
      pod,
    );
  };
  const mapper = await mapperOf(device);
  expect(await mapper.mapPodDevice?.(signal)).toBe(device);
  const place = { directory: "/k/pods/uid-1/volumeDevices/kubernetes.io~local-volume", name: "pv" };
  expect(mapper.getPodDeviceMapPath()).toEqual(place);
  const unmapper = await plugin.newBlockVolumeUnmapper("pv", "uid-1");
  expect(unmapper.getPodDeviceMapPath()).toEqual(place);
  const wrong = (await mapperOf("/disk")).mapPodDevice?.(signal);
  await expect(wrong).rejects.toThrow(LocalVolumeError);
  await expect(wrong).rejects.toThrow(
    'PersistentVolume pv: spec.local.path "/disk" is no block device on node n',
  );
});
