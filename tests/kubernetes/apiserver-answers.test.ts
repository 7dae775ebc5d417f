/**
 * The same requests to our API server and to the real one, class by class: what is refused, with which causes, and what is
 * made of what is taken. `apiserver-rules.test.ts` does so with every mutation of sound objects; here are the requests
 * that no mutation of an object makes.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BothServers, startBothServers } from "./support/both-servers.ts";
import { eventually } from "./support/index.ts";
import { run } from "./support/processes.ts";

let servers: BothServers;

beforeAll(async () => {
  servers = await startBothServers();
}, 120_000);
afterAll(() => servers?.stop());

const both: BothServers["both"] = (...request) => servers.both(...request);
const expectSame: BothServers["expectSame"] = (...request) => servers.expectSame(...request);
const expectSameWords: BothServers["expectSameWords"] = (...request) => servers.expectSameWords(...request);

const inDefault = "/api/v1/namespaces/default";
const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const dry = "?dryRun=All";

describe("values of the types of the API", () => {
  test.each(["!!!", "YQ", "YQ==", "Y Q==", "YQ==\n", "YR==", "YQ=", "-_8=", ""])("base64 %j", async (a) => {
    const metadata = { name: "a" };
    await expectSame("POST", `${inDefault}/secrets${dry}`, {
      apiVersion: "v1",
      kind: "Secret",
      metadata,
      data: { a },
    });
    const configMap = { apiVersion: "v1", kind: "ConfigMap", metadata, binaryData: { a } };
    await expectSame("POST", `${inDefault}/configmaps${dry}`, configMap);
  });

  test.each([
    "2020-01-01",
    "2020-01-01T00:00:00Z",
    "2020-01-01T00:00:00+02:00",
    "2020-01-01T00:00:00.123456Z",
    "2020-01-01T00:00:00.123456-01:30",
    "2020-13-01T00:00:00Z",
    "2020-02-30T00:00:00Z",
    "2020-01-01T25:00:00.000000Z",
    "2020-01-01t00:00:00z",
    "",
  ])("time %j", async (time) => {
    const taints = [{ key: "a", effect: "NoExecute", timeAdded: time }];
    const node = { apiVersion: "v1", kind: "Node", metadata: { name: "a" }, spec: { taints } };
    const answers = await both("POST", `/api/v1/nodes${dry}`, node);
    const seen = ({ status, body }: { status: number; body?: { spec: object } }) => ({
      status,
      spec: body?.spec,
    });
    expect(seen(answers.ours as never)).toEqual(seen(answers.reference as never));
    const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "a" } };
    await expectSame("POST", leases + dry, { ...lease, spec: { renewTime: time } });
  });

  test.each([
    "1",
    "2147483648",
    "-2147483649",
    "2.0",
    "1e1",
    "2.5",
    "9007199254740993",
    "9223372036854775808",
  ])("integer %s", async (number) => {
    const pod = (spec: string) =>
      `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{${spec},"restartPolicy":"Never"}}`;
    const container = `"containers":[{"name":"a","image":"b"`;
    const path = `${inDefault}/pods${dry}`;
    const accepted = async (body: string) => {
      const answers = await both("POST", path, body);
      expect((answers.ours as { status: number }).status).toBe(
        (answers.reference as { status: number }).status,
      );
    };
    await accepted(pod(`${container}}],"priority":0,"activeDeadlineSeconds":${number}`));
    await accepted(pod(`${container},"ports":[{"containerPort":${number}}]}]`));
    await accepted(pod(`${container},"livenessProbe":{"httpGet":{"port":${number}}}}]`));
    await accepted(pod(`${container},"resources":{"limits":{"cpu":${number}}}}]`));
  });

  test("parameters of a StorageClass", async () => {
    const storageClass = { apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "a" } };
    const body = { ...storageClass, provisioner: "a", parameters: { "": "b" } };
    await expectSame("POST", `/apis/storage.k8s.io/v1/storageclasses${dry}`, body);
  });
});

const configMap = (metadata: object) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", ...metadata },
});

describe("metadata", () => {
  const owner = { apiVersion: "v1", kind: "Pod", name: "a", uid: "u" };
  test.each([
    [
      [
        { ...owner, controller: true },
        { ...owner, controller: true, uid: "v", name: "b" },
      ],
    ],
    [[owner, owner]],
    [[{ ...owner, kind: "Event" }]],
    [[{ ...owner, kind: "Event", apiVersion: "events.k8s.io/v1" }]],
    [[{ ...owner, apiVersion: "a/b/c" }]],
    [[{ ...owner, apiVersion: "" }]],
    [[{ ...owner, apiVersion: "/v1" }]],
    [[{ ...owner, apiVersion: "apps/" }]],
    [[{ ...owner, uid: "", name: "", kind: "" }]],
  ])("owners %j", async (ownerReferences) => {
    await expectSame("POST", `${inDefault}/configmaps${dry}`, configMap({ ownerReferences }));
  });

  test.each([
    [["orphan", "foregroundDeletion"]],
    [["a"]],
    [["a/b"]],
    [["a_b/c d"]],
    [["orphan"]],
    [["kubernetes"]],
    [[""]],
  ])("finalizers %j", async (finalizers) => {
    await expectSame("POST", `${inDefault}/configmaps${dry}`, configMap({ finalizers }));
    const lease = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "a", finalizers },
    };
    await expectSame("POST", leases + dry, lease);
  });
});

const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "boxes.example.com" },
  spec: {
    group: "example.com",
    names: { kind: "Box", plural: "boxes", categories: ["all", "storage"], shortNames: ["bx"] },
    scope: "Cluster",
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
  },
};

/** A sound object of each kind that has rules of its own for updates, and where it is made. */
const kinds: readonly (readonly [
  path: string,
  object: { readonly apiVersion: string; readonly kind: string },
])[] = [
  [leases, { apiVersion: "coordination.k8s.io/v1", kind: "Lease" }],
  [
    "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets",
    { apiVersion: "policy/v1beta1", kind: "PodDisruptionBudget" },
  ],
  [
    "/apis/node.k8s.io/v1/runtimeclasses",
    { apiVersion: "node.k8s.io/v1", kind: "RuntimeClass", handler: "h" } as never,
  ],
  [
    `${inDefault}/events`,
    { apiVersion: "v1", kind: "Event", involvedObject: { namespace: "default" } } as never,
  ],
  [
    "/apis/storage.k8s.io/v1/csidrivers",
    { apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", spec: {} } as never,
  ],
  [
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", value: 1 } as never,
  ],
  [
    "/apis/networking.k8s.io/v1/ingressclasses",
    { apiVersion: "networking.k8s.io/v1", kind: "IngressClass", spec: { controller: "a.b/c" } } as never,
  ],
  [
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole" },
  ],
  [`${inDefault}/endpoints`, { apiVersion: "v1", kind: "Endpoints" }],
  [`${inDefault}/limitranges`, { apiVersion: "v1", kind: "LimitRange", spec: {} } as never],
  [
    "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
    {
      apiVersion: "autoscaling/v1",
      kind: "HorizontalPodAutoscaler",
      spec: { maxReplicas: 1, scaleTargetRef: { kind: "a", name: "b" } },
    } as never,
  ],
];

type Amounts = Readonly<Record<string, string>>;

const podWith = (name: string, requests?: Amounts, limits?: Amounts, initLimits?: Amounts) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name },
  spec: {
    containers: [
      { name: "a", image: "b", resources: { ...(requests && { requests }), ...(limits && { limits }) } },
    ],
    ...(initLimits && { initContainers: [{ name: "i", image: "b", resources: { limits: initLimits } }] }),
  },
});
const claimOf = (name: string, storage: string, storageClassName?: string) => ({
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name },
  spec: {
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage } },
    ...(storageClassName && { storageClassName }),
  },
});
const namespace = (name: string) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } });

