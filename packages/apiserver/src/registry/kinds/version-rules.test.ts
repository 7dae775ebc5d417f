/** Rules that differ between the emulated versions, asked of a whole server. */
import { KubeApiError, type KubeObject, type Resource, resources } from "@longshore/kube";
import { noMeter, type RuntimeEnv, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { type ApiRequest, adminUser } from "../../api/api-request.ts";
import { type ApiServerOptions, createApiServer } from "../../api-server.ts";
import { memoryStore } from "../../storage/object-store.ts";

const { signal } = new AbortController();

function aServer(options: Partial<ApiServerOptions> = {}) {
  const clock = new VirtualClock();
  const env: RuntimeEnv = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const server = createApiServer(env, { store: memoryStore(), controllers: false, ...options });
  const kube = server.client();
  return {
    clock,
    kube,
    create: <T extends KubeObject>(resource: Resource<T>, object: object) =>
      kube.create(resource, object as T, { signal }) as Promise<T & Record<string, never>>,
    handle: (request: Partial<ApiRequest>) =>
      server.registry.handle({
        verb: "get",
        group: "",
        version: "v1",
        resource: "pods",
        query: {},
        user: adminUser,
        ...request,
      }),
  };
}

/** The causes of the failure, as `field: message`. */
async function causesOf(attempt: Promise<unknown> | (() => unknown)): Promise<readonly string[]> {
  try {
    await (typeof attempt === "function" ? attempt() : attempt);
  } catch (error) {
    if (!(error instanceof KubeApiError)) throw error;
    return (error.status.details?.causes ?? []).map(({ field, message }) => `${field}: ${message}`);
  }
  return [];
}

const claim = (name: string, spec: object = {}) => ({
  metadata: { name, namespace: "default" },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "2Gi" } }, ...spec },
});

describe("a claim", () => {
  const boundClaim = async (server: ReturnType<typeof aServer>) => {
    await server.create(resources.storageClasses, {
      metadata: { name: "fast" },
      provisioner: "p",
      allowVolumeExpansion: true,
    });
    const made = await server.create(
      resources.persistentVolumeClaims,
      claim("c", { storageClassName: "fast" }),
    );
    const status = { phase: "Bound", capacity: { storage: "1Gi" } };
    return server.kube.updateStatus(resources.persistentVolumeClaims, { ...made, status } as never, {
      signal,
    });
  };

  it.each([
    [
      "1.20",
      "1500Mi",
      ["spec.resources.requests.storage: Forbidden: field can not be less than previous value"],
    ],
    ["1.36", "1500Mi", []],
    [
      "1.36",
      "1Gi",
      ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"],
    ],
    ["1.36", "4Gi", []],
  ])("of %s may ask for %s instead of 2Gi where it has 1Gi", async (emulatedVersion, storage, problems) => {
    const server = aServer({ emulatedVersion });
    const bound = await boundClaim(server);
    const spec = { ...(bound as never as { spec: object }).spec, resources: { requests: { storage } } };
    const attempt = server.kube.update(resources.persistentVolumeClaims, { ...bound, spec } as never, {
      signal,
    });
    expect(await causesOf(attempt)).toEqual(problems);
  });

  it.each([
    [
      "1.20",
      [
        'spec.accessModes: Unsupported value: "ReadWriteOncePod": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"',
      ],
    ],
    ["1.36", []],
  ])("of %s knows ReadWriteOncePod or not", async (emulatedVersion, problems) => {
    const { create } = aServer({ emulatedVersion });
    const attempt = create(
      resources.persistentVolumeClaims,
      claim("c", { accessModes: ["ReadWriteOncePod"] }),
    );
    expect(await causesOf(attempt)).toEqual(problems);
  });

  it("gets the newest of several default classes, and in 1.20 is refused", async () => {
    for (const emulatedVersion of ["1.20", "1.36"]) {
      const { create, clock } = aServer({ emulatedVersion });
      const annotations = { "storageclass.kubernetes.io/is-default-class": "true" };
      for (const name of ["old", "new"]) {
        await create(resources.storageClasses, { metadata: { name, annotations }, provisioner: "p" });
        clock.advance(5000);
      }
      const attempt = create(resources.persistentVolumeClaims, claim("c"));
      if (emulatedVersion === "1.20")
        await expect(attempt).rejects.toThrow(/2 default StorageClasses were found/);
      else expect((await attempt) as never).toMatchObject({ spec: { storageClassName: "new" } });
    }
  });

  it("says its source twice from the time on that any source may be named", async () => {
    const dataSource = { kind: "PersistentVolumeClaim", name: "other" };
    const [old, young] = await Promise.all(
      ["1.20", "1.36"].map((emulatedVersion) =>
        aServer({ emulatedVersion }).create(resources.persistentVolumeClaims, claim("c", { dataSource })),
      ),
    );
    expect(old).not.toHaveProperty("spec.dataSourceRef");
    expect(young).toHaveProperty("spec.dataSourceRef", dataSource);
  });
});

