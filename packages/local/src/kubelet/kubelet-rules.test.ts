import type { Node, Pod, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { nodeStatusOf, registeredNode, statusDiffers } from "./node-object.ts";
import { PodSpecError, sandboxOf } from "./pod-sandbox.ts";
import { podStatusOf, restarts } from "./pod-status.ts";

const now = new Date("2026-01-01T00:00:00Z");

function aPod(spec: object = {}, over: object = {}): Stored<Pod> {
  return {
    metadata: { name: "p", namespace: "ns", uid: "u", resourceVersion: "1" },
    spec: { containers: [{ name: "c", command: ["run"], ...spec }] },
    ...over,
  } as unknown as Stored<Pod>;
}

describe("podStatusOf", () => {
  const facts = { restarts: 0, waitingReason: "ContainerCreating", now } as const;
  const phase = (pod: Stored<Pod>, state: Parameters<typeof podStatusOf>[1]["state"]) =>
    podStatusOf(pod, { ...facts, state }).phase;

  it("says the phase", () => {
    const never = aPod({}, { spec: { restartPolicy: "Never", containers: [{ name: "c" }] } });
    expect(phase(aPod(), { kind: "absent" })).toBe("Pending");
    expect(phase(aPod(), { kind: "running" })).toBe("Running");
    expect(phase(aPod(), { kind: "ended", exitCode: 1 })).toBe("Running"); // It is started again.
    expect(phase(never, { kind: "ended", exitCode: 0 })).toBe("Succeeded");
    expect(phase(never, { kind: "ended", exitCode: 3 })).toBe("Failed");
  });
  it("keeps the times of what has not changed", () => {
    const first = podStatusOf(aPod(), { ...facts, state: { kind: "running" } });
    const later = new Date("2026-01-01T01:00:00Z");
    const second = podStatusOf(aPod({}, { status: first }), {
      ...facts,
      state: { kind: "running" },
      now: later,
    });
    expect(second).toEqual(first);
  });
  it("restarts by policy, and never a pod that is being deleted", () => {
    const withPolicy = (restartPolicy: string) => ({ spec: { restartPolicy, containers: [] } }) as Pod;
    expect([restarts(withPolicy("Always"), 0), restarts(withPolicy("OnFailure"), 0)]).toEqual([true, false]);
    expect([restarts(withPolicy("OnFailure"), 1), restarts(withPolicy("Never"), 1)]).toEqual([true, false]);
    expect(restarts({ metadata: { deletionTimestamp: "x" }, spec: { containers: [] } }, 1)).toBe(false);
  });
});

describe("sandboxOf", () => {
  const mounted = new Map([["data", { path: "/n/v", readOnly: false }]]);
  it("joins command, environment and mounts", () => {
    const pod = aPod({
      args: ["$(LONGSHORE_MOUNT_DATA)"],
      env: [
        { name: "A", value: "1" },
        { name: "NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
      ],
      volumeMounts: [{ name: "data", mountPath: "/data", readOnly: true }],
    });
    expect(sandboxOf(pod, mounted, "/logs")).toEqual({
      podUID: "u",
      namespace: "ns",
      podName: "p",
      containerName: "c",
      argv: ["run", "$(LONGSHORE_MOUNT_DATA)"],
      env: { A: "1", NAME: "p" },
      mounts: [{ volumeName: "data", hostPath: "/n/v", mountPath: "/data", readOnly: true }],
      logFile: "/logs/ns_p_u/c.log",
    });
  });
  it("gives devices in place of files", () => {
    const pod = aPod({ volumeDevices: [{ name: "data", devicePath: "/dev/xvda" }] });
    const device = { volumeName: "data", hostPath: "/n/v", mountPath: "/dev/xvda", readOnly: false };
    expect(sandboxOf(pod, mounted, "/logs").mounts).toEqual([{ ...device, isDevice: true }]);
  });
  for (const [what, spec] of [
    ["a device path that climbs out", { volumeDevices: [{ name: "data", devicePath: "/dev/../etc/x" }] }],
    ["a volume that is not mapped", { volumeDevices: [{ name: "other", devicePath: "/dev/x" }] }],
    ["a mount path that climbs out", { volumeMounts: [{ name: "data", mountPath: "/data/../etc" }] }],
    ["a relative mount path", { volumeMounts: [{ name: "data", mountPath: "data" }] }],
    ["a sub-path", { volumeMounts: [{ name: "data", mountPath: "/data", subPath: "x" }] }],
    ["a volume that is not mounted", { volumeMounts: [{ name: "other", mountPath: "/data" }] }],
    ["a container without a command", { command: [] }],
  ] as const) {
    it(`refuses ${what}, naming the field`, () => {
      expect(() => sandboxOf(aPod(spec), mounted, "/logs")).toThrow(PodSpecError);
      expect(() => sandboxOf(aPod(spec), mounted, "/logs")).toThrow(/spec\.containers\[0\]\./);
    });
  }
});

describe("the Node object", () => {
  const identity = {
    nodeName: "n",
    instanceId: "i-1",
    zone: "a",
    region: "r",
    featureGates: "CSIMigration=true",
    volumeLimits: { "attachable-volumes-aws-ebs": 39 },
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
    const status = nodeStatusOf(identity, registered, facts);
    const posted = { ...registered, status } as unknown as Stored<Node>;
    const later = new Date("2026-01-01T00:01:00Z");
    expect(statusDiffers(posted, nodeStatusOf(identity, posted, { ...facts, now: later }))).toBe(false);
    expect(statusDiffers(posted, nodeStatusOf(identity, posted, { ...facts, volumesInUse: [] }))).toBe(true);
    expect(statusDiffers(posted, nodeStatusOf(identity, posted, { ...facts, error: "x" }))).toBe(true);
  });
});