describe("limits and quotas", () => {
  test("a LimitRange fills and refuses", async () => {
    await expectSame("POST", "/api/v1/namespaces", namespace("limited"));
    const inLimited = "/api/v1/namespaces/limited";
    await expectSame("POST", `${inLimited}/limitranges`, {
      apiVersion: "v1",
      kind: "LimitRange",
      metadata: { name: "l" },
      spec: {
        limits: [
          {
            type: "Container",
            default: { cpu: "500m" },
            defaultRequest: { cpu: "100m", memory: "1Mi" },
            min: { cpu: "50m" },
            max: { cpu: "1" },
            maxLimitRequestRatio: { cpu: "10" },
          },
          { type: "Pod", max: { cpu: "1500m" } },
          { type: "PersistentVolumeClaim", min: { storage: "1Gi" }, max: { storage: "2Gi" } },
        ],
      },
    });
    for (const pod of [
      podWith("a"),
      podWith("a", undefined, { cpu: "300m" }),
      podWith("a", { cpu: "10m" }),
      podWith("a", undefined, { cpu: "2" }),
      podWith("a", { cpu: "60m" }, { cpu: "900m" }),
      podWith("a", { cpu: "600m" }),
      podWith("a", undefined, undefined, { cpu: "2" }),
    ]) {
      await expectSame("POST", `${inLimited}/pods${dry}`, pod);
      await expectSameWords("POST", `${inLimited}/pods${dry}`, pod);
    }
    for (const storage of ["500Mi", "1Gi", "3Gi"]) {
      await expectSameWords("POST", `${inLimited}/persistentvolumeclaims${dry}`, claimOf("a", storage));
    }
  });

  test("a ResourceQuota refuses, and its status counts", async () => {
    await expectSame("POST", "/api/v1/namespaces", namespace("counted"));
    const inCounted = "/api/v1/namespaces/counted";
    const hard = {
      pods: "2",
      "requests.cpu": "1",
      "limits.memory": "1Gi",
      configmaps: "3",
      "requests.storage": "5Gi",
      persistentvolumeclaims: "2",
      "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
      "services.loadbalancers": "0",
    };
    const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "q" }, spec: { hard } };
    await expectSame("POST", `${inCounted}/resourcequotas`, quota);
    // No controller runs here: the first count is the test's.
    const used = Object.fromEntries(Object.keys(hard).map((name) => [name, "0"]));
    await expectSame("PUT", `${inCounted}/resourcequotas/q/status`, { ...quota, status: { hard, used } });
    const some = { cpu: "600m" };
    const writes: readonly (readonly [string, object])[] = [
      ["pods", podWith("a")],
      ["pods", podWith("a", some)],
      ["pods", podWith("a", some, { memory: "100Mi" })],
      ["pods", podWith("b", some, { memory: "100Mi" })],
      ["pods", podWith("b", { cpu: "100m" }, { memory: "1Gi" })],
      [`pods${dry}`, podWith("b", { cpu: "100m" }, { memory: "1Mi" })],
      ["pods", podWith("b", { cpu: "100m" }, { memory: "1Mi" })],
      ["pods", podWith("c", { cpu: "1m" }, { memory: "1Mi" })],
      ["persistentvolumeclaims", claimOf("a", "4Gi")],
      ["persistentvolumeclaims", claimOf("b", "2Gi")],
      ["persistentvolumeclaims", claimOf("c", "1Gi", "gold")],
      ["persistentvolumeclaims", claimOf("d", "1Gi", "gold")],
      [
        "services",
        {
          apiVersion: "v1",
          kind: "Service",
          metadata: { name: "s" },
          spec: { type: "LoadBalancer", ports: [{ port: 1 }] },
        },
      ],
    ];
    for (const [resource, object] of writes)
      await expectSameWords("POST", `${inCounted}/${resource}`, object);
    await expectSame("GET", `${inCounted}/resourcequotas/q`);
  });
});

