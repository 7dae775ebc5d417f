/**
 * The life of a migrated volume on a real API server, with our nodes and sidecars, and with either set of
 * volume controllers: Kubernetes' own or ours. One suite, so that ours are held to what the others do.
 */
import { readFile } from "node:fs/promises";
import { grpcConnector, grpcListener } from "@longshore/csi";
import {
  type HttpKubeClient,
  isDeleting,
  type PersistentVolumeClaim,
  type Pod,
  resources,
  type Stored,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { attachmentName } from "@longshore/storage";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startCsiDriverController } from "../../../packages/local/src/components/csi-driver.ts";
import { connectAs, realEnv, signal } from "./clients.ts";
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from "./control-plane.ts";
import { record } from "./history.ts";
import { appenderProgram, createTestNode, nodeUser, type TestNode } from "./node.ts";
import { eventually } from "./processes.ts";
import { machine, operator, type Provider, startProvider } from "./provider.ts";
import { grant } from "./rights.ts";

const driverName = "ebs.csi.aws.com";
const inTreeName = "kubernetes.io/aws-ebs";
const migratedPlugins = "storage.alpha.kubernetes.io/migrated-plugins";
const driverUser = "system:serviceaccount:kube-system:ebs-csi-controller";
const one = machine("node-1");
const two = machine("node-2");
const namespace = "default";

/** The gates with which everything runs. */
export const gates = { CSIMigration: true, CSIMigrationAWS: true };

/** What the suite is given. */
export interface VolumeLifeOptions {
  /** What the control plane needs in addition to the suite's own. */
  readonly controlPlane: ControlPlaneOptions;
  /** Starts the controllers that the control plane does not bring itself. */
  readonly startControllers?: (kubernetes: ControlPlane, provider: Provider) => Promise<Component>;
}