describe("an attachment of an inline volume", () => {
  const attachment = {
    metadata: { name: "va" },
    spec: {
      attacher: "csi.example.com",
      nodeName: "n",
      source: {
        inlineVolumeSpec: {
          accessModes: ["ReadWriteOnce"],
          csi: { driver: "csi.example.com", volumeHandle: "h" },
        },
      },
    },
  };

  it("keeps it while the migration to CSI is on", async () => {
    const made = await aServer({ emulatedVersion: "1.20" }).create(resources.volumeAttachments, attachment);
    expect(made).toHaveProperty("spec.source.inlineVolumeSpec");
  });

  it("loses it before it is looked at when CSIMigration=false", async () => {
    const server = aServer({ emulatedVersion: "1.20", featureGates: "CSIMigration=false" });
    expect(await causesOf(server.create(resources.volumeAttachments, attachment))).toEqual([
      "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName",
    ]);
  });
});

describe("a CSIDriver", () => {
  const driver = { metadata: { name: "csi.example.com" }, spec: { podInfoOnMount: false } };
  it.each([
    ["1.20", ["spec: field is immutable"]],
    ["1.25", ["spec.podInfoOnMount: field is immutable"]],
    ["1.36", []],
  ])("of %s lets what it says of pods be changed or not", async (emulatedVersion, problems) => {
    const { create, kube } = aServer({ emulatedVersion });
    const made = (await create(resources.csiDrivers, driver)) as never as { spec: object };
    const next = { ...made, spec: { ...made.spec, podInfoOnMount: true } };
    const causes = await causesOf(kube.update(resources.csiDrivers, next as never, { signal }));
    expect(causes.map((text) => text.replace(/Invalid value: .*: /, ""))).toEqual(problems);
  });
});

describe("a pod", () => {
  const pod = (name: string, spec: object = {}) => ({
    metadata: { name, namespace: "default" },
    spec: { containers: [{ name: "c", image: "i" }], ...spec },
  });

  it("gets the priority of its class", async () => {
    const { create } = aServer();
    const made = await create(resources.pods, pod("p", { priorityClassName: "system-node-critical" }));
    expect(made).toMatchObject({
      spec: { priority: 2_000_001_000, preemptionPolicy: "PreemptLowerPriority" },
    });
    await expect(create(resources.pods, pod("q", { priorityClassName: "none" }))).rejects.toThrow(
      'pods "q" is forbidden: no PriorityClass with name none was found',
    );
    await expect(create(resources.pods, pod("q", { priority: 5 }))).rejects.toThrow(
      /must not be provided in pod spec; priority admission controller computed 0/,
    );
  });

  it("is resized in what it asks for, and in nothing else", async () => {
    const { create, handle } = aServer();
    const container = { name: "c", image: "i", resources: { requests: { cpu: "1" } } };
    const made = await create(resources.pods, pod("p", { containers: [container] }));
    const resized = (image: string, cpu: string) => ({
      ...(made as object),
      spec: { containers: [{ name: "c", image, resources: { requests: { cpu } } }] },
    });
    const target = { verb: "update", name: "p", namespace: "default", subresource: "resize" } as const;
    const answer = handle({ ...target, body: resized("other", "2") }) as { object: unknown };
    expect(answer.object).toMatchObject({
      spec: { containers: [{ image: "i", resources: { requests: { cpu: "2" } } }] },
    });
  });

  it("gains ephemeral containers and never loses one", async () => {
    const { create, handle } = aServer();
    const made = (await create(resources.pods, pod("p"))) as never as { spec: object };
    const target = {
      verb: "update",
      name: "p",
      namespace: "default",
      subresource: "ephemeralcontainers",
    } as const;
    const debug = { name: "debug", image: "busybox" };
    const one = handle({
      ...target,
      body: { ...made, spec: { ...made.spec, ephemeralContainers: [debug] } },
    });
    expect(one).toMatchObject({
      object: { spec: { ephemeralContainers: [debug], containers: [{ name: "c" }] } },
    });
    const { metadata } = (one as { object: KubeObject }).object;
    expect(await causesOf(() => handle({ ...target, body: { ...made, metadata } }))).toEqual([
      expect.stringContaining('existing ephemeral containers "debug" may not be removed'),
    ]);
  });
});

describe("events", () => {
  it("are the same in both groups, each in its own words", async () => {
    const { handle } = aServer();
    const at = { group: "events.k8s.io", version: "v1", resource: "events", namespace: "default" };
    const body = {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name: "e", namespace: "default" },
      eventTime: "2021-01-01T00:00:00.000000Z",
      reportingController: "example.com/c",
      reportingInstance: "i",
      action: "Acted",
      reason: "Because",
      type: "Normal",
      note: "n",
      regarding: { kind: "Pod", namespace: "default", name: "p" },
    };
    expect(handle({ verb: "create", ...at, body })).toMatchObject({
      object: { note: "n", regarding: { name: "p" } },
    });
    expect(handle({ ...at, group: "", name: "e" })).toMatchObject({
      object: {
        apiVersion: "v1",
        message: "n",
        involvedObject: { name: "p" },
        reportingComponent: "example.com/c",
      },
    });
    const selected = handle({ verb: "list", ...at, query: { fieldSelector: "regarding.name=p" } });
    expect(selected).toMatchObject({ items: [{ apiVersion: "events.k8s.io/v1", note: "n" }] });
    const patch = { verb: "patch", ...at, name: "e", patchType: "merge", body: { note: "m" } } as const;
    expect(handle(patch)).toMatchObject({ object: { note: "m" } });
  });
});