test("CertificateSigningRequests: asking, deciding and signing", async () => {
  const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  const made = await run("openssl", [
    ..."req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout /dev/null -subj /CN=jane".split(
      " ",
    ),
  ]);
  const request = Buffer.from(made).toString("base64");
  const object = (spec: object = {}, status?: object) => ({
    apiVersion: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    metadata: { name: "a" },
    spec: { request, signerName: "example.com/signer", usages: ["client auth"], ...spec },
    ...(status === undefined ? {} : { status }),
  });
  for (const spec of [
    { request: "aGk=" },
    { signerName: "" },
    { signerName: "signer" },
    { signerName: "example/signer" },
    { usages: [] },
    { usages: ["other"] },
  ]) {
    const { ours, reference } = (await both("POST", path + dry, object(spec))) as Record<
      string,
      { status: number }
    >;
    expect(ours?.status).toBe(reference?.status);
  }
  const approved = {
    type: "Approved",
    status: "True",
    reason: "R",
    message: "m",
    lastUpdateTime: "2020-01-01T00:00:00Z",
  };
  await expectSame("POST", path, object({ username: "x", groups: ["y"] }, { conditions: [approved] }));
  await expectSame("PUT", `${path}/a`, object({ usages: ["server auth"] }));
  await expectSame("PUT", `${path}/a/status`, object({}, { conditions: [approved] }));
  await expectSame(
    "PUT",
    `${path}/a/approval`,
    object({}, { conditions: [{ ...approved, status: "False" }] }),
  );
  const denied = { ...approved, type: "Denied" };
  await expectSame("PUT", `${path}/a/approval`, object({}, { conditions: [approved, denied] }));
  const transition = { ...approved, lastTransitionTime: "2020-01-01T00:00:00Z" };
  await expectSame("PUT", `${path}/a/approval`, object({}, { conditions: [transition] }));
  await expectSame("PUT", `${path}/a/approval`, object({}, {}));
  await expectSame("PUT", `${path}/a/status`, object({}, { certificate: "aGk=", conditions: [transition] }));
  await expectSame("GET", `${path}/a`);
  await expectSame("DELETE", `${path}/a`);
});

