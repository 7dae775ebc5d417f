/** The ephemeral-volume controller against the embedded API server, under the virtual clock. */
import { resources } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { afterEach, describe, expect, it } from "vitest";
import { aPod, ControlPlane } from "../../testing/control-plane.ts";
import { startProtectionControllers } from "../protection/protection-controllers.ts";
import { decideEphemeralStep, type EphemeralObservation } from "./decide-ephemeral-step.ts";
import { startEphemeralVolumeController } from "./ephemeral-volume-controller.ts";

const planes: ControlPlane[] = [];
afterEach(async () => {
  for (const plane of planes.splice(0)) await plane.stop();
});

const template = {
  metadata: { labels: { app: "cache" }, annotations: { note: "scratch" } },
  spec: {
    accessModes: ["ReadWriteOnce"],
    storageClassName: "gp2",
    resources: { requests: { storage: "1Gi" } },
  },
};
const ephemeral = { ephemeral: { volumeClaimTemplate: template } };

function started(): ControlPlane {
  const plane = new ControlPlane();
  planes.push(plane);
  plane.running(startEphemeralVolumeController({ ...plane.env, kube: plane.kube }));
  plane.running(startProtectionControllers({ ...plane.env, kube: plane.kube }));
  return plane;
}

/** A pod without a node, which keeps no claim from being deleted. */
function unscheduledPod() {
  const { nodeName: _, ...spec } = aPod("p", "n1", ephemeral).spec ?? {};
  return { ...aPod("p", "n1", ephemeral), spec } as ReturnType<typeof aPod>;
}

describe("generic ephemeral volumes", () => {
  it("a pod's claim is made from its template, and is owned by the pod (controllers.md Part D)", async () => {
    const plane = started();
    const pod = await plane.create(resources.pods, aPod("p", "n1", ephemeral));
    await plane.pass(1_000);
    const claim = await plane.get(resources.persistentVolumeClaims, "p-v", "default");
    expect(claim?.spec).toMatchObject(template.spec);
    expect(claim?.metadata).toMatchObject(template.metadata);
    expect(claim?.metadata.ownerReferences).toEqual([
      {
        apiVersion: "v1",
        kind: "Pod",
        name: "p",
        uid: pod.metadata.uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ]);
  });

  it("a pod that is there before the controller gets its claim, too (controllers.md Part D)", async () => {
    const plane = new ControlPlane();
    planes.push(plane);
    await plane.create(resources.pods, aPod("p", "n1", ephemeral));
    plane.running(startEphemeralVolumeController({ ...plane.env, kube: plane.kube }));
    await plane.pass(1_000);
    expect(await plane.get(resources.persistentVolumeClaims, "p-v", "default")).toBeDefined();
  });

  it("a claim that the pod does not own is reported once and never used, until it goes (controllers.md Part D)", async () => {
    const plane = started();
    await plane.create(resources.persistentVolumeClaims, {
      metadata: { name: "p-v", namespace: "default" },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "5Gi" } } },
    });
    await plane.create(resources.pods, unscheduledPod());
    await plane.pass(600_000);
    expect(await plane.eventsOn("Pod", "p")).toEqual([
      'Warning FailedBinding: ephemeral volume v: PVC "p-v" was not created for pod "p" (pod is not the owner): delete the claim, or rename the pod or the volume',
    ]);
    const foreign = await plane.get(resources.persistentVolumeClaims, "p-v", "default");
    expect(foreign?.metadata.ownerReferences).toBeUndefined();

    await plane.delete(resources.persistentVolumeClaims, "p-v", "default");
    await plane.pass(1_000);
    const own = await plane.get(resources.persistentVolumeClaims, "p-v", "default");
    expect(own?.metadata.ownerReferences?.[0]?.name).toBe("p");
  });

  it("a claim that is deleted while its pod lives is made again (controllers.md Part D)", async () => {
    const plane = started();
    await plane.create(resources.pods, unscheduledPod());
    await plane.pass(1_000);
    const first = await plane.get(resources.persistentVolumeClaims, "p-v", "default");
    await plane.delete(resources.persistentVolumeClaims, "p-v", "default");
    await plane.pass(1_000);
    const second = await plane.get(resources.persistentVolumeClaims, "p-v", "default");
    expect(second).toBeDefined();
    expect(second?.metadata.uid).not.toBe(first?.metadata.uid);
  });
});

describe("the decision", () => {
  const decide = pureDecision(decideEphemeralStep);
  const pod = (metadata: object = {}, status: object = {}) =>
    ({
      ...aPod("p", "n1", ephemeral),
      metadata: { name: "p", namespace: "default", uid: "pod-1", resourceVersion: "1", ...metadata },
      status,
    }) as EphemeralObservation["pod"];
  const ownedBy = (uid: string, controller = true) =>
    new Map([
      [
        "p-v",
        {
          metadata: {
            name: "p-v",
            namespace: "default",
            uid: "claim-1",
            resourceVersion: "1",
            ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "p", uid, controller }],
          },
        },
      ],
    ]);
  it.each([
    ["a pod without its claim", { pod: pod(), claims: new Map() }, "createClaim"],
    ["a pod with its claim", { pod: pod(), claims: ownedBy("pod-1") }, "settle"],
    ["the claim of an earlier pod of that name", { pod: pod(), claims: ownedBy("pod-0") }, "report"],
    ["an owner that does not control", { pod: pod(), claims: ownedBy("pod-1", false) }, "report"],
    ["what was reported", { pod: pod(), claims: ownedBy("pod-0"), reported: ["v"] }, "settle"],
    [
      "a pod being deleted",
      { pod: pod({ deletionTimestamp: "2026-01-01T00:00:00Z" }), claims: new Map() },
      "settle",
    ],
    [
      "a pod without such a volume",
      { pod: { ...pod(), spec: aPod("p", "n1", { emptyDir: {} }).spec ?? {} } as never, claims: new Map() },
      "settle",
    ],
    ["a pod that has ended", { pod: pod({}, { phase: "Failed" }), claims: new Map() }, "settle"],
  ])("%s", (_name, observed, step) => {
    expect(decide(observed).step).toBe(step);
  });
});
