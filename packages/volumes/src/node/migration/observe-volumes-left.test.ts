/** What is left of a plugin on a node, as disk and API objects show it. */
import { KubeApiError, type KubeClient, resources } from "@longshore/kube";
import { SimulatedHost } from "@longshore/runtime";
import { attachmentName } from "@longshore/storage";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { kubeletPaths } from "../../framework/volume-host.ts";
import { type VolData, writeVolData } from "../../plugins/csi/vol-data.ts";
import { ControlPlane } from "../../testing/control-plane.ts";
import { observeVolumesLeft } from "./observe-volumes-left.ts";

const root = "/var/lib/kubelet";
const driverName = "ebs.csi.aws.com";
const plugin = { inTreeName: "kubernetes.io/aws-ebs", driverName };
const csiName = (handle: string) => `kubernetes.io/csi/${driverName}^${handle}`;
const nothing = { "in-tree": [], csi: [] };

let plane: ControlPlane;
let host: SimulatedHost;
let heardOf: Set<string>;
/** Reads of these kinds are answered Forbidden, as the node authorizer does. */
let forbidden: Set<string>;

beforeEach(() => {
  plane = new ControlPlane();
  host = new SimulatedHost();
  heardOf = new Set();
  forbidden = new Set();
});
afterEach(() => plane.stop());

function asNode(): KubeClient {
  return new Proxy(plane.kube, {
    get(target, name: keyof KubeClient) {
      const member = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        const { kind } = args[0] as { readonly kind: string };
        if (!forbidden.has(kind)) return member.apply(target, args);
        const status = { kind: "Status", apiVersion: "v1", status: "Failure", code: 403 } as const;
        return Promise.reject(new KubeApiError({ ...status, reason: "Forbidden", message: "forbidden" }));
      };
    },
  });
}

interface NodeLists {
  readonly attached?: readonly string[];
  readonly inUse?: readonly string[];
  readonly merelyWanted?: readonly string[];
}

function left({ attached = [], inUse = [], merelyWanted = [] }: NodeLists = {}) {
  const node = {
    metadata: { name: "n1", uid: "u", resourceVersion: "1" },
    status: {
      volumesAttached: attached.map((name) => ({ name, devicePath: "" })),
      volumesInUse: inUse,
    },
  };
  const env = {
    kube: asNode(),
    host,
    nodeName: "n1",
    rootDir: root,
    isMerelyWanted: (name: string) => merelyWanted.includes(name),
  };
  return plane.clock.run(observeVolumesLeft(env, plugin, node as never, heardOf, plane.signal));
}

const published = (volumeName: string) =>
  kubeletPaths.podVolumeDir(root, "pod-1", "kubernetes.io/csi", volumeName);

async function publish(volumeName: string, data: Partial<VolData> = {}): Promise<string> {
  const directory = published(volumeName);
  await host.makeDirectory(`${directory}/mount`);
  await writeVolData(host, directory, { volumeHandle: `vol-${volumeName}`, driverName, ...data });
  return directory;
}

const inTreeSource = { awsElasticBlockStore: { volumeID: "vol-a" } };
const createVolume = (name: string, source: object) =>
  plane.create(resources.persistentVolumes, {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name },
    spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], ...source },
  });

const createAttachment = (handle: string, persistentVolumeName: string) =>
  plane.create(resources.volumeAttachments, {
    apiVersion: "storage.k8s.io/v1",
    kind: "VolumeAttachment",
    metadata: { name: attachmentName(handle, driverName, "n1") },
    spec: { attacher: driverName, nodeName: "n1", source: { persistentVolumeName } },
  });