describe("HorizontalPodAutoscalers: what is filled in, and what of newer versions v1 carries in annotations", () => {
  const path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
  const autoscaler = (spec: object, annotations?: object, status?: object) => ({
    apiVersion: "autoscaling/v1",
    kind: "HorizontalPodAutoscaler",
    metadata: { name: "h", ...(annotations && { annotations }) },
    spec: {
      maxReplicas: 3,
      scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "d" },
      ...spec,
    },
    ...(status && { status }),
  });
  const inAnnotation = (name: string, value: unknown) => ({
    [`autoscaling.alpha.kubernetes.io/${name}`]: typeof value === "string" ? value : JSON.stringify(value),
  });
  const memory = { type: "Resource", resource: { name: "memory", targetAverageUtilization: 50 } };
  const pods = { type: "Pods", pods: { metricName: "m", targetAverageValue: "1k" } };
  const target = { kind: "A", name: "<b>" };
  const object = {
    type: "Object",
    object: { target, metricName: "m", targetValue: "1500m", selector: { matchLabels: { a: "b" } } },
  };
  const external = { type: "External", external: { metricName: "e", targetValue: "1" } };
  const rules = { policies: [{ type: "Percent", value: 5, periodSeconds: 60 }] };
  const cpu = { type: "Resource", resource: { name: "cpu" } };

  test.each([
    {},
    { minReplicas: 2 },
    { minReplicas: 0 },
    { minReplicas: -1 },
    { minReplicas: 4 },
    { maxReplicas: 0 },
    { targetCPUUtilizationPercentage: 50 },
    { targetCPUUtilizationPercentage: 0 },
    { targetCPUUtilizationPercentage: -1 },
    { targetCPUUtilizationPercentage: 150 },
    { scaleTargetRef: {} },
    { scaleTargetRef: { kind: "a/b", name: "c/d" } },
    { scaleTargetRef: { kind: "A", name: "%", apiVersion: "a/b/c" } },
  ])("spec %j", async (spec) => {
    await expectSame("POST", path + dry, autoscaler(spec));
  });

  test.each([
    inAnnotation("metrics", [memory]),
    inAnnotation("metrics", [pods]),
    inAnnotation("metrics", []),
    inAnnotation("metrics", "nonsense"),
    inAnnotation("metrics", [{ type: "Pods" }]),
    inAnnotation("behavior", {}),
    inAnnotation("behavior", { ScaleUp: { StabilizationWindowSeconds: 5 } }),
    inAnnotation("behavior", { scaleDown: { selectPolicy: "Disabled" } }),
    inAnnotation("behavior", { scaleUp: { policies: [{ type: "Pods", value: 0, periodSeconds: 1 }] } }),
    inAnnotation("behavior", "nonsense"),
    inAnnotation("metrics", [
      object,
      { ...object, object: { ...object.object, averageValue: "2" } },
      external,
      { ...external, external: { metricName: "e", targetAverageValue: "0.5" } },
      { type: "Resource", resource: { name: "cpu", targetAverageValue: "100m" } },
    ]),
    inAnnotation("metrics", [
      {},
      { type: "Other" },
      { ...pods, ...object },
      { type: "Pods", pods: {} },
      { type: "Object", object: {} },
      { type: "External", external: { targetValue: "1", targetAverageValue: "1" } },
      { type: "External", external: { metricName: "a/b" } },
      { type: "Resource", resource: {} },
      { type: "Resource", resource: { name: "cpu", targetAverageValue: "1", targetAverageUtilization: 0 } },
      { type: "Resource", resource: { name: "cpu", targetAverageValue: "-1" } },
    ]),
    inAnnotation("metrics", [cpu]),
    inAnnotation("metrics", [{ type: "Pods", pods: { metricName: 5 } }]),
    inAnnotation("metrics", {}),
    inAnnotation("behavior", { ScaleUp: rules, scaledown: { ...rules, stabilizationWindowSeconds: 10 } }),
    inAnnotation("behavior", {
      ScaleUp: { ...rules, selectPolicy: "Other", stabilizationWindowSeconds: -1 },
    }),
    inAnnotation("behavior", {
      ScaleUp: {
        stabilizationWindowSeconds: 3601,
        policies: [{ type: "Other", value: -1, periodSeconds: 1801 }, { type: "Pods" }],
      },
    }),
    inAnnotation("current-metrics", [{ ...cpu, resource: { name: "cpu", currentAverageValue: "1" } }]),
    inAnnotation("conditions", [{ type: "AbleToScale", status: "True" }]),
  ])("annotations %j", async (annotations) => {
    await expectSame("POST", path + dry, autoscaler({}, annotations));
    await expectSame("POST", path + dry, autoscaler({ targetCPUUtilizationPercentage: 50 }, annotations));
  });

  test("its status", async () => {
    await expectSame("POST", path, autoscaler({}, undefined, { currentReplicas: 1, desiredReplicas: 2 }));
    const status = { observedGeneration: 1, currentReplicas: 1, desiredReplicas: 2 };
    for (const more of [
      {},
      { currentCPUUtilizationPercentage: 10, lastScaleTime: "2020-01-01T00:00:00Z" },
      { currentReplicas: -1 },
      { desiredReplicas: -1 },
    ]) {
      await expectSame(
        "PUT",
        `${path}/h/status`,
        autoscaler({ minReplicas: 2 }, undefined, { ...status, ...more }),
      );
    }
    await expectSame("PUT", `${path}/h`, autoscaler({ minReplicas: 2 }));
    await expectSame("GET", `${path}/h`);
    await expectSame("DELETE", `${path}/h`);
  });
});

