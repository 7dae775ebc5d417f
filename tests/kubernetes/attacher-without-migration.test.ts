/**
 * The attacher where the API server knows no migration (CSIMigration=false): volumes of the driver as ever, in-tree
 * volumes as soon as an attachment names its driver, and inline volumes not at all, since the server refuses them.
 */
import { type CsiConnection, type CsiServer, grpcConnector, grpcListener } from "@longshore/csi";
import {
  type HttpKubeClient,
  isInvalid,
  type PersistentVolumeSpec,
  resources,
  type VolumeAttachment,
} from "@longshore/kube";
import { startAttacher } from "@longshore/sidecars";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createReferenceDriver } from "../../packages/reference-driver/src/driver/index.ts";
import {
  type ControlPlane,
  connectAs,
  eventually,
  grant,
  machine,
  type Provider,
  realEnv,
  signal,
  startControlPlane,
  startProvider,
} from "./support/index.ts";

const driverName = "ebs.csi.aws.com";
const finalizer = "external-attacher/ebs-csi-aws-com";
const user = "system:serviceaccount:kube-system:ebs-csi-controller";
const node = machine("node-1");

let kubernetes: ControlPlane;
let provider: Provider;
let kube: HttpKubeClient;
let attacherKube: HttpKubeClient;
let server: CsiServer;
let csi: CsiConnection;
let attacher: ReturnType<typeof startAttacher>;

beforeAll(async () => {
  [kubernetes, provider] = await Promise.all([
    startControlPlane({ featureGates: { CSIMigration: false }, users: [{ name: user }] }),
    startProvider([node]),
  ]);
  kube = await connectAs(kubernetes);
  await grant(kubernetes, user, "attacher");
  attacherKube = await connectAs(kubernetes, user);
  const cloud = provider.cloud.forCaller({ path: "csi", component: driverName });
  const services = createReferenceDriver(
    { ...realEnv, host: provider.host, cloud },
    { driverName, services: "controller" },
  );
  const socket = `${provider.directory}/csi.sock`;
  server = await grpcListener(realEnv).serve(socket, services);
  csi = grpcConnector(realEnv).connect(socket);
  attacher = startAttacher(
    { ...realEnv, kube: attacherKube, csi },
    { backoff: { initialMs: 100, maximumMs: 1000 } },
  );
  const { nodeName, instanceId } = node;
  await kube.create(resources.nodes, { metadata: { name: nodeName } }, { signal });
  const drivers = [{ name: driverName, nodeID: instanceId }];
  await kube.create(resources.csiNodes, { metadata: { name: nodeName }, spec: { drivers } }, { signal });
});
afterAll(async () => {
  await attacher?.stop();
  csi?.close();
  await server?.close();
  await Promise.all([kube?.close(), attacherKube?.close()]);
  await Promise.all([kubernetes?.stop(), provider?.stop()]);
});

function attach(name: string, source: VolumeAttachment["spec"]["source"]) {
  const spec = { attacher: driverName, nodeName: node.nodeName, source };
  return kube.create(resources.volumeAttachments, { metadata: { name }, spec }, { signal });
}

test.each<[string, (disk: string) => PersistentVolumeSpec]>([
  ["csi", (disk) => ({ csi: { driver: driverName, volumeHandle: disk } })],
  ["in-tree", (disk) => ({ awsElasticBlockStore: { volumeID: `aws://${node.zone}/${disk}` } })],
])("a volume of kind %s is attached, detached and let go", async (name, sourceOf) => {
  const disk = await provider.makeDisk(name);
  const spec: PersistentVolumeSpec = {
    accessModes: ["ReadWriteOnce"],
    capacity: { storage: "1Gi" },
    persistentVolumeReclaimPolicy: "Retain",
    ...sourceOf(disk),
  };
  await kube.create(resources.persistentVolumes, { metadata: { name }, spec }, { signal });
  await attach(`va-${name}`, { persistentVolumeName: name });
  const va = await eventually(`${name} is attached`, async () => {
    const now = await kube.get(resources.volumeAttachments, { name: `va-${name}` }, { signal });
    return now?.status?.attached === true && now;
  });
  expect(va.metadata.finalizers).toEqual([finalizer]);
  expect(provider.attachedTo(disk)).toEqual([node.instanceId]);
  await kube.delete(resources.volumeAttachments, { name: `va-${name}` }, { signal });
  await eventually(`${name} is detached`, async () => {
    return (await kube.get(resources.volumeAttachments, { name: `va-${name}` }, { signal })) === undefined;
  });
  expect(provider.attachedTo(disk)).toEqual([]);
  await kube.delete(resources.persistentVolumes, { name }, { signal });
  await eventually(`the attacher lets go of ${name}`, async () => {
    const pv = await kube.get(resources.persistentVolumes, { name }, { signal });
    return !pv?.metadata.finalizers?.includes(finalizer);
  });
});

test("an inline volume is refused by the server, which drops its spec", async () => {
  const inlineVolumeSpec = {
    accessModes: ["ReadWriteOnce"],
    csi: { driver: driverName, volumeHandle: "vol-1" },
  };
  const error = await attach("va-inline", { inlineVolumeSpec }).then(
    () => undefined,
    (failure) => failure,
  );
  expect(isInvalid(error)).toBe(true);
});
