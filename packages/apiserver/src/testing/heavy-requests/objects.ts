/** Objects, and other bodies and selectors, of the greatest length that a request may have. */
import { corePath, creating, type HeavyRequest, many, members } from "./heavy-request.ts";

const core = (kind: string, name: string, rest: object) => ({
  apiVersion: "v1",
  kind,
  metadata: { name },
  ...rest,
});
const pod = (name: string, container: object, spec: object = {}) =>
  core("Pod", name, { spec: { containers: [{ name: "main", image: "x", ...container }], ...spec } });
const pods = corePath("pods");
const configMaps = corePath("configmaps");

const creates: readonly HeavyRequest[] = [
  creating("config map of 100,000 keys", configMaps, () =>
    core("ConfigMap", "keys", { data: members(100_000, (i) => [`k${i}`, "v"]) }),
  ),
  creating("config map with 100,000 invalid keys", configMaps, () =>
    core("ConfigMap", "bad-keys", { data: members(100_000, (i) => [`%${i}`, "v"]) }),
  ),
  creating("100,000 invalid labels", configMaps, () => ({
    ...core("ConfigMap", "labels", {}),
    metadata: { name: "labels", labels: members(100_000, (i) => [`%${i}`, "%"]) },
  })),
  creating("25,000 owners", configMaps, () => ({
    ...core("ConfigMap", "owners", {}),
    metadata: {
      name: "owners",
      ownerReferences: many(25_000, (i) => ({
        apiVersion: "v1",
        kind: "ConfigMap",
        name: `o${i}`,
        uid: `u${i}`,
      })),
    },
  })),
  creating("80,000 finalizers, the same", configMaps, () => ({
    ...core("ConfigMap", "finalizers", {}),
    metadata: { name: "finalizers", finalizers: many(80_000, () => "a.b/c") },
  })),
  creating("pod with 30,000 ports", pods, () =>
    pod("ports", { ports: many(30_000, (i) => ({ name: `p${i}`, containerPort: i + 1, hostPort: i + 1 })) }),
  ),
  creating("pod with 60,000 environment variables", pods, () =>
    pod("env", { env: many(60_000, (i) => ({ name: `E${i}`, value: "v" })) }),
  ),
  creating("pod with 20,000 volumes and mounts", pods, () =>
    pod(
      "volumes",
      { volumeMounts: many(20_000, (i) => ({ name: `v${i}`, mountPath: `/m/${i}` })) },
      { volumes: many(20_000, (i) => ({ name: `v${i}`, emptyDir: {} })) },
    ),
  ),
  creating("pod with 20,000 volumes of one name", pods, () =>
    pod("one-volume", {}, { volumes: many(20_000, () => ({ name: "v", emptyDir: {} })) }),
  ),
  creating("pod with 20,000 containers", pods, () =>
    core("Pod", "containers", { spec: { containers: many(20_000, (i) => ({ name: `c${i}`, image: "x" })) } }),
  ),
  creating("pod with 20,000 tolerations", pods, () =>
    pod("tolerations", {}, { tolerations: many(20_000, (i) => ({ key: `k${i}`, operator: "Exists" })) }),
  ),
  creating("pod with 50,000 host aliases", pods, () =>
    pod("aliases", {}, { hostAliases: many(50_000, () => ({ ip: "10.0.0.1", hostnames: ["a"] })) }),
  ),
  creating("pod with 20,000 topology constraints", pods, () =>
    pod(
      "spread",
      {},
      {
        topologySpreadConstraints: many(20_000, (i) => ({
          maxSkew: 1,
          topologyKey: `k${i}`,
          whenUnsatisfiable: "DoNotSchedule",
        })),
      },
    ),
  ),
  creating("service with 30,000 ports", corePath("services"), () =>
    core("Service", "ports", {
      spec: { ports: many(30_000, (i) => ({ name: `p${i}`, port: i + 1, protocol: "TCP" })) },
    }),
  ),
  creating("endpoints with 60,000 addresses and 10,000 ports", corePath("endpoints"), () =>
    core("Endpoints", "addresses", {
      subsets: [
        {
          addresses: many(60_000, (i) => ({ ip: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}` })),
          ports: many(10_000, (i) => ({ name: `p${i}`, port: i + 1 })),
        },
      ],
    }),
  ),
  creating("node with 30,000 taints", "/api/v1/nodes", () =>
    core("Node", "taints", {
      spec: { taints: many(30_000, (i) => ({ key: `k${i}`, effect: "NoSchedule" })) },
    }),
  ),
  creating(
    "deployment with 50,000 selector requirements",
    "/apis/apps/v1/namespaces/default/deployments",
    () => ({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "selector" },
      spec: {
        selector: { matchExpressions: many(50_000, (i) => ({ key: `k${i}`, operator: "Exists" })) },
        template: {
          metadata: { labels: members(1, () => ["a", "b"]) },
          spec: { containers: [{ name: "main", image: "x" }] },
        },
      },
    }),
  ),
  creating(
    "stateful set with 10,000 claim templates",
    "/apis/apps/v1/namespaces/default/statefulsets",
    () => ({
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { name: "templates" },
      spec: {
        serviceName: "x",
        selector: { matchLabels: { a: "b" } },
        template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "main", image: "x" }] } },
        volumeClaimTemplates: many(10_000, (i) => ({
          metadata: { name: `c${i}` },
          spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
        })),
      },
    }),
  ),
  creating("CSINode with 30,000 drivers", "/apis/storage.k8s.io/v1/csinodes", () => ({
    apiVersion: "storage.k8s.io/v1",
    kind: "CSINode",
    metadata: { name: "drivers" },
    spec: {
      drivers: many(30_000, (i) => ({ name: `d${i}.x`, nodeID: "n", topologyKeys: ["a", "b"] })),
    },
  })),
  creating("storage class with 30,000 topologies", "/apis/storage.k8s.io/v1/storageclasses", () => ({
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name: "topologies" },
    provisioner: "x.y",
    allowedTopologies: many(30_000, (i) => ({ matchLabelExpressions: [{ key: "a", values: [`v${i}`] }] })),
  })),
  creating("volume with 30,000 terms of affinity", "/api/v1/persistentvolumes", () =>
    core("PersistentVolume", "affinity", {
      spec: {
        capacity: { storage: "1Gi" },
        accessModes: ["ReadWriteOnce"],
        csi: { driver: "x.y", volumeHandle: "v" },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: many(30_000, (i) => ({
              matchExpressions: [{ key: "a", operator: "In", values: [`v${i}`] }],
            })),
          },
        },
      },
    }),
  ),
  creating("access review with 100,000 groups", "/apis/authorization.k8s.io/v1/subjectaccessreviews", () => ({
    apiVersion: "authorization.k8s.io/v1",
    kind: "SubjectAccessReview",
    spec: {
      user: "u",
      groups: many(100_000, (i) => `group-${i}`),
      resourceAttributes: { verb: "get", resource: "pods" },
    },
  })),
  creating("role with 30,000 rules", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", () => ({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "Role",
    metadata: { name: "rules" },
    rules: many(30_000, (i) => ({ apiGroups: [""], resources: [`r${i}`], verbs: ["get"] })),
  })),
  creating("a quantity of 2 million digits", corePath("limitranges"), () =>
    core("LimitRange", "quantity", {
      spec: { limits: [{ type: "Container", max: { cpu: "1".repeat(2_000_000) } }] },
    }),
  ),
  creating("token review of 3 MB", "/apis/authentication.k8s.io/v1/tokenreviews", () => ({
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenReview",
    spec: { token: "a.b.".repeat(700_000) },
  })),
];

const manager = (index: number, fields: object) => ({
  manager: `m${index}`,
  operation: "Apply",
  apiVersion: "v1",
  fieldsType: "FieldsV1",
  fieldsV1: fields,
});
const managed = (name: string, keys: number) =>
  core("ConfigMap", name, { data: members(keys, (i) => [`k${i}`, "v"]) });

/** An update that names thousands of managers. */
const managing = (name: string, object: string, fields: (index: number) => object): HeavyRequest => ({
  name,
  async prepare(send) {
    await send("POST", configMaps, managed(object, 10_000));
  },
  async run(send) {
    const managedFields = many(8_000, (i) => manager(i, fields(i)));
    const body = { ...managed(object, 10_000), metadata: { name: object, managedFields } };
    return (await send("PUT", corePath("configmaps", object), body)).status;
  },
});

const updates: readonly HeavyRequest[] = [
  managing("8,000 managers of one field each", "managers", (i) => ({ "f:data": { [`f:k${i}`]: {} } })),
  managing("8,000 managers of all 10,000 fields each", "managers-of-all", () => ({ "f:data": {} })),
];

const rbac = "rbac.authorization.k8s.io";
const role = {
  apiVersion: `${rbac}/v1`,
  kind: "ClusterRole",
  metadata: { name: "wide" },
  rules: [
    { apiGroups: many(10_000, (i) => `g${i}`), resources: many(10_000, (i) => `r${i}`), verbs: ["get"] },
  ],
};
const binding = {
  apiVersion: `${rbac}/v1`,
  kind: "ClusterRoleBinding",
  metadata: { name: "wide" },
  roleRef: { apiGroup: rbac, kind: "ClusterRole", name: "wide" },
  subjects: [{ apiGroup: rbac, kind: "User", name: "wide" }],
};

/** A question about a user whose one rule is of 100 million pairs of a group and a resource. */
const review: HeavyRequest = {
  name: "access review of a rule of 10,000 groups and resources",
  async prepare(send) {
    await send("POST", `/apis/${rbac}/v1/clusterroles`, role);
    await send("POST", `/apis/${rbac}/v1/clusterrolebindings`, binding);
  },
  async run(send) {
    const spec = { user: "wide", resourceAttributes: { verb: "get", resource: "pods" } };
    const body = { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", spec };
    return (await send("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)).status;
  },
};

const bytesMax = 3 * 1024 * 1024 - 1024;
const yaml = "application/yaml";
/** Objects of 3 MB in the forms that a server reads. */
const texts: readonly HeavyRequest[] = [
  creating(
    "JSON nested a million levels deep",
    configMaps,
    () => `${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}`,
    "application/json",
  ),
  creating(
    "JSON with a member a million levels deep",
    configMaps,
    () => {
      const levels = 400_000;
      return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"deep"},"data":${'{"a":'.repeat(levels)}1${"}".repeat(levels)}}`;
    },
    "application/json",
  ),
  creating(
    "JSON of 1.5 million numbers",
    configMaps,
    () => `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"},"x":[${"1,".repeat(1_500_000)}1]}`,
    "application/json",
  ),
  creating(
    "JSON with one member 200,000 times",
    configMaps,
    () =>
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"same"},"data":{${'"aaaa":"b",'.repeat(200_000)}"a":"b"}}`,
    "application/json",
  ),
  creating(
    "YAML with aliases of aliases",
    configMaps,
    () => {
      const levels = many(12, (i) => `l${i + 1}: &l${i + 1} [${many(10, () => `*l${i}`).join(",")}]`);
      return `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\nl0: &l0 [a]\n${levels.join("\n")}\n`;
    },
    yaml,
  ),
  creating(
    "YAML of 3 MB in lines",
    configMaps,
    () => {
      const lines = many(150_000, (i) => `  k${i}: "v${i}"`).join("\n");
      return `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lines}\ndata:\n${lines}`.slice(0, bytesMax);
    },
    yaml,
  ),
  creating(
    "YAML nested 100,000 levels deep",
    configMaps,
    () => `a: ${"[".repeat(100_000)}${"]".repeat(100_000)}`,
    yaml,
  ),
  creating(
    "YAML of 1.5 million numbers in one line",
    configMaps,
    () => `a: [${"1,".repeat(1_500_000)}1]`,
    yaml,
  ),
  creating(
    "YAML with merge keys of 100 aliases",
    configMaps,
    () => {
      const base = `a: &a {${many(20_000, (i) => `k${i}: v`).join(", ")}}\n`;
      return `${base}b:\n${many(2_000, () => "- {<<: *a}").join("\n")}\n`;
    },
    yaml,
  ),
  creating(
    "YAML with a text of 3 MB in quotes",
    configMaps,
    () => `a: "${"\\u0041 \n ".repeat(300_000)}"`,
    yaml,
  ),
  creating("YAML with 3 MB of dashes", configMaps, () => "- ".repeat(1_500_000), yaml),
  creating("YAML with 1.5 million documents", configMaps, () => "---\n".repeat(700_000), yaml),
  creating("YAML with 3 MB of spaces", configMaps, () => `a:${" ".repeat(bytesMax - 10)}b`, yaml),
  creating(
    "protobuf of 1.5 million empty finalizers",
    configMaps,
    () => protobufConfigMap(1_500_000),
    "application/vnd.kubernetes.protobuf",
  ),
];

/** A ConfigMap in protobuf whose metadata has so many empty finalizers. */
function protobufConfigMap(count: number): Buffer {
  const field = (number: number, bytes: Uint8Array) =>
    Buffer.concat([Buffer.from([(number << 3) | 2]), varint(bytes.length), bytes]);
  const varint = (value: number) => {
    const bytes: number[] = [];
    for (let left = value; ; left = Math.floor(left / 128)) {
      if (left < 128) return Buffer.from([...bytes, left]);
      bytes.push((left % 128) | 128);
    }
  };
  const empty = Buffer.alloc(count * 2);
  for (let i = 0; i < count; i++) empty[i * 2] = (14 << 3) | 2;
  const raw = field(1, Buffer.concat([field(1, Buffer.from("protobuf")), empty]));
  const type = Buffer.concat([field(1, Buffer.from("v1")), field(2, Buffer.from("ConfigMap"))]);
  return Buffer.concat([Buffer.from("k8s\0"), field(1, type), field(2, raw)]);
}

const reading = (name: string, path: string): HeavyRequest => ({
  name,
  prepare: () => Promise.resolve(),
  run: async (send) => (await send("GET", path)).status,
});

/** Reads with long selectors. */
const reads: readonly HeavyRequest[] = [
  reading(
    "list with a selector of 2,400 requirements",
    `${configMaps}?labelSelector=${many(2_400, (i) => `a${i}`).join(",")}`,
  ),
  reading(
    "list with a selector of 2,400 values",
    `${configMaps}?labelSelector=a%20in%20(${many(2_400, (i) => `v${i}`).join(",")})`,
  ),
  reading(
    "list with a field selector of 800 requirements",
    `${configMaps}?fieldSelector=${many(800, () => "metadata.name!=a").join(",")}`,
  ),
  reading("a path of 7,000 steps", `/api/v1${"/a".repeat(7_000)}`),
  reading("a query of 2,400 parameters", `${configMaps}?${many(2_400, (i) => `a${i}`).join("&")}`),
];

/** Heavy requests with large bodies and selectors. */
export const heavyObjects: readonly HeavyRequest[] = [...creates, ...updates, review, ...texts, ...reads];
