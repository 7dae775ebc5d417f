/**
 * A StatefulSet is made again with another claim template, and its class in its place, on a real API server with RBAC, as a user with
 * the printed rights, while Kubernetes' own StatefulSet controller and garbage collector do their work: its pods are the same.
 */
import {
  type HttpKubeClient,
  type KubeObject,
  resources,
  type StatefulSet,
  type StorageClass,
  type Stored,
} from "@longshore/kube";
import {
  type ConversionEnv,
  carryReplacements,
  conversionRoles,
  planConversion,
  planUndoReplacements,
  readReplacementJournals,
  startedReplacements,
} from "@longshore/migration";
import { SimulatedHost } from "@longshore/runtime";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  bindRole,
  type ControlPlane,
  connectAs,
  eventually,
  realEnv,
  signal,
  startControlPlane,
} from "./support/index.ts";

const user = "converter";
const namespace = "default";
const ref = { namespace, name: "web" };
const rbac = "/apis/rbac.authorization.k8s.io/v1";
const journalDir = "/conversions";
const host = new SimulatedHost({ name: "operator" });
const labels = { app: "web" };
const replicas = 2;
const controllers = [
  "statefulset",
  "garbagecollector",
  "persistentvolume-binder",
  "pvc-protection",
  "serviceaccount",
  "serviceaccount-token",
];

let kubernetes: ControlPlane;
let kube: HttpKubeClient;
let converter: HttpKubeClient;
let env: ConversionEnv;

beforeAll(async () => {
  kubernetes = await startControlPlane({ controllerManager: { controllers }, users: [{ name: user }] });
  kube = await connectAs(kubernetes);
  converter = await connectAs(kubernetes, user);
  env = { ...realEnv, kube: converter, host };
  await grantPrintedRights();
  const driver = { metadata: { name: "ebs.csi.aws.com" }, spec: {} };
  await kube.create(resources.csiDrivers, driver as never, { signal });
  await kube.create(
    resources.storageClasses,
    {
      metadata: { name: "gp2" },
      provisioner: "kubernetes.io/aws-ebs",
      parameters: { type: "gp2", fsType: "ext4" },
      // Nothing provisions here: the claims wait.
      volumeBindingMode: "WaitForFirstConsumer",
    },
    { signal },
  );
  await kube.create(resources.statefulSets, webSet(), { signal });
  await eventually("the set has its pods", async () => (await podUids()).length === replicas);
});
afterAll(async () => {
  await Promise.all([kube?.close(), converter?.close()]);
  await kubernetes?.stop();
});

function webSet(): StatefulSet {
  return {
    metadata: ref,
    spec: {
      serviceName: "web",
      replicas,
      podManagementPolicy: "Parallel",
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "c", image: "i" }] } },
      volumeClaimTemplates: [
        {
          metadata: { name: "data" },
          spec: {
            storageClassName: "gp2",
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "1Gi" } },
          },
        },
      ],
    },
  };
}

async function grantPrintedRights(): Promise<void> {
  const [clusterRole, role] = conversionRoles();
  const name = clusterRole?.metadata?.name ?? "";
  await post(`${rbac}/clusterroles`, clusterRole);
  await bindRole(kubernetes, user, name);
  const system = `${rbac}/namespaces/${role?.metadata?.namespace}`;
  await post(`${system}/roles`, role);
  const apiGroup = "rbac.authorization.k8s.io";
  await post(`${system}/rolebindings`, {
    metadata: { name },
    subjects: [{ apiGroup, kind: "User", name: user }],
    roleRef: { apiGroup, kind: "Role", name: role?.metadata?.name },
  });
}

async function post(path: string, object: unknown): Promise<void> {
  const { status, body } = await kubernetes.call("POST", path, object);
  expect([status, body.message]).toEqual([201, undefined]);
}

async function podUids(): Promise<readonly string[]> {
  const { items } = await kube.list(resources.pods, { namespace, signal });
  return items.map(({ metadata }) => `${metadata.name} ${metadata.uid}`).sort();
}