describe("what is left of a plugin on a node", () => {
  it("is nothing on an empty one", async () => {
    expect(await left()).toEqual(nothing);
  });

  it("is what the Node names as attached or in use, by its path; other plugins' volumes are not", async () => {
    const inTree = `${plugin.inTreeName}/aws://us-east-1a/vol-1`;
    const other = ["kubernetes.io/gce-pd/disk", "kubernetes.io/csi/pd.csi.storage.gke.io^x"];
    expect(await left({ attached: [inTree, ...other], inUse: [csiName("vol-2")] })).toEqual({
      "in-tree": [inTree],
      csi: [csiName("vol-2")],
    });
  });

  it("is not what pods merely wait for", async () => {
    const name = csiName("vol-2");
    expect(await left({ inUse: [name], merelyWanted: [name] })).toEqual(nothing);
  });

  it("is what the driver has published for a pod, as its data file says", async () => {
    await publish("a");
    expect(await left()).toEqual({ "in-tree": [], csi: [csiName("vol-a")] });
  });

  it("is not a volume that was native to the driver from the beginning", async () => {
    await createVolume("native", { csi: { driver: driverName, volumeHandle: "vol-native" } });
    await createVolume("a", inTreeSource);
    await publish("native");
    await publish("a", { specVolID: "a" });
    expect(await left()).toEqual({ "in-tree": [], csi: [csiName("vol-a")] });
  });

  it("is a volume whose PersistentVolume the node may not read", async () => {
    await createVolume("native", { csi: { driver: driverName, volumeHandle: "vol-native" } });
    await publish("native");
    forbidden.add("PersistentVolume");
    expect((await left()).csi).toEqual([csiName("vol-native")]);
  });

  it("is not a volume that was made for one pod", async () => {
    await publish("scratch", { volumeLifecycleMode: "Ephemeral" });
    expect(await left()).toEqual(nothing);
  });

  it("is a directory whose data file is damaged, since its driver is not known", async () => {
    const directory = await publish("a");
    await host.writeFileAtomic(`${directory}/vol_data.json`, "{");
    expect((await left()).csi).toEqual([directory]);
  });

  it("is a mount without a data file, and no directory without either", async () => {
    await host.makeDirectory(`${published("empty")}/mount`);
    await host.makeDirectory(`${published("mounted")}/mount`);
    await host.bindMount("/tmp", `${published("mounted")}/mount`);
    expect((await left()).csi).toEqual([published("mounted")]);
  });

  it("is what the in-tree code has mounted, for pods and for the node", async () => {
    const forPod = kubeletPaths.podVolumeDir(root, "pod-1", plugin.inTreeName, "pv-a");
    const forNode = `${kubeletPaths.pluginMountsDir(root, plugin.inTreeName)}/aws/us-east-1a/vol-1`;
    await host.makeDirectory(forPod);
    await host.makeDirectory(forNode);
    expect((await left())["in-tree"]).toEqual([forPod]);
    await host.bindMount("/tmp", forNode);
    expect((await left())["in-tree"]).toEqual([forNode, forPod].sort());
  });

  it("is a volume that was attached, until its VolumeAttachment is gone", async () => {
    const name = csiName("vol-a");
    await createAttachment("vol-a", "pv-a");
    expect((await left({ attached: [name] })).csi).toEqual([name]);
    expect((await left()).csi).toEqual([name]);
    await plane.clock.run(
      plane.kube.delete(
        resources.volumeAttachments,
        { name: attachmentName("vol-a", driverName, "n1") },
        { signal: plane.signal },
      ),
    );
    expect(await left()).toEqual(nothing);
    expect(heardOf).toEqual(new Set());
  });

  it("is not a volume whose VolumeAttachment the node may not read: that is how a missing one is answered", async () => {
    heardOf.add(csiName("vol-a"));
    forbidden.add("VolumeAttachment");
    expect(await left()).toEqual(nothing);
  });

  it("is not known while the API server fails", async () => {
    heardOf.add(csiName("vol-a"));
    const status = { kind: "Status", apiVersion: "v1", status: "Failure", code: 500 } as const;
    const error = new KubeApiError({ ...status, reason: "InternalError", message: "etcd" });
    const { kube } = plane;
    Object.assign(plane, { kube: { ...kube, get: () => Promise.reject(error) } });
    await expect(left()).rejects.toBe(error);
  });
});
