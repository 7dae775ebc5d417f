import type { Node, Pod, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { containerConfigOf } from "./container-config.ts";
import { environmentFrom } from "./container-environment.ts";
import { conditionsDiffer, nodeStatusOf, registeredNode, volumesInUseDiffer } from "./node-object.ts";
import { PodSpecError } from "./pod-spec-error.ts";
import { podStatusOf } from "./pod-status.ts";

const now = new Date("2026-01-01T00:00:00Z");

function aPod(spec: object = {}, over: object = {}): Stored<Pod> {
  return {
    metadata: { name: "p", namespace: "ns", uid: "u", resourceVersion: "1" },
    spec: { containers: [{ name: "c", command: ["run"], ...spec }] },
    ...over,
  } as unknown as Stored<Pod>;
}

describe("podStatusOf", () => {
  it("keeps the times of what has not changed", () => {
    const running = {
      kind: "running",
      attempt: 0,
      quickRestarts: 0,
      startedAt: "2025-12-31T23:00:00Z",
    } as const;
    const facts = { containers: new Map([["c", running]]), verdicts: new Map(), now };
    const first = podStatusOf(aPod(), facts);
    const later = new Date("2026-01-01T01:00:00Z");
    expect(podStatusOf(aPod({}, { status: first }), { ...facts, now: later })).toEqual(first);
  });
  it("keeps the conditions of others", () => {
    const others = { type: "example.com/ready", status: "True" };
    const pod = aPod({}, { status: { conditions: [others] } });
    const facts = { containers: new Map(), verdicts: new Map(), now };
    expect(podStatusOf(pod, facts).conditions).toContain(others);
  });
});

describe("containerConfigOf", () => {
  const mounted = new Map([["data", { path: "/n/v", readOnly: false, volumeName: "pv" }]]);
  const configOf = (pod: Stored<Pod>) => {
    const container = pod.spec?.containers[0];
    if (container === undefined) throw new Error("no container");
    const run = { container, attempt: 2, quickRestarts: 1 };
    const nodeUser = { uid: 0, gid: 0, mayChange: true };
    return containerConfigOf(pod, run, { env: { A: "1" }, mounted, logDir: "/logs", nodeUser });
  };
  it("joins command, environment and mounts", () => {
    const pod = aPod({
      args: ["$(LONGSHORE_MOUNT_DATA)"],
      workingDir: "/w",
      volumeMounts: [{ name: "data", mountPath: "/data", readOnly: true }],
    });
    expect(configOf(pod)).toEqual({
      podUID: "u",
      namespace: "ns",
      podName: "p",
      containerName: "c",
      attempt: 2,
      quickRestarts: 1,
      argv: ["run", "$(LONGSHORE_MOUNT_DATA)"],
      env: { A: "1" },
      workingDir: "/w",
      mounts: [{ volumeName: "data", hostPath: "/n/v", mountPath: "/data", readOnly: true }],
      logFile: "/logs/ns_p_u/c_2.log",
    });
  });
  it.each([
    [{}, undefined],
    [{ stdinOnce: true }, undefined],
    [{ stdin: true }, "kept"],
    [{ stdin: true, stdinOnce: true }, "once"],
  ])("the standard input of %j", (container, stdin) => {
    expect(configOf(aPod(container)).stdin).toBe(stdin);
  });
  it.each([
    ["File", undefined],
    ["FallbackToLogsOnError", true],
  ])("the message of its end with the policy %s", (terminationMessagePolicy, isFromLog) => {
    expect(configOf(aPod({ terminationMessagePolicy })).isMessageFromLog).toBe(isFromLog);
  });
  it("asks for the user and for less rights than root has", () => {
    const securityContext = { runAsUser: 7, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false };
    const less = { user: { uid: 7, groups: [] }, readOnlyRoot: true, noNewPrivileges: true };
    expect(configOf(aPod({ securityContext }))).toMatchObject(less);
    expect(configOf(aPod({ securityContext: { readOnlyRootFilesystem: false } }))).not.toHaveProperty(
      "readOnlyRoot",
    );
  });
  it("leaves one that mounts for the node where the node's mounts are", () => {
    const mount = { name: "data", mountPath: "/data", mountPropagation: "Bidirectional" };
    expect(configOf(aPod({ volumeMounts: [mount] })).mountsOnNode).toBe(true);
    const inward = { ...mount, mountPropagation: "HostToContainer" };
    expect(configOf(aPod({ volumeMounts: [inward] }))).not.toHaveProperty("mountsOnNode");
  });
  it("gives devices in place of files", () => {
    const pod = aPod({ volumeDevices: [{ name: "data", devicePath: "/dev/xvda" }] });
    const device = { volumeName: "data", hostPath: "/n/v", mountPath: "/dev/xvda", readOnly: false };
    expect(configOf(pod).mounts).toEqual([{ ...device, isDevice: true }]);
  });
  it.each<[mount: object, subPath: string | undefined]>([
    [{ subPath: "a/b" }, "a/b"],
    [{ subPath: "" }, undefined],
    [{ subPath: "./" }, undefined],
    [{ subPathExpr: "of/$(A)/$$(A)" }, "of/1/$(A)"],
    [{}, undefined],
  ])("the part of a volume that %j means", (mount, subPath) => {
    const pod = aPod({ volumeMounts: [{ name: "data", mountPath: "/data", ...mount }] });
    expect(configOf(pod).mounts[0]?.subPath).toBe(subPath);
  });
  for (const [what, spec] of [
    ["a device path that climbs out", { volumeDevices: [{ name: "data", devicePath: "/dev/../etc/x" }] }],
    ["a volume that is not mapped", { volumeDevices: [{ name: "other", devicePath: "/dev/x" }] }],
    ["a mount path that climbs out", { volumeMounts: [{ name: "data", mountPath: "/data/../etc" }] }],
    ["a relative mount path", { volumeMounts: [{ name: "data", mountPath: "data" }] }],
    ["a sub-path that climbs out", { volumeMounts: [{ name: "data", mountPath: "/d", subPath: "x/../.." }] }],
    ["an absolute sub-path", { volumeMounts: [{ name: "data", mountPath: "/d", subPath: "/x" }] }],
    [
      "a sub-path with a variable that the container does not have",
      { volumeMounts: [{ name: "data", mountPath: "/d", subPathExpr: "$(NO)/x" }] },
    ],
    ["a volume that is not mounted", { volumeMounts: [{ name: "other", mountPath: "/data" }] }],
    ["root where that is not to be", { securityContext: { runAsNonRoot: true } }],
    ["a container without a command", { command: [] }],
    ["a working directory that climbs out", { workingDir: "/a/.." }],
    ["a relative path of the last message", { terminationMessagePath: "dev/log" }],
  ] as const) {
    it(`refuses ${what}, naming the field`, () => {
      expect(() => configOf(aPod(spec))).toThrow(PodSpecError);
      expect(() => configOf(aPod(spec))).toThrow(/spec\.containers\[0\]\./);
    });
  }
});

describe("environmentFrom", () => {
  const sources = {
    configMaps: new Map([["settings", { data: { mode: "fast", size: "9" } }]]),
    secrets: new Map([["login", { data: { password: Buffer.from("s3").toString("base64") } }]]),
    node: { metadata: { name: "n" }, status: { allocatable: { cpu: "2", memory: "4Gi" } } },
  };
  const envOf = (container: object) => {
    const pod = aPod(container, {
      metadata: { name: "p", uid: "u", namespace: "ns", labels: { tier: "db" } },
      spec: {
        containers: [
          { name: "c", ...container },
          { name: "d", resources: { limits: { cpu: "1500m" } } },
        ],
      },
    });
    return environmentFrom(pod, { name: "c", ...container }, sources);
  };
  const from = (valueFrom: object) => ({ env: [{ name: "X", valueFrom }] });
  it.each([
    ["a value", { env: [{ name: "X", value: "1" }] }, { X: "1" }],
    [
      "one with an earlier one in it",
      {
        env: [
          { name: "A", value: "1" },
          { name: "X", value: "$(A)-$(NONE)" },
        ],
      },
      { A: "1", X: "1-$(NONE)" },
    ],
    ["a field", from({ fieldRef: { fieldPath: "metadata.name" } }), { X: "p" }],
    ["a label", from({ fieldRef: { fieldPath: "metadata.labels['tier']" } }), { X: "db" }],
    ["a key of a ConfigMap", from({ configMapKeyRef: { name: "settings", key: "mode" } }), { X: "fast" }],
    ["a key of a Secret", from({ secretKeyRef: { name: "login", key: "password" } }), { X: "s3" }],
    ["an optional key", from({ secretKeyRef: { name: "login", key: "pin", optional: true } }), {}],
    [
      "a whole ConfigMap, which later ones take precedence over",
      {
        envFrom: [{ prefix: "P_", configMapRef: { name: "settings" } }],
        env: [{ name: "P_size", value: "1" }],
      },
      { P_mode: "fast", P_size: "1" },
    ],
    [
      "a limit, in units of the divisor",
      {
        ...from({ resourceFieldRef: { resource: "limits.memory", divisor: "1Mi" } }),
        resources: { limits: { memory: "64Mi" } },
      },
      { X: "64" },
    ],
    ["a limit that is not set", from({ resourceFieldRef: { resource: "limits.cpu" } }), { X: "2" }],
    ["a request that is not set", from({ resourceFieldRef: { resource: "requests.memory" } }), { X: "0" }],
    [
      "a limit of another container, rounded up",
      from({ resourceFieldRef: { containerName: "d", resource: "limits.cpu" } }),
      { X: "2" },
    ],
    ["a whole Secret", { envFrom: [{ secretRef: { name: "login" } }] }, { password: "s3" }],
    ["an optional object", { envFrom: [{ secretRef: { name: "none", optional: true } }] }, {}],
  ])("%s", (_name, container, expected) => expect(envOf(container)).toEqual(expected));
  it.each([
    [from({ configMapKeyRef: { name: "settings", key: "none" } }), 'key "none" of ConfigMap "settings"'],
    [from({ secretKeyRef: { name: "none", key: "k" } }), 'key "k" of Secret "none"'],
    [{ envFrom: [{ configMapRef: { name: "none" } }] }, 'ConfigMap "none"'],
    [from({ fieldRef: { fieldPath: "spec.none" } }), 'field "spec.none"'],
    [
      from({ resourceFieldRef: { resource: "limits.none" } }),
      'container "c": downwardAPI: "limits.none" is no',
    ],
    [from({ resourceFieldRef: { containerName: "e", resource: "limits.cpu" } }), 'no container "e"'],
  ])("names what is missing: %j", (container, text) => expect(() => envOf(container)).toThrow(text));
});

describe("the Node object", () => {
  const identity = {
    nodeName: "n",
    instanceId: "i-1",
    zone: "a",
    region: "r",
    featureGates: "CSIMigration=true",
    volumeLimitsOf: (type: string) => ({ "attachable-volumes-aws-ebs": type === "t3.small" ? 25 : 39 }),
  };
  const registered = { ...registeredNode(identity, undefined), status: {} } as Stored<Node>;
  const facts = { error: undefined, conditions: [], volumesInUse: ["a"], now };

  it("keeps what others have put there", () => {
    const current = {
      metadata: { name: "n", labels: { mine: "1" }, annotations: { yours: "2" } },
      spec: { unschedulable: true },
    } as unknown as Stored<Node>;
    const node = registeredNode(identity, current);
    expect(node.metadata?.labels).toMatchObject({ mine: "1", "topology.kubernetes.io/zone": "a" });
    expect(node.metadata?.annotations).toMatchObject({ yours: "2" });
    expect(node.spec).toMatchObject({ unschedulable: true, providerID: "aws:///a/i-1" });
  });
  it("is not ready while the volume side has an error", () => {
    const status = nodeStatusOf(identity, registered, { ...facts, error: "CSINode is not yet initialized" });
    expect(status.conditions).toMatchObject([
      { type: "Ready", status: "False", message: "CSINode is not yet initialized" },
    ]);
  });
  it("leaves volumesInUse alone until it is known", () => {
    expect(nodeStatusOf(identity, registered, { ...facts, volumesInUse: undefined })).not.toHaveProperty(
      "volumesInUse",
    );
  });
  it("is posted when something has changed, not for the time alone", () => {
    const labels = { ...registered.metadata.labels, "node.kubernetes.io/instance-type": "t3.small" };
    const small = { ...registered, metadata: { ...registered.metadata, labels } };
    expect(nodeStatusOf(identity, small, facts).allocatable).toMatchObject({
      "attachable-volumes-aws-ebs": "25",
    });
    const status = nodeStatusOf(identity, registered, facts);
    const posted = { ...registered, status } as unknown as Stored<Node>;
    const later = new Date("2026-01-01T00:01:00Z");
    expect(conditionsDiffer(posted, nodeStatusOf(identity, posted, { ...facts, now: later }))).toBe(false);
    expect(volumesInUseDiffer(posted, [])).toBe(true);
    expect(volumesInUseDiffer(posted, facts.volumesInUse)).toBe(false);
    expect(conditionsDiffer(posted, nodeStatusOf(identity, posted, { ...facts, error: "x" }))).toBe(true);
  });
});