/** Names of the revisions of the set's pods, and their owners. */
async function revisions(): Promise<readonly string[]> {
  const path = `/apis/apps/v1/namespaces/${namespace}/controllerrevisions`;
  const { body } = await kubernetes.call("GET", path);
  const { items } = body as unknown as { readonly items: readonly Stored<KubeObject>[] };
  return items.map(({ metadata }) => `${metadata.name} ${metadata.ownerReferences?.[0]?.uid}`);
}

const storedSet = async () => {
  const set = (await kube.get(resources.statefulSets, ref, { signal })) as Stored<StatefulSet>;
  return { set, className: set.spec?.volumeClaimTemplates?.[0]?.spec?.storageClassName };
};
const provisionerOf = async (name: string) =>
  ((await kube.get(resources.storageClasses, { name }, { signal })) as Stored<StorageClass> | undefined)
    ?.provisioner;

async function convert(classSuffix: string | undefined): Promise<readonly string[]> {
  const suffix = classSuffix === undefined ? {} : { classSuffix };
  const options = { noVolumes: true, classes: true, templates: true, ...suffix };
  const { refused, replacements = [], clusterId } = await planConversion(env, options, signal);
  expect(refused).toEqual([]);
  const known = await journals(clusterId);
  const begun = startedReplacements(replacements, known, clusterId, "convert");
  const result = await carryReplacements(env, begun, { journalDir }, signal);
  expect(result.failed).toEqual([]);
  return result.converted.map(({ volume }) => volume);
}

async function undo(): Promise<void> {
  const { clusterId } = await planConversion(env, { noVolumes: true }, signal);
  const known = await journals(clusterId);
  const done = [...known.values()].filter(({ direction }) => direction === "convert");
  const { refused, replacements } = await planUndoReplacements(converter, done, signal);
  expect(refused).toEqual([]);
  const back = startedReplacements(replacements, known, clusterId, "undo");
  expect((await carryReplacements(env, back, { journalDir }, signal)).failed).toEqual([]);
}

const journals = (clusterId: string) =>
  readReplacementJournals({ kube: converter, host, dir: journalDir }, clusterId, signal);

/** The controller has looked at the set as it is now, and goes on with the pods that are there. */
async function expectSettled(pods: readonly string[], revision: string | undefined): Promise<void> {
  await eventually("the new set counts its pods", async () => {
    const { status, metadata } = (await storedSet()).set;
    return status?.observedGeneration === metadata.generation && status?.updatedReplicas === replicas;
  });
  const { set } = await storedSet();
  expect(await podUids()).toEqual(pods);
  expect(set.status?.updateRevision).toBe(revision);
  expect(set.status?.currentRevision).toBe(revision);
  expect(await revisions()).toEqual([`${revision} ${set.metadata.uid}`]);
}

test("the pods keep their UIDs and the set its revision, there and back", async () => {
  const pods = await podUids();
  await eventually(
    "the set has a revision",
    async () => (await storedSet()).set.status?.updateRevision !== undefined,
  );
  const before = (await storedSet()).set;
  const revision = before.status?.updateRevision;

  expect(await convert("-csi")).toEqual(["StorageClass gp2", "StatefulSet default/web"]);
  const { set, className } = await storedSet();
  expect(set.metadata.uid).not.toBe(before.metadata.uid);
  expect(className).toBe("gp2-csi");
  expect([await provisionerOf("gp2"), await provisionerOf("gp2-csi")]).toEqual([
    "kubernetes.io/aws-ebs",
    "ebs.csi.aws.com",
  ]);
  await expectSettled(pods, revision);

  await undo();
  expect((await storedSet()).className).toBe("gp2");
  expect(await provisionerOf("gp2-csi")).toBeUndefined();
  await expectSettled(pods, revision);
});

test("a class is made again in its place, there and back", async () => {
  expect(await convert(undefined)).toEqual(["StorageClass gp2"]);
  expect(await provisionerOf("gp2")).toBe("ebs.csi.aws.com");
  await undo();
  expect(await provisionerOf("gp2")).toBe("kubernetes.io/aws-ebs");
});