test("CertificateSigningRequests: what each subresource may write, and on which version it builds", async () => {
  const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  const made = async (args: string) => Buffer.from(await run("openssl", args.split(" "))).toString("base64");
  const key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout /dev/null -subj /CN=jane";
  const request = await made(`req -new ${key}`);
  const certificate = await made(`req -x509 ${key}`);
  const other = await made(`req -x509 ${key}`);
  const object = (status?: object, metadata: object = {}, spec: object = {}) => ({
    apiVersion: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    metadata: { name: "s", ...metadata },
    spec: { request, signerName: "example.com/signer", usages: ["client auth"], ...spec },
    ...(status === undefined ? {} : { status }),
  });
  const at = { lastUpdateTime: "2020-01-01T00:00:00Z", lastTransitionTime: "2020-01-01T00:00:00Z" };
  const condition = (type: string, more: object = {}) => ({
    type,
    status: "True",
    reason: "R",
    message: "m",
    ...at,
    ...more,
  });
  const write = async (subresource: string, body: object) => {
    await expectSame("PUT", `${path}/s${subresource}`, body);
    await expectSameWords("GET", `${path}/s`);
    await expectSame("GET", `${path}/s`);
  };
  await expectSame("POST", path, object({ certificate }));
  // Neither the object itself nor its status may decide; the approval may not sign.
  await write("", object({ certificate, conditions: [condition("Approved")] }));
  await write("/status", object({ conditions: [condition("Denied")] }));
  await write("/approval", object({ certificate }));
  await write("/status", object({}, { labels: { a: "b" } }, { usages: ["server auth"] }));
  await write(
    "/approval",
    object({}, { labels: { a: "c" }, annotations: { a: "c" } }, { usages: ["server auth"] }),
  );
  await write("", object({}, { labels: { a: "d" } }, { signerName: "example.com/other" }));
  // Conditions that are no decision are of the status; the approval writes them, too.
  await write("/status", object({ conditions: [condition("Other")] }));
  await write(
    "/approval",
    object({ conditions: [condition("Other"), condition("Else", { status: "False" })] }),
  );
  await write("/status", object({ conditions: [condition("Other", { status: "Unknown" })] }));
  await write("/status", object({ conditions: [condition("Other"), condition("Other")] }));
  await write("/status", object({ conditions: [condition("", { status: "" })] }));
  await write("/status", object({ conditions: [condition("Failed", { status: "False" })] }));
  // What is written with another version than the stored one conflicts, whatever it says.
  for (const subresource of ["", "/status", "/approval"]) {
    for (const resourceVersion of ["1", "abc", "0"]) {
      await write(subresource, object({}, { resourceVersion }));
    }
    await write(subresource, object({}, { uid: "other" }));
    await write(subresource, object({}, { name: "another" }));
  }
  await write("/approval", object({ conditions: [condition("Approved", { reason: "" })] }));
  await write("/approval", object({ conditions: [condition("Approved", { reason: "S", message: "n" })] }));
  await write("/approval", object({ conditions: [condition("Denied")] }));
  await write("/status", object({}));
  await write("/status", object({ certificate: "", conditions: [condition("Approved")] }));
  await write("/status", object({ certificate: request, conditions: [condition("Approved")] }));
  const both2 = Buffer.from(`x\n${Buffer.from(certificate, "base64")}\n${Buffer.from(request, "base64")}`);
  await write(
    "/status",
    object({ certificate: both2.toString("base64"), conditions: [condition("Approved")] }),
  );
  const garbage = Buffer.from("-----BEGIN CERTIFICATE-----\naGk=\n-----END CERTIFICATE-----\n");
  await write(
    "/status",
    object({ certificate: garbage.toString("base64"), conditions: [condition("Approved")] }),
  );
  await write("/status", object({ certificate, conditions: [condition("Approved"), condition("Failed")] }));
  await write(
    "/status",
    object({ certificate: other, conditions: [condition("Approved"), condition("Failed")] }),
  );
  await write("/status", object({ conditions: [condition("Approved"), condition("Failed")] }));
  await write("/approval", object({ conditions: [condition("Approved")] }));
  await write("/approval", object({ conditions: [] }));
  for (const subresource of ["/status", "/approval"]) {
    const patch = {
      metadata: { labels: { p: subresource.slice(1) } },
      status: { conditions: [condition("Approved"), condition("Failed"), condition("More")] },
    };
    await expectSame("PATCH", `${path}/s${subresource}`, patch, "application/merge-patch+json");
    await expectSame(
      "PATCH",
      `${path}/s${subresource}`,
      { status: { conditions: [condition("Strategic")] } },
      "application/strategic-merge-patch+json",
    );
    await expectSame("GET", `${path}/s${subresource}`);
    await expectSame("DELETE", `${path}/s${subresource}`);
    await expectSame("POST", `${path}/s${subresource}`, object({}));
  }
  await expectSame("PUT", `${path}/missing/approval`, object({}, { name: "missing" }));
  await expectSame("DELETE", `${path}/s`);
});

