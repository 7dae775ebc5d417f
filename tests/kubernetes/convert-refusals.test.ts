/**
 * What is not converted on a real API server and with the controllers of Kubernetes: quotas, webhooks, claims and volumes in states
 * that these controllers have brought about. Each is refused by name, before anything is changed.
 */
import {
  type HttpKubeClient,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
} from "@longshore/kube";
import { planConversion, type Refusal } from "@longshore/migration";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startWebhookServer,
  type WebhookServer,
} from "../../packages/apiserver/src/testing/webhook-server.ts";
import {
  type ControlPlane,
  connectAs,
  eventually,
  realEnv,
  signal,
  startControlPlane,
} from "./support/index.ts";

const size = { storage: "1Gi" };
const controllers = [
  "persistentvolume-binder",
  "pv-protection",
  "pvc-protection",
  "namespace",
  "resourcequota",
  "serviceaccount",
];
/** Every pair has a namespace of its own, with the name of its case. */
const cases = ["sound", "quota", "webhook", "deleting", "released", "failed", "operator", "shared"] as const;
type Case = (typeof cases)[number];

let kubernetes: ControlPlane;
let hooks: WebhookServer;
let kube: HttpKubeClient;

beforeAll(async () => {
  [kubernetes, hooks] = await Promise.all([
    startControlPlane({ controllerManager: { controllers }, requireServiceAccounts: false }),
    startWebhookServer(),
  ]);
  hooks.answer(() => ({
    response: { allowed: false, status: { message: "claims are made by the portal" } },
  }));
  kube = await connectAs(kubernetes);
  await kube.create(resources.csiDrivers, { metadata: { name: "ebs.csi.aws.com" }, spec: {} } as never, {
    signal,
  });
  await Promise.all(cases.map(addPair));
  await Promise.all([
    fillQuota(),
    refuseClaims(),
    deleteKeptClaim(),
    releaseVolume(),
    failVolume(),
    ownClaim(),
    addOther(),
  ]);
});
afterAll(async () => {
  await kube?.close();
  await kubernetes?.stop();
  await hooks?.stop();
});

const claimRef = (name: Case) => ({ namespace: name, name: "data" });
const claimOf = (name: Case) => kube.get(resources.persistentVolumeClaims, claimRef(name), { signal });
const phaseOf = async (name: string) =>
  (await kube.get(resources.persistentVolumes, { name }, { signal }))?.status?.phase;

function volumeOf(name: string, volumeID: string, claim?: object): PersistentVolume {
  return {
    metadata: { name },
    spec: {
      awsElasticBlockStore: { volumeID, fsType: "ext4" },
      capacity: size,
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Retain",
      storageClassName: "standard",
      ...(claim === undefined ? {} : { claimRef: claim }),
    },
  } as PersistentVolume;
}

async function addPair(name: Case): Promise<void> {
  await kube.create(resources.namespaces, { metadata: { name, labels: { case: name } } }, { signal });
  const volume = volumeOf(`pv-${name}`, `vol-${name}`, claimRef(name));
  await kube.create(resources.persistentVolumes, volume, { signal });
  const claim: PersistentVolumeClaim = {
    metadata: claimRef(name),
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: size },
      storageClassName: "standard",
      volumeName: `pv-${name}`,
    },
  };
  await kube.create(resources.persistentVolumeClaims, claim, { signal });
  await eventually(
    `the claim of ${name} is bound`,
    async () => (await claimOf(name))?.status?.phase === "Bound",
  );
}

/** Room for the claim that is there, and for no second one. */
async function fillQuota(): Promise<void> {
  const path = "/api/v1/namespaces/quota/resourcequotas";
  const spec = { hard: { persistentvolumeclaims: "1" } };
  const { status } = await kubernetes.call("POST", path, { metadata: { name: "one" }, spec });
  expect(status).toBe(201);
  await eventually("the quota counts the claim", async () => {
    const { body } = await kubernetes.call("GET", `${path}/one`);
    return body.status?.used?.persistentvolumeclaims === "1";
  });
}

async function refuseClaims(): Promise<void> {
  const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  const rules = [
    {
      operations: ["CREATE"],
      apiGroups: [""],
      apiVersions: ["v1"],
      resources: ["persistentvolumeclaims"],
    },
  ];
  const webhook = {
    name: "portal.example.com",
    clientConfig: { url: `${hooks.url}/claims`, caBundle: hooks.caBundle },
    rules,
    namespaceSelector: { matchLabels: { case: "webhook" } },
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
  };
  const { status } = await kubernetes.call("POST", path, {
    metadata: { name: "portal" },
    webhooks: [webhook],
  });
  expect(status).toBe(201);
  const claims = "/api/v1/namespaces/webhook/persistentvolumeclaims?dryRun=All";
  await eventually("the API server asks the webhook", async () => {
    const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: size } };
    const answer = await kubernetes.call("POST", claims, { metadata: { name: "probe" }, spec });
    return answer.status !== 201;
  });
}

