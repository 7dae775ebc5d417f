/**
 * Inline volumes on a real API server, while Kubernetes' own controllers of Deployments, StatefulSets and volumes do their work: the template
 * changes while they have no pod, and each pod that they make is of the template of its time.
 */
import { type Deployment, type HttpKubeClient, type Pod, resources } from "@longshore/kube";
import {
  type ConversionResult,
  type InlineJournal,
  newInlineJournal,
  planInlineConversion,
  planInlineUndo,
  readClusterId,
  readInlineJournals,
  runInlineConversion,
} from "@longshore/migration";
import { SimulatedHost } from "@longshore/runtime";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type ControlPlane,
  connectAs,
  eventually,
  type History,
  realEnv,
  record,
  signal,
  startControlPlane,
} from "./support/index.ts";

const namespace = "default";
const labels = { app: "web" };
const sizes = { others: "1Gi", byVolume: new Map<string, string>() };
const run = { journalDir: "/conversions", backupDir: "/saved" };
const host = new SimulatedHost({ name: "operator" });

let kubernetes: ControlPlane;
let kube: HttpKubeClient;
let pods: History<Pod>;

beforeAll(async () => {
  const controllers = [
    ...["persistentvolume-binder", "pv-protection", "pvc-protection", "garbagecollector"],
    ...["deployment", "replicaset", "statefulset", "serviceaccount"],
  ];
  kubernetes = await startControlPlane({ controllerManager: { controllers }, requireServiceAccounts: false });
  kube = await connectAs(kubernetes);
  const driver = { metadata: { name: "ebs.csi.aws.com" }, spec: {} };
  await kube.create(resources.csiDrivers, driver as never, { signal });
  pods = await record(kube, resources.pods);
  const deployment = {
    metadata: { namespace, name: "web" },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          containers: [{ name: "c", image: "i" }],
          volumes: [{ name: "data", awsElasticBlockStore: { volumeID: "vol-1", fsType: "ext4" } }],
        },
      },
    },
  } as unknown as Deployment;
  await kube.create(resources.deployments, deployment, { signal });
  await eventually("its pod is there", async () => (await volumesOfPods()).length === 1);
});
afterAll(async () => {
  await pods?.stop();
  await kube?.close();
  await kubernetes?.stop();
});

async function volumesOfPods() {
  const { items } = await kube.list(resources.pods, { namespace, signal });
  return items.map(({ spec }) => spec?.volumes?.find(({ name }) => name === "data"));
}

async function carried(
  direction: "convert" | "undo",
): Promise<readonly [ConversionResult, readonly InlineJournal[]]> {
  const clusterId = await readClusterId(kube, signal);
  const places = { kube, host, dir: run.journalDir };
  const known = [...(await readInlineJournals(places, clusterId, signal)).values()];
  const { templates, refused } =
    direction === "convert"
      ? await planInlineConversion(kube, { sizes, scaleDown: true }, signal)
      : await planInlineUndo(kube, known, { scaleDown: true }, signal);
  expect(refused).toEqual([]);
  const journals = templates.map((planned) => newInlineJournal(planned, clusterId, direction, known[0]));
  const result = await runInlineConversion({ ...realEnv, kube, host }, journals, run, signal);
  return [result, [...(await readInlineJournals(places, clusterId, signal)).values()]];
}

test("a Deployment's disk becomes a claim, and its own volume again", async () => {
  const [result, journals] = await carried("convert");
  expect([result.failed, result.converted.map(({ volume }) => volume)]).toEqual([
    [],
    ["Deployment default/web"],
  ]);
  expect(journals.map(({ finishedAt }) => finishedAt)).toEqual([expect.any(String)]);
  await eventually("its pod is there", async () => (await volumesOfPods()).length === 1);
  expect(await volumesOfPods()).toMatchObject([{ persistentVolumeClaim: { claimName: "web-data" } }]);
  const claim = await kube.get(resources.persistentVolumeClaims, { namespace, name: "web-data" }, { signal });
  expect(claim?.status?.phase).toBe("Bound");
  const ref = { name: claim?.spec?.volumeName ?? "" };
  const volume = await kube.get(resources.persistentVolumes, ref, { signal });
  expect(volume?.spec).toMatchObject({
    csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-1" },
    persistentVolumeReclaimPolicy: "Retain",
  });

  const [back] = await carried("undo");
  expect(back.failed).toEqual([]);
  await eventually("its pod is there", async () => (await volumesOfPods()).length === 1);
  expect(await volumesOfPods()).toMatchObject([{ awsElasticBlockStore: { volumeID: "vol-1" } }]);
  expect((await kube.list(resources.persistentVolumes, { signal })).items).toEqual([]);
  expect((await kube.list(resources.persistentVolumeClaims, { signal })).items).toEqual([]);
  // One pod for each template in its time: none was made from a template that was on its way out.
  const forms = new Map(
    pods.states.map(({ metadata, spec }) => [
      metadata.uid,
      spec?.volumes?.find(({ name }) => name === "data")?.persistentVolumeClaim == null ? "disk" : "claim",
    ]),
  );
  expect([...forms.values()]).toEqual(["disk", "claim", "disk"]);
});