test("CertificateSigningRequests of users, and who decides about them", async () => {
  const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const csr = async (subject: string) => {
    const made = await run("openssl", [
      ..."req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout /dev/null -subj".split(
        " ",
      ),
      subject,
    ]);
    return Buffer.from(made).toString("base64");
  };
  const plain = await csr("/CN=jane");
  const object = (name: string, spec: object = {}, status?: object) => ({
    apiVersion: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    metadata: { name },
    spec: { request: plain, signerName: "example.com/signer", usages: ["client auth"], ...spec },
    ...(status === undefined ? {} : { status }),
  });
  const grant = async (user: string, rules: object[]) => {
    const role = {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name: user },
      rules,
    };
    await both("POST", `${rbac}/clusterroles`, role);
    await both("POST", `${rbac}/clusterrolebindings`, {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: user },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: user },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: user }],
    });
  };
  const apiGroups = ["certificates.k8s.io"];
  const onRequests = (verbs: string[], ...resources: string[]) => ({ apiGroups, resources, verbs });
  const onSigner = (verb: string, name: string) => ({
    apiGroups,
    resources: ["signers"],
    resourceNames: [name],
    verbs: [verb],
  });
  const all = onRequests(["create", "get", "update"], "certificatesigningrequests");
  const parts = onRequests(
    ["update"],
    "certificatesigningrequests/approval",
    "certificatesigningrequests/status",
  );
  await grant("asker", [all]);
  await grant("updater", [all, parts]);
  await grant("approver", [all, parts, onSigner("approve", "example.com/*")]);
  await grant("signer", [all, parts, onSigner("sign", "example.com/signer")]);
  const as = (...request: Parameters<BothServers["expectSameWordsAs"]>) =>
    servers.expectSameWordsAs(...request);
  await eventually("the real server to learn of the rights", async () => {
    const review = (user: string) => ({
      apiVersion: "authorization.k8s.io/v1",
      kind: "SubjectAccessReview",
      spec: {
        user,
        resourceAttributes: { group: apiGroups[0], resource: "certificatesigningrequests", verb: "get" },
      },
    });
    const { reference } = await both(
      "POST",
      "/apis/authorization.k8s.io/v1/subjectaccessreviews",
      review("signer"),
    );
    return (reference as { body: { status: { allowed: boolean } } }).body.status.allowed;
  });
  await as("nobody", "POST", path, object("n"));
  await as("asker", "POST", path, object("c", { username: "someone", groups: ["system:masters"] }));
  const { ours, reference } = await both("GET", `${path}/c`);
  expect(ours).toEqual(reference);
  const approved = (status = "True") => ({ conditions: [{ type: "Approved", status, reason: "R" }] });
  for (const user of ["asker", "updater", "signer", "approver"]) {
    await as(user, "PUT", `${path}/c/approval`, object("c", {}, approved()));
  }
  const made = await run("openssl", [
    ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout /dev/null -subj /CN=jane".split(
      " ",
    ),
  ]);
  const certificate = Buffer.from(made).toString("base64");
  for (const user of ["asker", "updater", "approver", "signer"]) {
    await as(user, "PUT", `${path}/c/status`, object("c", {}, { certificate, ...approved() }));
  }
  const masters = await csr("/O=system:masters/CN=jane");
  const client = "kubernetes.io/kube-apiserver-client";
  await as("asker", "POST", path, object("m", { signerName: client, request: masters }));
  await as("asker", "POST", path, object("m2", { signerName: "example.com/signer", request: masters }));
  await as(
    "asker",
    "POST",
    path,
    object("m3", { signerName: client, request: await csr("/O=devs/CN=jane") }),
  );
});

test.each([
  ["/apis/batch/v1/namespaces/default/jobs", "batch/v1", "Job"],
  ["/apis/batch/v1beta1/namespaces/default/cronjobs", "batch/v1beta1", "CronJob"],
  [`${inDefault}/replicationcontrollers`, "v1", "ReplicationController"],
  ["/apis/apps/v1/namespaces/default/deployments", "apps/v1", "Deployment"],
])("what a deletion through %s does with what is owned", async (path, apiVersion, kind) => {
  const pod = { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "a", image: "b" }] } };
  const once = { template: { ...pod, spec: { ...pod.spec, restartPolicy: "Never" } } };
  const spec = {
    Job: once,
    CronJob: { schedule: "0 0 1 1 *", jobTemplate: { spec: once } },
    ReplicationController: { template: pod },
    Deployment: { selector: { matchLabels: { a: "b" } }, template: pod },
  }[kind];
  for (const query of [
    "",
    "?propagationPolicy=Background",
    "?propagationPolicy=Foreground",
    "?orphanDependents=false",
  ]) {
    const name = `d${query.length}`;
    for (const finalizers of [undefined, ["foregroundDeletion"]]) {
      const metadata = {
        name: finalizers === undefined ? name : `${name}f`,
        ...(finalizers && { finalizers }),
      };
      await both("POST", path, { apiVersion, kind, metadata, spec });
      await both("DELETE", `${path}/${metadata.name}${query}`);
      const left = async (call: "ours" | "reference") => {
        const answers = await both("GET", `${path}/${metadata.name}`);
        const { status, body } = answers[call] as {
          status: number;
          body?: { metadata: { finalizers?: string[] } };
        };
        return { status, finalizers: body?.metadata.finalizers };
      };
      expect(await left("ours")).toEqual(await left("reference"));
    }
  }
});

