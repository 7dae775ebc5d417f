/**
 * The bare sequence: the requests that ours makes from the pod to its mounted volume, the same calls and directories, one after the
 * other. The report names each request that only one of the two makes.
 */
import { inProcessCsi } from "@longshore/csi";
import { type KubeClient, resources } from "@longshore/kube";
import { createDiskCloud, createReferenceDriver } from "@longshore/reference-driver";
import { type RuntimeEnv, SimulatedDisks, SimulatedHost } from "@longshore/runtime";
import { attachmentName } from "@longshore/storage";
import {
  createBound,
  createPod,
  driver,
  type Mounted,
  namespace,
  signal,
  volumeCapability,
} from "./objects.ts";

const nodeName = "node-1";
const instanceId = "i-00000000000000001";
const call = { signal, timeoutMs: 10_000 };
const finalizers = [`external-attacher/${driver.replaceAll(".", "-")}`];

const starting = {
  phase: "Pending",
  conditions: [{ type: "PodScheduled", status: "True" }],
  containerStatuses: [
    {
      name: "c",
      image: "host",
      imageID: "",
      ready: false,
      restartCount: 0,
      state: { waiting: { reason: "ContainerCreating" } },
    },
  ],
};

const attachedEvent = (podName: string, podUID: string) => ({
  metadata: { name: `${podName}.attached`, namespace },
  involvedObject: { kind: "Pod", apiVersion: "v1", namespace, name: podName, uid: podUID },
  type: "Normal",
  reason: "SuccessfulAttachVolume",
  message: `AttachVolume.Attach succeeded for volume "${podName}"`,
  source: { component: "bare" },
  count: 1,
});

/** Starts the driver, on a machine and a cloud of its own. @returns what mounts one volume, and takes it away */
export async function createBare(
  env: RuntimeEnv,
  kube: KubeClient,
): Promise<(name: string) => Promise<Mounted>> {
  const disks = new SimulatedDisks();
  const host = new SimulatedHost({ name: nodeName, disks });
  const instances = [{ instanceId, nodeName, zone: "us-east-1a", region: "us-east-1", attachLimit: 1000 }];
  const cloud = await createDiskCloud(
    { ...env, host: new SimulatedHost({ name: "cloud", disks }) },
    { stateDir: "/cloud", deviceDir: "/dev/cloud", instances },
  );
  const caller = { path: "csi", component: driver, provider: "aws-ebs" } as const;
  const services = createReferenceDriver(
    { ...env, host, cloud: cloud.forCaller(caller) },
    {
      driverName: driver,
      nodeName,
      services: "both",
      region: "us-east-1",
      recordsFile: "/driver/records.json",
    },
  );
  const csi = inProcessCsi(env);
  await csi.serve("/csi.sock", services);
  const { controller, node } = csi.connect("/csi.sock");
  const status = { signal, subresource: "status" } as const;
  const merge = (body: object) => ({ type: "merge", body }) as const;

  return async (name) => {
    const volumeId = await createBound(kube, controller, name);
    const attachment = { name: attachmentName(volumeId, driver, nodeName) };
    const volume = `kubernetes.io/csi/${driver}^${volumeId}`;
    const podUID = await createPod(kube, name, nodeName);
    const beganMs = performance.now();
    // The node: what the pod uses, and that it is in use here.
    await kube.get(resources.persistentVolumeClaims, { name, namespace }, { signal });
    await kube.get(resources.persistentVolumes, { name }, { signal });
    await kube.patch(resources.pods, { name, namespace }, merge({ status: starting }), status);
    await kube.patch(
      resources.nodes,
      { name: nodeName },
      merge({ status: { volumesInUse: [volume] } }),
      status,
    );
    // The attach/detach controller.
    await kube.create(
      resources.volumeAttachments,
      { metadata: attachment, spec: { attacher: driver, nodeName, source: { persistentVolumeName: name } } },
      { signal },
    );
    // The attacher.
    await kube.patch(resources.volumeAttachments, attachment, merge({ metadata: { finalizers } }), {
      signal,
    });
    await kube.patch(resources.persistentVolumes, { name }, merge({ metadata: { finalizers } }), { signal });
    const { publishContext } = await controller.controllerPublishVolume(
      { volumeId, nodeId: instanceId, volumeCapability, readonly: false },
      call,
    );
    const attached = { attached: true, attachmentMetadata: publishContext };
    await kube.patch(resources.volumeAttachments, attachment, merge({ status: attached }), status);
    // The attach/detach controller.
    await kube.create(resources.events, attachedEvent(name, podUID), { signal });
    const volumesAttached = [{ name: volume, devicePath: "" }];
    await kube.patch(resources.nodes, { name: nodeName }, merge({ status: { volumesAttached } }), status);
    // The node.
    await kube.get(resources.nodes, { name: nodeName }, { signal });
    await kube.get(resources.volumeAttachments, attachment, { signal });
    await kube.get(resources.volumeAttachments, attachment, { signal });
    await node.nodeGetCapabilities({}, call);
    const stagingTargetPath = `/kubelet/pv/${name}/globalmount`;
    const podDirectory = `/kubelet/pods/${podUID}/${name}`;
    await host.makeDirectory(stagingTargetPath);
    await node.nodeStageVolume({ volumeId, publishContext, stagingTargetPath, volumeCapability }, call);
    await kube.get(resources.persistentVolumeClaims, { name, namespace }, { signal });
    await kube.get(resources.volumeAttachments, attachment, { signal });
    await node.nodeGetCapabilities({}, call);
    await host.makeDirectory(podDirectory);
    const targetPath = `${podDirectory}/mount`;
    await node.nodePublishVolume(
      { volumeId, publishContext, stagingTargetPath, targetPath, volumeCapability },
      call,
    );
    const tookMs = performance.now() - beganMs;
    await node.nodeUnpublishVolume({ volumeId, targetPath }, call);
    await node.nodeUnstageVolume({ volumeId, stagingTargetPath }, call);
    await controller.controllerUnpublishVolume({ volumeId, nodeId: instanceId }, call);
    await kube.patch(resources.volumeAttachments, attachment, merge({ metadata: { finalizers: null } }), {
      signal,
    });
    await kube.delete(resources.volumeAttachments, attachment, { signal });
    await kube.delete(resources.pods, { name, namespace }, { signal, gracePeriodSeconds: 0 });
    return { beganMs, tookMs };
  };
}