it("a generated name that is taken is given up for another, from 1.32 on", async () => {
  const { create } = aServer();
  const made = await Promise.all(
    Array.from({ length: 50 }, () =>
      create(resources.configMaps, { metadata: { generateName: "x-", namespace: "default" } }),
    ),
  );
  expect(new Set(made.map((object) => (object as KubeObject).metadata?.name)).size).toBe(50);
});

describe("an update that the server takes back, but for the time of its manager", () => {
  const path = { group: "certificates.k8s.io", resource: "certificatesigningrequests" };
  const request = Buffer.from(
    "-----BEGIN CERTIFICATE REQUEST-----\nMIHQMHcCAQAwFTETMBEGA1UEAxMKdGVzdC11c2VyMTBZMBMGByqGSM49AgEGCCqG\nSM49AwEHA0IABA==\n-----END CERTIFICATE REQUEST-----\n",
  ).toString("base64");
  const body = (usages: readonly string[]) => ({
    metadata: { name: "a" },
    spec: { request, signerName: "example.com/signer", usages },
  });
  it.each([
    ["1.23", true],
    ["1.24", false],
  ])("in %s makes a new version: %s", async (emulatedVersion, isNew) => {
    const server = aServer({ emulatedVersion });
    const put = (usages: readonly string[]) => {
      const given = { ...path, name: "a", verb: "update" as const, body: body(usages) };
      const answer = server.handle({ ...given, query: { fieldManager: "m" } });
      return (answer as { object: KubeObject }).object.metadata?.resourceVersion;
    };
    server.handle({ ...path, verb: "create", body: body(["client auth"]), query: { fieldManager: "m" } });
    const before = put(["client auth"]);
    await server.clock.advance(5000);
    expect(put(["client auth"])).toBe(before);
    expect(put(["server auth"]) !== before).toBe(isNew);
  });
});

describe("a HorizontalPodAutoscaler of v2", () => {
  const at = { group: "autoscaling", namespace: "default", resource: "horizontalpodautoscalers" };
  const fast = { type: "Percent", value: 100, periodSeconds: 15 };
  const made = (spec: object, version = "v2") => {
    const server = aServer({ emulatedVersion: "1.30" });
    const scaleTargetRef = { kind: "Deployment", name: "d" };
    const body = { metadata: { name: "h" }, spec: { maxReplicas: 3, scaleTargetRef, ...spec } };
    server.handle({ ...at, version, verb: "create", body });
    const read = (as: string) => {
      const { object } = server.handle({ ...at, version: as, name: "h" }) as { object: KubeObject };
      const { annotations } = object.metadata ?? {};
      return { ...(object as KubeObject & { spec: Record<string, unknown> }).spec, annotations };
    };
    return { v2: read("v2"), v1: read("v1") };
  };

  it("gets one replica and 80 % of the CPU, and no behavior of its own", () => {
    const { v2, v1 } = made({});
    const target = { type: "Utilization", averageUtilization: 80 };
    expect(v2).toMatchObject({
      minReplicas: 1,
      metrics: [{ type: "Resource", resource: { name: "cpu", target } }],
    });
    expect(v2).not.toHaveProperty("behavior");
    expect(v1).toMatchObject({ minReplicas: 1, targetCPUUtilizationPercentage: 80, annotations: undefined });
  });

  it("gets the rest of a behavior that is given in part", () => {
    const { v2, v1 } = made({ behavior: { scaleUp: { stabilizationWindowSeconds: 5 } } });
    const policies = [{ type: "Pods", value: 4, periodSeconds: 15 }, fast];
    expect(v2).toMatchObject({
      behavior: {
        scaleUp: { stabilizationWindowSeconds: 5, selectPolicy: "Max", policies },
        scaleDown: { selectPolicy: "Max", policies: [fast] },
      },
    });
    expect(JSON.parse(v1.annotations?.["autoscaling.alpha.kubernetes.io/behavior"] ?? "")).toMatchObject({
      ScaleUp: { StabilizationWindowSeconds: 5 },
      ScaleDown: { StabilizationWindowSeconds: null, SelectPolicy: "Max" },
    });
    const none = made({ behavior: {} }).v2;
    expect(none).toMatchObject({ behavior: { scaleUp: { policies, stabilizationWindowSeconds: 0 } } });
  });

  it("refuses what v1 has no word for, too", async () => {
    const metrics = [{ type: "Pods", resource: { name: "cpu", target: { type: "Value" } } }];
    expect(await causesOf(() => made({ metrics, minReplicas: 0 }))).toEqual([
      "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
      "spec.metrics[0].pods: Required value: must populate information for the given metric source",
      "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization",
      "spec.metrics[0].resource: Forbidden: must populate the given metric source only",
      "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas",
    ]);
  });
});