describe("pods and paths", () => {
  test("bindings of a namespace, and a GET of one object that asks for a watch", async () => {
    const spec = { containers: [{ name: "a", image: "b" }] };
    const made = await both("POST", `${inDefault}/pods`, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "bound" },
      spec,
    });
    expect(made.ours).toMatchObject({ status: 201 });
    await expectSame("GET", `${inDefault}/pods/bound?watch=true&timeoutSeconds=1`);
    await expectSame("GET", `${inDefault}/pods/missing?watch=true&timeoutSeconds=1`);
    const binding = (metadata: object) => ({
      apiVersion: "v1",
      kind: "Binding",
      metadata,
      target: { kind: "Node", name: "n" },
    });
    await expectSame("POST", `${inDefault}/bindings`, binding({}));
    await expectSame("POST", `${inDefault}/bindings`, binding({ name: "missing" }));
    await expectSame("POST", `${inDefault}/bindings`, binding({ name: "bound" }));
    await expectSame("POST", `${inDefault}/bindings`, binding({ name: "bound" }));
    await expectSame("GET", `${inDefault}/bindings`);
    await expectSame("GET", `${inDefault}/bindings/bound`);
    const { ours } = await both("GET", `${inDefault}/pods/bound`);
    expect(ours).toMatchObject({ body: { spec: { nodeName: "n" } } });
    await both("DELETE", `${inDefault}/pods/bound`, { gracePeriodSeconds: 0 });
  });

  test.each(["healthz", "livez", "readyz"])(
    "/%s?verbose: every check of ours is one of theirs",
    async (name) => {
      const { ours, reference } = (await both("GET", `/${name}?verbose&exclude=etcd`)) as Record<
        "ours" | "reference",
        { status: number; body: string }
      >;
      expect(ours.status).toBe(reference.status);
      const theirLines = reference.body.split("\n");
      expect(ours.body.split("\n").filter((line) => !theirLines.includes(line))).toEqual([]);
      expect(ours.body.split("\n").length).toBeGreaterThan(3);
    },
  );

  test("the classes of the system stay", async () => {
    await expectSame("DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical");
  });
});

describe("runtime classes, host ports and resources of nodes", () => {
  const pods = `${inDefault}/pods${dry}`;
  const podOf = (spec: object, container: object = {}) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "a" },
    spec: { containers: [{ name: "a", image: "b", ...container }], ...spec },
  });
  const classes = "/apis/node.k8s.io/v1/runtimeclasses";
  const runtimeClass = (more: object) => ({
    apiVersion: "node.k8s.io/v1",
    kind: "RuntimeClass",
    metadata: { name: "r" },
    handler: "h",
    ...more,
  });

  test("a pod of a runtime class", async () => {
    const toleration = { key: "a", operator: "Exists", effect: "NoSchedule" };
    const scheduling = {
      nodeSelector: { a: "b", c: "d" },
      tolerations: [toleration, { operator: "Exists", key: "e" }],
    };
    await expectSame(
      "POST",
      classes,
      runtimeClass({ overhead: { podFixed: { cpu: "0.1", memory: "1024Ki" } }, scheduling }),
    );
    await expectSame("POST", classes, { ...runtimeClass({}), metadata: { name: "plain" } });
    for (const spec of [
      { runtimeClassName: "missing" },
      { runtimeClassName: "Not_A_Name" },
      { runtimeClassName: "plain" },
      { runtimeClassName: "r" },
      { runtimeClassName: "r", overhead: { cpu: "100m", memory: "1Mi" } },
      { runtimeClassName: "r", overhead: { cpu: "200m" } },
      { runtimeClassName: "plain", overhead: { cpu: "200m" } },
      { overhead: { cpu: "200m" } },
      { runtimeClassName: "r", nodeSelector: { a: "b", x: "y" } },
      { runtimeClassName: "r", nodeSelector: { a: "x" } },
      {
        runtimeClassName: "r",
        tolerations: [{ key: "a", operator: "Equal", value: "v", effect: "NoSchedule" }],
      },
      { runtimeClassName: "r", tolerations: [{ operator: "Exists" }] },
      { runtimeClassName: "r", tolerations: [{ key: "e", operator: "Equal", value: "f" }, toleration] },
    ]) {
      await expectSame("POST", pods, podOf(spec));
      await expectSameWords("POST", pods, podOf(spec));
    }
    for (const bad of [
      { overhead: { podFixed: { cpu: "-1" } } },
      { overhead: { podFixed: { other: "1" } } },
      { scheduling: { nodeSelector: { "a b": "c" } } },
      { scheduling: { tolerations: [toleration, toleration] } },
      { scheduling: { tolerations: [{ key: "", operator: "Equal" }] } },
    ]) {
      await expectSame("POST", classes + dry, { ...runtimeClass(bad), metadata: { name: "bad" } });
    }
  });

  test.each([{ hostNetwork: true }, { hostNetwork: false }])("ports with %j", async (spec) => {
    for (const port of [
      { containerPort: 80 },
      { containerPort: 80, hostPort: 80 },
      { containerPort: 80, hostPort: 81 },
      { hostPort: 81 },
    ]) {
      const container = { ports: [port, { containerPort: 90, protocol: "UDP" }] };
      await expectSame("POST", pods, podOf(spec, container));
      await expectSame(
        "POST",
        pods,
        podOf({ ...spec, initContainers: [{ name: "i", image: "b", ...container }] }),
      );
      const template = { metadata: { labels: { a: "b" } }, spec: podOf(spec, container).spec };
      await expectSame("POST", `/apis/apps/v1/namespaces/default/deployments${dry}`, {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: "a" },
        spec: { selector: { matchLabels: { a: "b" } }, template },
      });
    }
  });

  test.each([
    { limits: { "example.com/gpu": "1" } },
    { requests: { "example.com/gpu": "1" } },
    { requests: { "example.com/gpu": "1" }, limits: { "example.com/gpu": "2" } },
    { requests: { "example.com/gpu": "2" }, limits: { "example.com/gpu": "1" } },
    { limits: { "example.com/gpu": "1500m" } },
    { limits: { "requests.example.com/gpu": "1" } },
    { limits: { "kubernetes.io/gpu": "1" } },
    { limits: { "a/b/c": "1" } },
    { limits: { gpu: "1" } },
    { limits: { pods: "1" } },
    { limits: { storage: "1" } },
    { limits: { "hugepages-2Mi": "2Mi" } },
    { limits: { "hugepages-2Mi": "2Mi", cpu: "1" } },
    { requests: { "hugepages-2Mi": "2Mi", cpu: "1" } },
    { limits: { "hugepages-2Mi": "2Mi", cpu: "1" }, requests: { "hugepages-2Mi": "4Mi" } },
    { limits: { cpu: "1" }, requests: { cpu: "2", "ephemeral-storage": "1Gi" } },
    { limits: { cpu: "-1" } },
  ])("resources %j", async (resources) => {
    await expectSame("POST", pods, podOf({}, { resources }));
  });
});