/** Registers the suite under `name`. */
export function volumeLife(name: string, options: VolumeLifeOptions): void {
  describe(`the life of a migrated volume, with ${name}:`, () => {
    let kubernetes: ControlPlane;
    let provider: Provider;
    let kube: HttpKubeClient;
    let controllers: Component | undefined;
    let driverKube: HttpKubeClient;
    let driver: Component;
    const nodes: TestNode[] = [];

    beforeAll(async () => {
      const users = [{ name: driverUser }, nodeUser(one.nodeName), nodeUser(two.nodeName)];
      [kubernetes, provider] = await Promise.all([
        startControlPlane({
          ...options.controlPlane,
          featureGates: gates,
          users: [...users, ...(options.controlPlane.users ?? [])],
        }),
        startProvider([one, two]),
      ]);
      kube = await connectAs(kubernetes);
      await grant(kubernetes, driverUser, "attacher", "provisioner", "resizer");
      driverKube = await connectAs(kubernetes, driverUser);
      for (const each of [one, two]) {
        const node = await createTestNode({ kubernetes, provider, driverName, machine: each });
        nodes.push(node);
        await node.startAgent(gates);
        await node.startDriver();
      }
      driver = await startCsiDriverController(
        {
          ...realEnv,
          kube: driverKube,
          host: provider.host,
          connector: grpcConnector(realEnv),
          listener: grpcListener(realEnv),
          cloudFor: provider.cloud.forCaller.bind(provider.cloud),
        },
        { driverName, socket: `${provider.directory}/csi.sock` },
      );
      for (const { nodeName } of [one, two]) {
        await eventually(`${nodeName} is migrated and has the driver`, async () => {
          const csiNode = await kube.get(resources.csiNodes, { name: nodeName }, { signal });
          const isMigrated = csiNode?.metadata.annotations?.[migratedPlugins] === inTreeName;
          return isMigrated && csiNode.spec.drivers?.some((entry) => entry.name === driverName);
        });
      }
      // Last, so that they never see a node that is not migrated.
      controllers = await options.startControllers?.(kubernetes, provider);
      await kube.create(
        resources.storageClasses,
        { metadata: { name: "gp2" }, provisioner: inTreeName, parameters: { type: "gp2" } },
        { signal },
      );
    });
    afterAll(async () => {
      await Promise.all(nodes.map((node) => node.stop()));
      await controllers?.stop();
      await driver?.stop();
      await Promise.all([kube?.close(), driverKube?.close()]);
      await Promise.all([kubernetes?.stop(), provider?.stop()]);
    });

    const claimRef = { namespace, name: "data" };
    const getClaim = () => kube.get(resources.persistentVolumeClaims, claimRef, { signal });
    const getNode = async (nodeName: string) => {
      const node = await kube.get(resources.nodes, { name: nodeName }, { signal });
      if (node === undefined) throw new Error(`no node ${nodeName}`);
      return node;
    };
    const attachmentTo = (disk: string, nodeName: string) =>
      kube.get(resources.volumeAttachments, { name: attachmentName(disk, driverName, nodeName) }, { signal });
    const attachedTo = async (nodeName: string) =>
      (await getNode(nodeName)).status?.volumesAttached?.map((volume) => volume.name) ?? [];
    const onlyDisk = () => {
      const disks = provider.cloud.disks();
      expect(disks).toHaveLength(1);
      return disks[0]?.id ?? "";
    };
    const uniqueName = (disk: string) => `kubernetes.io/csi/${driverName}^${disk}`;

    const createPod = (podName: string, nodeName: string, volume: object): Promise<Stored<Pod>> =>
      kube.create(
        resources.pods,
        {
          metadata: { name: podName, namespace },
          spec: {
            nodeName,
            automountServiceAccountToken: false,
            terminationGracePeriodSeconds: 1,
            containers: [
              {
                name: "app",
                image: "none",
                command: [appenderProgram],
                volumeMounts: [{ name: "data", mountPath: "/data" }],
              },
            ],
            volumes: [{ name: "data", ...volume }],
          },
        },
        { signal },
      );
    const running = (podName: string) =>
      eventually(
        `pod ${podName} runs`,
        async () => {
          const pod = await kube.get(resources.pods, { namespace, name: podName }, { signal });
          return pod?.status?.phase === "Running" && pod;
        },
        60_000,
      );
    const gone = async (podName: string) => {
      await kube.delete(resources.pods, { namespace, name: podName }, { signal });
      await eventually(`pod ${podName} is gone`, async () => {
        return (await kube.get(resources.pods, { namespace, name: podName }, { signal })) === undefined;
      });
    };

    test("a claim of the in-tree class gets an in-tree volume from the driver", async () => {
      const claim: PersistentVolumeClaim = {
        metadata: claimRef,
        spec: {
          accessModes: ["ReadWriteOnce"],
          storageClassName: "gp2",
          resources: { requests: { storage: "1Gi" } },
        },
      };
      await kube.create(resources.persistentVolumeClaims, claim, { signal });
      const bound = await eventually("the claim is bound", async () => {
        const now = await getClaim();
        return now?.status?.phase === "Bound" && now;
      });
      expect(bound.metadata.annotations).toMatchObject({
        "volume.beta.kubernetes.io/storage-provisioner": driverName,
        "pv.kubernetes.io/bind-completed": "yes",
      });
      await eventually("what kept the claim while its volume was made is off again", async () => {
        const finalizers = (await getClaim())?.metadata.finalizers;
        return finalizers?.length === 1 && finalizers[0] === "kubernetes.io/pvc-protection";
      });
      const disk = onlyDisk();
      const pv = await eventually("the volume is marked as migrated", async () => {
        const now = await kube.get(
          resources.persistentVolumes,
          { name: bound.spec?.volumeName ?? "" },
          { signal },
        );
        return now?.metadata.annotations?.["pv.kubernetes.io/migrated-to"] !== undefined && now;
      });
      expect(pv.metadata.annotations).toMatchObject({
        "pv.kubernetes.io/provisioned-by": inTreeName,
        "pv.kubernetes.io/migrated-to": driverName,
      });
      expect(pv.spec?.awsElasticBlockStore?.volumeID).toContain(disk);
      expect(pv.spec?.csi).toBeUndefined();
    });

    test("a pod's volume is attached by VolumeAttachment, mounted, and released in the right order", async () => {
      const disk = onlyDisk();
      const volume = uniqueName(disk);
      const [nodeHistory, attachments] = await Promise.all([
        record(kube, resources.nodes),
        record(kube, resources.volumeAttachments),
      ]);
      await createPod("first", one.nodeName, { persistentVolumeClaim: { claimName: "data" } });
      await running("first");
      const claim = await getClaim();
      const va = await attachmentTo(disk, one.nodeName);
      expect(va).toMatchObject({
        spec: {
          attacher: driverName,
          nodeName: one.nodeName,
          source: { persistentVolumeName: claim?.spec?.volumeName },
        },
        status: { attached: true },
      });
      const node = await getNode(one.nodeName);
      expect(node.status?.volumesAttached).toEqual([{ name: volume, devicePath: "" }]);
      expect(node.status?.volumesInUse).toEqual([volume]);
      expect(provider.attachedTo(disk)).toEqual([one.instanceId]);
      expect(nodes[0]?.registrations).toEqual([true]);

      await gone("first");
      await eventually("the attachment is gone", async () => {
        return (await attachmentTo(disk, one.nodeName)) === undefined;
      });
      await eventually("the node reports nothing attached", async () => {
        return (await attachedTo(one.nodeName)).length === 0;
      });
      expect(provider.attachedTo(disk)).toEqual([]);

      type NodeState = (typeof nodeHistory.states)[number];
      const onNode = (state: NodeState) => state.metadata.name === one.nodeName;
      const inUse = ({ status }: NodeState) => status?.volumesInUse?.includes(volume) ?? false;
      const inUseAt = await nodeHistory.versionWhen((state) => onNode(state) && inUse(state));
      const freeAt = await nodeHistory.versionWhen(
        (state) => onNode(state) && Number(state.metadata.resourceVersion) > inUseAt && !inUse(state),
      );
      const reportedAt = await nodeHistory.versionWhen(
        (state) =>
          onNode(state) && (state.status?.volumesAttached?.some((entry) => entry.name === volume) ?? false),
      );
      const attachedAt = await attachments.versionWhen((state) => state.status?.attached === true);
      const detachAskedAt = await attachments.versionWhen(isDeleting);
      await Promise.all([nodeHistory.stop(), attachments.stop()]);
      // Attached before it is reported so; not taken away before the node has let go.
      expect(attachedAt).toBeLessThan(reportedAt);
      expect(freeAt).toBeLessThan(detachAskedAt);
    });

    test("the next pod, on another node, finds the data", async () => {
      const disk = onlyDisk();
      const claim = await getClaim();
      await createPod("second", two.nodeName, { persistentVolumeClaim: { claimName: "data" } });
      const pod = await running("second");
      expect(provider.attachedTo(disk)).toEqual([two.instanceId]);
      const volumeDir = `${nodes[1]?.rootDir}/pods/${pod.metadata.uid}/volumes/kubernetes.io~csi`;
      const path = `${volumeDir}/${claim?.spec?.volumeName}/mount/lines`;
      await eventually("the pod has written", async () => {
        return (await readFile(path, "utf8")).endsWith("second\n");
      });
      expect(await readFile(path, "utf8")).toBe("first\nsecond\n");
      await gone("second");
      await eventually("the attachment is gone", async () => {
        return (await attachmentTo(disk, two.nodeName)) === undefined;
      });
      expect(provider.attachedTo(disk)).toEqual([]);
    });

    test("a claim that is deleted takes its volume and its disk with it", async () => {
      const volumeName = (await getClaim())?.spec?.volumeName ?? "";
      await kube.delete(resources.persistentVolumeClaims, claimRef, { signal });
      await eventually("the claim is gone", async () => (await getClaim()) === undefined);
      await eventually("the volume is gone", async () => {
        return (await kube.get(resources.persistentVolumes, { name: volumeName }, { signal })) === undefined;
      });
      expect(provider.cloud.disks()).toEqual([]);
    });

    test("an inline volume goes through the attachment's own copy of its spec", async () => {
      const disk = await provider.makeDisk("inline");
      await createPod("inline", one.nodeName, { awsElasticBlockStore: { volumeID: disk, fsType: "ext4" } });
      await running("inline");
      const va = await attachmentTo(disk, one.nodeName);
      expect(va?.spec.source.persistentVolumeName).toBeUndefined();
      expect(va?.spec.source.inlineVolumeSpec).toMatchObject({
        accessModes: ["ReadWriteOnce"],
        csi: { driver: driverName, volumeHandle: disk, fsType: "ext4" },
      });
      expect((await getNode(one.nodeName)).status?.volumesAttached).toEqual([
        { name: uniqueName(disk), devicePath: "" },
      ]);
      expect(provider.attachedTo(disk)).toEqual([one.instanceId]);
      await gone("inline");
      await eventually("the attachment is gone", async () => {
        return (await attachmentTo(disk, one.nodeName)) === undefined;
      });
      expect(provider.attachedTo(disk)).toEqual([]);
    });

    test("no in-tree code has called the provider", async () => {
      const calls = await provider.cloud.calls(0, signal);
      expect(calls.some(({ path }) => path === "csi")).toBe(true);
      expect(calls.filter(({ path, component }) => path === "in-tree" && component !== operator)).toEqual([]);
    });
  });
}
