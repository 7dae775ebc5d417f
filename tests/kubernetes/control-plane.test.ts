/**
 * The control plane that the other tests here stand on: it is the version whose controllers carry the in-tree
 * code, it keeps to RBAC, and it survives the first write of a custom resource.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ControlPlane, eventually, startControlPlane } from "./support/index.ts";

let kubernetes: ControlPlane;
beforeAll(async () => {
  kubernetes = await startControlPlane({
    controllerManager: true,
    users: [{ name: "system:serviceaccount:default:stranger" }],
  });
});
afterAll(async () => {
  await kubernetes?.stop();
});

test("reports itself as 1.20 and lists its namespaces", async () => {
  const version = await kubernetes.call("GET", "/version");
  expect(version.body).toMatchObject({ major: "1", minor: expect.stringMatching(/^20/) });
  const namespaces = await kubernetes.call("GET", "/api/v1/namespaces");
  expect(namespaces.body.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual(
    expect.arrayContaining(["default", "kube-system"]),
  );
});

test("keeps to RBAC", async () => {
  const token = kubernetes.tokens["system:serviceaccount:default:stranger"] as string;
  const refused = await kubernetes.call("GET", "/api/v1/persistentvolumes", undefined, { token });
  expect(refused).toMatchObject({ status: 403, body: { reason: "Forbidden" } });
});

test("takes custom resources", async () => {
  const group = "test.longshore.dev";
  const created = await kubernetes.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `ships.${group}` },
    spec: {
      group,
      scope: "Cluster",
      names: { plural: "ships", singular: "ship", kind: "Ship" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
        },
      ],
    },
  });
  expect(created.status).toBe(201);
  const ship = { apiVersion: `${group}/v1`, kind: "Ship", metadata: { name: "one" }, cargo: { tons: 3 } };
  const stored = await eventually("the custom resource is served", async () => {
    const answer = await kubernetes.call("POST", `/apis/${group}/v1/ships`, ship);
    return answer.status === 404 ? undefined : answer;
  });
  expect(stored).toMatchObject({ status: 201, body: { cargo: { tons: 3 } } });
  const patched = await kubernetes.call(
    "PATCH",
    `/apis/${group}/v1/ships/one`,
    { cargo: { tons: 4 } },
    { contentType: "application/merge-patch+json" },
  );
  expect(patched).toMatchObject({ status: 200, body: { cargo: { tons: 4 } } });
});

test("the controller manager binds a claim to its volume", async () => {
  const pv = {
    metadata: { name: "disk" },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      awsElasticBlockStore: { volumeID: "vol-1" },
      persistentVolumeReclaimPolicy: "Retain",
    },
  };
  const claim = {
    metadata: { name: "data" },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "",
      volumeName: "disk",
      resources: { requests: { storage: "1Gi" } },
    },
  };
  expect((await kubernetes.call("POST", "/api/v1/persistentvolumes", pv)).status).toBe(201);
  expect(
    (await kubernetes.call("POST", "/api/v1/namespaces/default/persistentvolumeclaims", claim)).status,
  ).toBe(201);
  await eventually("the claim is bound", async () => {
    const { body } = await kubernetes.call("GET", "/api/v1/namespaces/default/persistentvolumeclaims/data");
    return body.status.phase === "Bound";
  });
});

test("a killed API server comes back with its objects, the controller manager with other gates", async () => {
  const name = "/api/v1/namespaces/default/configmaps/kept";
  const map = { metadata: { name: "kept" }, data: { answer: "42" } };
  expect((await kubernetes.call("POST", "/api/v1/namespaces/default/configmaps", map)).status).toBe(201);
  await kubernetes.restartApiServer();
  expect(await kubernetes.call("GET", name)).toMatchObject({ status: 200, body: { data: map.data } });

  await kubernetes.startControllerManager({
    controllers: ["persistentvolume-binder", "pvc-protection"],
    featureGates: { CSIMigration: true, CSIMigrationAWS: true },
  });
  const claims = "/api/v1/namespaces/default/persistentvolumeclaims";
  const storageClass = { metadata: { name: "ebs" }, provisioner: "kubernetes.io/aws-ebs" };
  const claim = {
    metadata: { name: "dynamic" },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "ebs",
      resources: { requests: { storage: "1Gi" } },
    },
  };
  await kubernetes.call("POST", "/apis/storage.k8s.io/v1/storageclasses", storageClass);
  expect((await kubernetes.call("POST", claims, claim)).status).toBe(201);
  // Only with the gate on does the claim name the CSI driver as its provisioner.
  const provisioner = await eventually("the claim has a provisioner", async () => {
    const { body } = await kubernetes.call("GET", `${claims}/dynamic`);
    return body.metadata.annotations?.["volume.beta.kubernetes.io/storage-provisioner"] as string | undefined;
  });
  expect(provisioner).toBe("ebs.csi.aws.com");
});