describe("creating and replacing", () => {
  test.each(kinds)("%s", async (path, object) => {
    const named = (metadata: object) => ({ ...object, metadata });
    await expectSame("POST", path + dry, named({ name: "x", finalizers: ["a"] }));
    await expectSame("PUT", `${path}/missing${dry}`, named({ name: "missing" }));
    await expectSame("POST", path, named({ name: "there" }));
    await expectSame("POST", path, named({ name: "x", resourceVersion: "1" }));
    await expectSame("POST", path + dry, named({ name: "x", resourceVersion: "1" }));
    await expectSame("PUT", `${path}/there${dry}`, named({ name: "there" }));
    await expectSame("PUT", `${path}/there${dry}`, named({ name: "there", resourceVersion: "abc" }));
    await expectSame("PUT", `${path}/there${dry}`, named({ name: "there", resourceVersion: "1" }));
    await expectSame("DELETE", `${path}/there`);
  });

  test("a Service without the version it builds on", async () => {
    const service = {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "put" },
      spec: { ports: [{ port: 1 }] },
    };
    const path = `${inDefault}/services`;
    await both("POST", path, service);
    const { ours, reference } = await both("PUT", `${path}/put${dry}`, service);
    const seen = (answer: unknown) => {
      const { status, causes = [] } = answer as { status: number; causes?: string[] };
      // No address is assigned here, so none can be unset.
      return { status, causes: causes.filter((cause) => !cause.startsWith("spec.clusterIPs")) };
    };
    expect(seen(ours)).toEqual(seen(reference));
    await both("DELETE", `${path}/put`);
  });

  test("a definition, and what it defines", async () => {
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const { name } = definition.metadata;
    await expectSame("POST", path + dry, { ...definition, metadata: { name, finalizers: ["a"] } });
    await both("POST", path, definition);
    await expect
      .poll(
        async () => {
          const { reference } = await both("GET", "/apis/example.com/v1/boxes");
          return (reference as { status: number }).status;
        },
        { timeout: 20_000 },
      )
      .toBe(200);
    const unversioned = await both("PUT", `${path}/${name}${dry}`, definition);
    expect((unversioned.ours as { status: number }).status).toBe(
      (unversioned.reference as { status: number }).status,
    );
    const discovered = (await both("GET", "/apis/example.com/v1")) as Record<
      string,
      { body: { resources: object[] } }
    >;
    const resources = (of: string) =>
      discovered[of]?.body.resources.map((resource) => ({ ...resource, storageVersionHash: undefined }));
    expect(resources("ours")).toEqual(resources("reference"));
    const box = { apiVersion: "example.com/v1", kind: "Box", metadata: { name: "a", finalizers: ["a"] } };
    await expectSame("POST", `/apis/example.com/v1/boxes${dry}`, box);
  });
});