async function deleteKeptClaim(): Promise<void> {
  const finalizers = [...((await claimOf("deleting"))?.metadata.finalizers ?? []), "example.com/kept"];
  const body = { metadata: { finalizers } };
  await kube.patch(
    resources.persistentVolumeClaims,
    claimRef("deleting"),
    { type: "merge", body },
    { signal },
  );
  await kube.delete(resources.persistentVolumeClaims, claimRef("deleting"), { signal });
}

async function releaseVolume(): Promise<void> {
  await kube.delete(resources.persistentVolumeClaims, claimRef("released"), { signal });
  await eventually("the volume is Released", async () => (await phaseOf("pv-released")) === "Released");
}

/** The controller manager has no cloud provider that could delete the disk. */
async function failVolume(): Promise<void> {
  const body = { spec: { persistentVolumeReclaimPolicy: "Delete" } };
  const ref = { name: "pv-failed" };
  await kube.patch(resources.persistentVolumes, ref, { type: "merge", body }, { signal });
  await kube.delete(resources.persistentVolumeClaims, claimRef("failed"), { signal });
  await eventually("the volume is Failed", async () => (await phaseOf("pv-failed")) === "Failed");
}

/** By a controller that makes it again as soon as it is gone. */
async function ownClaim(): Promise<void> {
  const name = "db";
  const owner = await kube.create(
    resources.configMaps,
    { metadata: { namespace: "operator", name } },
    { signal },
  );
  const reference = { apiVersion: "v1", kind: "ConfigMap", name, uid: owner.metadata.uid, controller: true };
  const body = { metadata: { ownerReferences: [reference] } };
  await kube.patch(
    resources.persistentVolumeClaims,
    claimRef("operator"),
    { type: "merge", body },
    { signal },
  );
}

async function addOther(): Promise<void> {
  const other = volumeOf("pv-other", "vol-shared");
  await kube.create(
    resources.persistentVolumes,
    { ...other, spec: { ...other.spec, storageClassName: "none" } } as PersistentVolume,
    { signal },
  );
}

/** Every volume and claim, as it is stored. */
async function stored(): Promise<string> {
  const all = [
    ...(await kube.list(resources.persistentVolumes, { signal })).items,
    ...(await kube.list(resources.persistentVolumeClaims, { signal })).items,
  ];
  const heads = all.map(({ metadata, spec }) => [metadata.name, metadata.namespace, metadata.uid, spec]);
  return JSON.stringify(heads.sort());
}

test("each is refused by name, with the remedy, and nothing is changed", async () => {
  const before = await stored();
  const { volumes, refused } = await planConversion({ ...realEnv, kube }, {}, signal);
  expect(volumes.map(({ volume }) => volume)).toEqual(["pv-sound"]);
  const words = new Map(
    refused.map(({ volume, refusals }) => [
      volume,
      refusals.map(({ code, object, reason, remedy }: Refusal) => `${code}: ${object}: ${reason}; ${remedy}`),
    ]),
  );
  const expected: Readonly<Record<string, RegExp>> = {
    "pv-quota":
      /^quota: PersistentVolumeClaim quota\/data: .*exceeded quota: one.*; raise the quota by one claim/,
    "pv-webhook":
      /^admission: PersistentVolumeClaim webhook\/data: .*"portal.example.com" denied the request: claims are made by the portal; see which webhook/,
    "pv-deleting":
      /^claim-deleting: PersistentVolumeClaim deleting\/data: it is being deleted, kept by .*example.com\/kept; wait/,
    "pv-released": /^volume-released: PersistentVolume pv-released: its claim is gone; remove spec.claimRef/,
    "pv-failed":
      /^volume-failed: PersistentVolume pv-failed: its reclamation failed: .+; set its policy to Retain/,
    "pv-operator":
      /^owner-recreates-claim: PersistentVolumeClaim operator\/data: ConfigMap db owns it and may create it again at once; pause the operator/,
    "pv-shared":
      /^disk-shared: PersistentVolume pv-shared: PersistentVolume pv-other stands for the same disk; delete the one/,
    "pv-other":
      /^disk-shared: PersistentVolume pv-other: PersistentVolume pv-shared stands for the same disk/,
  };
  expect([...words.keys()].sort()).toEqual(Object.keys(expected).sort());
  for (const [volume, pattern] of Object.entries(expected)) {
    expect(words.get(volume), volume).toEqual([expect.stringMatching(pattern)]);
  }
  expect(await stored()).toBe(before);
});
