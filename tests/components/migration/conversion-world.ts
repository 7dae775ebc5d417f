/**
 * A cluster for conversions, on the embedded API server and the virtual clock: the persistent-volume controller and the protection
 * controllers are the product's own, the cloud counts its calls, and claims are bound to in-tree volumes of EBS.
 */
import {
  type KubeClient,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  type Stored,
} from "@longshore/kube";
import {
  type ConversionEnv,
  type ConversionPlanOptions,
  type ConversionResult,
  type ConversionRunOptions,
  newJournal,
  planConversion,
  planUndo,
  readJournals,
  runConversion,
} from "@longshore/migration";
import { featureGates, SimulatedHost } from "@longshore/runtime";
import { startPersistentVolumeController } from "../../../packages/volumes/src/controllers/persistent-volume/persistent-volume-controller.ts";
import { startProtectionControllers } from "../../../packages/volumes/src/controllers/protection/protection-controllers.ts";
import { volumeGates } from "../../../packages/volumes/src/csimigration/volume-gates.ts";
import { awsEbsPlugin } from "../../../packages/volumes/src/plugins/aws-ebs/aws-ebs-plugin.ts";
import { csiPlugin } from "../../../packages/volumes/src/plugins/csi/csi-plugin.ts";
import { ControlPlane } from "../../../packages/volumes/src/testing/control-plane.ts";
import { FakeCloud } from "../../../packages/volumes/src/testing/fake-cloud.ts";

const driver = "ebs.csi.aws.com";
const namespace = "shop";
const journalDir = "/state/conversions";

export type ConversionWorld = Awaited<ReturnType<typeof conversionWorld>>;

/** Makes it. */
export async function conversionWorld() {
  const plane = new ControlPlane();
  const cloud = new FakeCloud(["n1"]);
  const host = new SimulatedHost({ name: "operator" });
  const { signal } = plane;
  for (const name of ["kube-system", namespace]) {
    if ((await plane.get(resources.namespaces, name)) === undefined) {
      await plane.create(resources.namespaces, { metadata: { name } });
    }
  }
  await plane.create(resources.csiDrivers, { metadata: { name: driver }, spec: {} });
  await plane.create(resources.storageClasses, {
    metadata: { name: "gp2" },
    provisioner: "kubernetes.io/aws-ebs",
    reclaimPolicy: "Delete",
  });
  plane.running(
    startPersistentVolumeController(
      { ...plane.env, kube: plane.kube, plugins: [awsEbsPlugin({ cloud }), csiPlugin()] },
      { gates: featureGates(volumeGates, { CSIMigrationAWS: false }) },
    ),
  );
  plane.running(startProtectionControllers({ ...plane.env, kube: plane.kube }));
  const env = (kube: KubeClient = plane.kube): ConversionEnv => ({ ...plane.env, kube, host });
  const claim = (name: string): Promise<Stored<PersistentVolumeClaim> | undefined> =>
    plane.get(resources.persistentVolumeClaims, name, namespace);
  const volume = (name: string): Promise<Stored<PersistentVolume> | undefined> =>
    plane.get(resources.persistentVolumes, name);
  /** A bound pair: PersistentVolume `pv-NAME` of disk `vol-NAME`, and claim NAME. */
  const pair = async (name: string, fields: Partial<PersistentVolumeClaim["metadata"]> = {}) => {
    await plane.create(resources.persistentVolumes, {
      metadata: {
        name: `pv-${name}`,
        annotations: { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs" },
        labels: { "topology.kubernetes.io/zone": "eu-1a" },
      },
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "5Gi" },
        awsElasticBlockStore: { volumeID: `vol-${name}`, fsType: "ext4" },
        persistentVolumeReclaimPolicy: "Delete",
        storageClassName: "gp2",
        claimRef: { namespace, name },
      },
    });
    await plane.create(resources.persistentVolumeClaims, {
      metadata: { name, namespace, labels: { app: name }, ...fields },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "5Gi" } },
        storageClassName: "gp2",
        volumeName: `pv-${name}`,
      },
    });
    await plane.pass(30_000);
  };
  const plan = (options: ConversionPlanOptions = {}, kube?: KubeClient) =>
    plane.clock.run(planConversion(env(kube), options, signal));
  const journals = async () => {
    const system = await plane.get(resources.namespaces, "kube-system");
    const places = { kube: plane.kube, host, dir: journalDir };
    return plane.clock.run(readJournals(places, system?.metadata.uid ?? "", signal));
  };
  const run = async (
    options: ConversionPlanOptions & Partial<ConversionRunOptions> = {},
    kube?: KubeClient,
    stop: AbortSignal = signal,
  ): Promise<ConversionResult> => {
    const { volumes, clusterId } = await plan(options);
    const fresh = volumes.map((each) => newJournal(each, clusterId, "convert"));
    return plane.clock.run(runConversion(env(kube), fresh, { journalDir, ...options }, stop));
  };
  /** Goes on with what is unfinished. */
  const resume = async (options: Partial<ConversionRunOptions> = {}) => {
    const open = [...(await journals()).values()].filter(({ finishedAt }) => finishedAt === undefined);
    return plane.clock.run(runConversion(env(), open, { journalDir, ...options }, signal));
  };
  const undo = async (
    options: ConversionPlanOptions & Partial<ConversionRunOptions> = {},
    kube: KubeClient = plane.kube,
    planningKube: KubeClient = kube,
  ) => {
    const known = [...(await journals()).values()];
    const undone = await plane.clock.run(planUndo(planningKube, known, options, signal));
    const fresh = undone.volumes.map((planned) => {
      const earlier = known.find(({ planned: { toAfter } }) => toAfter.metadata?.name === planned.volume);
      return newJournal(planned, earlier?.clusterId ?? "", "undo", earlier);
    });
    const result = await plane.clock.run(runConversion(env(kube), fresh, { journalDir, ...options }, signal));
    return { ...undone, ...result };
  };
  return { plane, cloud, host, namespace, driver, claim, volume, pair, plan, run, resume, undo, journals };
}
