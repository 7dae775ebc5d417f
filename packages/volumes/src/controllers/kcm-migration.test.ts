/**
 * What our controllers do with the recorded inputs of `kcm-migration`, compared with what a real
 * kube-controller-manager 1.20.2 was recorded to do: exactly under `compat`, and with the differences
 * of docs/decisions/0003 in the default mode.
 */
import { resources, type StorageClass } from "@longshore/kube";
import { type Component, featureGates } from "@longshore/runtime";
import { afterEach, describe, expect, it } from "vitest";
import { volumeGates } from "../csimigration/volume-gates.ts";
import { awsEbsPlugin } from "../plugins/aws-ebs/aws-ebs-plugin.ts";
import { csiPlugin } from "../plugins/csi/csi-plugin.ts";
import { ControlPlane } from "../testing/control-plane.ts";
import { type Level, loadRecording, type RecordedEvent, type RecordedPod } from "../testing/kcm-recording.ts";
import { startAttachDetachController } from "./attach-detach/attach-detach-controller.ts";
import { startExpandController } from "./expand/expand-controller.ts";
import { startPersistentVolumeController } from "./persistent-volume/persistent-volume-controller.ts";
import { startProtectionControllers } from "./protection/protection-controllers.ts";

const recording = loadRecording("aws-ebs");
const levels = Object.keys(recording.levels);
const namespace = "m-aws-ebs";
const compat = "kubernetes-1.20" as const;

const planes: ControlPlane[] = [];
afterEach(async () => {
  for (const plane of planes.splice(0)) await plane.stop();
});

describe.each(levels)("kube-controller-manager 1.20.2, gates %s", (name) => {
  const level = recording.levels[name] as Level;

  it("attaches, reports and detaches as recorded (controllers.md A5, A7, A8)", async () => {
    const { plane } = await started(level, compat);
    for (const [pod, recorded] of Object.entries(level.attach)) {
      expect({ pod, ...(await observePod(plane, pod)) }).toEqual({ pod, ...expectedPod(recorded) });
    }
    await attachAll(plane);
    expect(await reports(plane)).toEqual(mapValues(level.volumesAttached, (node) => node.attached));
    for (const pod of Object.keys(level.attach)) {
      expect({ pod, events: await podEvents(plane, pod) }).toEqual({
        pod,
        events: (level.attach[pod]?.events ?? []).map(eventText).sort(),
      });
    }
    for (const pod of Object.keys(recording.input.pods)) await plane.delete(resources.pods, pod, namespace);
    await plane.pass(60_000);
    expect(await plane.list(resources.volumeAttachments)).toHaveLength(
      level.attachmentsLeftAfterPodsDeleted.length,
    );
    expect(await reports(plane)).toEqual(mapValues(level.volumesAttached, (node) => node.afterPodsDeleted));
  });

  it("says why it skips a volume as recorded (controllers.md A5)", async () => {
    const { plane } = await started(level, compat);
    const skipped = plane.logged
      .map(({ message }) => message)
      .filter((message) => message.startsWith("error performing CSI migration"));
    expect([...new Set(skipped)].sort()).toEqual(
      [...new Set(Object.values(level.attach).flatMap((pod) => pod.skipped))].sort(),
    );
  });

  it("keeps annotations, phases, finalizers and events of claims and volumes as recorded (controllers.md B2, B5)", async () => {
    const { plane } = await started(level, compat);
    await changeClaims(plane);
    for (const [claim, recorded] of Object.entries(level.claims)) {
      expect({ claim, ...(await observeClaim(plane, claim)) }).toEqual({ claim, ...expectedClaim(recorded) });
    }
  });

  const { restart } = level;
  if (restart === undefined) return;
  it(`changes annotations as recorded when it restarts with the gates ${restart.to} (controllers.md B2)`, async () => {
    // The recording changes no resizer annotation, which 1.20 does for a claim that still waits to grow:
    // so the claims were at rest when it was made.
    const { plane, controllers } = await started(level, compat);
    await changeClaims(plane, ["del-"]);
    const before = await annotationsOf(plane);
    for (const controller of controllers) await plane.clock.run(controller.stop());
    startControllers(plane, recording.levels[restart.to] as Level, compat);
    await plane.pass(60_000);
    const after = await annotationsOf(plane);
    const changes: Record<string, unknown> = {};
    for (const [key, annotations] of Object.entries(after)) {
      if (JSON.stringify(annotations) === JSON.stringify(before[key])) continue;
      changes[key] = { before: before[key], after: annotations };
    }
    expect(changes).toEqual(
      mapValues(restart.changes, ({ before: b, after: a }) => ({ before: sorted(b), after: sorted(a) })),
    );
  });
});

describe("the design's behaviour (docs/decisions/0003)", () => {
  it.each(levels)(
    "gates %s: differs from the recording only where the decision says so (controllers.md A5)",
    async (name) => {
      const level = recording.levels[name] as Level;
      const { plane } = await started(level, undefined);
      const different: Record<string, string> = {};
      for (const [pod, recorded] of Object.entries(level.attach)) {
        const { backend } = await observePod(plane, pod);
        if (backend !== recorded.backend) different[pod] = `${recorded.backend} → ${backend}`;
      }
      expect(different).toEqual(expectedDifferences[name]);
    },
  );

  it("emits an event for the pod in each of the error rows (controllers.md A5)", async () => {
    const base = await started(recording.levels.base as Level, undefined);
    expect(await podEvents(base.plane, "pv-this-plugin")).toEqual([
      expect.stringContaining("but its migration to ebs.csi.aws.com is not enabled in the controller"),
    ]);
    const on = await started(recording.levels.on as Level, undefined);
    expect(await podEvents(on.plane, "inline-this-plugin-no-driver")).toEqual([
      expect.stringContaining("but driver ebs.csi.aws.com is not installed"),
    ]);
  });
});

/** Row 4 of the agreement table is an error; a missing CSINode means in-tree. */
const listed = ["this-plugin", "this-and-other", "this-plugin-no-driver"];
const rowFour = Object.fromEntries(
  listed.flatMap((node) => ["pv", "inline"].map((kind) => [`${kind}-${node}`, "in-tree → none"])),
);
const expectedDifferences: Readonly<Record<string, Record<string, string>>> = {
  off: rowFour,
  "plugin-without-base": rowFour,
  base: rowFour,
  on: { "pv-no-csinode": "none → in-tree", "inline-no-csinode": "none → in-tree" },
  complete: {},
};

// Setting the scene

async function started(
  level: Level,
  mode: typeof compat | undefined,
): Promise<{ plane: ControlPlane; controllers: readonly Component[] }> {
  const plane = new ControlPlane();
  planes.push(plane);
  await plane.create(resources.namespaces, { metadata: { name: namespace } });
  await createClasses(plane);
  await createVolumes(plane);
  for (const { name, csiNode } of Object.values(recording.input.nodes)) {
    await plane.create(resources.nodes, {
      metadata: { name, annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" } },
    });
    if (csiNode !== null) await plane.create(resources.csiNodes, csiNode as never);
  }
  for (const [name, { nodeName, volume }] of Object.entries(recording.input.pods)) {
    await plane.create(resources.pods, {
      metadata: { name, namespace },
      spec: { nodeName, containers: [{ name: "c", image: "i" }], volumes: [{ name: "v", ...volume }] },
    });
  }
  const controllers = startControllers(plane, level, mode);
  await plane.pass(30_000);
  return { plane, controllers };
}

function startControllers(
  plane: ControlPlane,
  level: Level,
  mode: typeof compat | undefined,
): readonly Component[] {
  const gates = featureGates(volumeGates, level.featureGates);
  // Without a cloud provider, as recorded.
  const env = () => ({ ...plane.env, kube: plane.kube, plugins: [awsEbsPlugin(), csiPlugin()] });
  return [
    startAttachDetachController(env(), { gates, compat: mode }),
    startPersistentVolumeController(env(), { gates, compat: mode }),
    startExpandController(env(), { gates }),
    startProtectionControllers(env()),
  ].map((controller) => plane.running(controller));
}

async function createClasses(plane: ControlPlane): Promise<void> {
  const classes: readonly [string, string, StorageClass["volumeBindingMode"]][] = [
    ["sc-aws-ebs", recording.plugin, "Immediate"],
    ["sc-aws-ebs-wait", recording.plugin, "WaitForFirstConsumer"],
    ["sc-aws-ebs-csi", recording.csiDriver, "Immediate"],
  ];
  for (const [name, provisioner, volumeBindingMode] of classes) {
    await plane.create(resources.storageClasses, {
      metadata: { name },
      provisioner,
      ...(volumeBindingMode === undefined ? {} : { volumeBindingMode }),
      allowVolumeExpansion: true,
      reclaimPolicy: "Delete",
    });
  }
}

/** The recorded objects; the references between them get the new UIDs. */
async function createVolumes(plane: ControlPlane): Promise<void> {
  for (const claim of Object.values(recording.input.pvcs)) {
    await plane.create(resources.persistentVolumeClaims, claim);
  }
  for (const volume of Object.values(recording.input.pvs)) {
    const claimRef = volume.spec?.claimRef;
    const claim = await plane.get(resources.persistentVolumeClaims, claimRef?.name ?? "", namespace);
    await plane.create(resources.persistentVolumes, {
      ...volume,
      spec: { ...volume.spec, claimRef: { ...claimRef, uid: claim?.metadata.uid ?? "" } },
    });
  }
}

/** What the recording did to claims while the controllers ran. */
async function changeClaims(plane: ControlPlane, kinds = ["del-", "resize"]): Promise<void> {
  for (const name of Object.keys(recording.input.pvcs)) {
    if (!kinds.some((kind) => name.startsWith(kind))) continue;
    if (name.startsWith("del-")) await plane.delete(resources.persistentVolumeClaims, name, namespace);
    if (name.startsWith("resize")) {
      await plane.merge(
        resources.persistentVolumeClaims,
        { name, namespace },
        { spec: { resources: { requests: { storage: "8Gi" } } } },
      );
    }
  }
  await plane.pass(60_000);
}

async function attachAll(plane: ControlPlane): Promise<void> {
  for (const { metadata } of await plane.list(resources.volumeAttachments)) {
    await plane.merge(
      resources.volumeAttachments,
      { name: metadata.name },
      { status: { attached: true } },
      "status",
    );
  }
  await plane.pass(10_000);
}

// Observing

async function observePod(
  plane: ControlPlane,
  pod: string,
): Promise<{ backend: string; volumeAttachments: unknown[] }> {
  const { nodeName, volume } = recording.input.pods[pod] as { nodeName: string; volume: object };
  const attachments = (await plane.list(resources.volumeAttachments)).filter(
    ({ spec }) =>
      spec.nodeName === nodeName &&
      "persistentVolumeClaim" in volume === (spec.source.persistentVolumeName != null),
  );
  const events = await podEvents(plane, pod);
  const inTree = events.some(
    (event) => event.includes("AttachVolume.NewAttacher failed") || event.includes("no volume plugin"),
  );
  return {
    backend: attachments.length > 0 ? "csi" : inTree ? "in-tree" : "none",
    volumeAttachments: attachments.map(({ metadata, spec }) => ({ metadata: { name: metadata.name }, spec })),
  };
}

function expectedPod(recorded: RecordedPod): object {
  return { backend: recorded.backend, volumeAttachments: recorded.volumeAttachments };
}

async function podEvents(plane: ControlPlane, pod: string): Promise<readonly string[]> {
  return [...new Set(await plane.eventsOn("Pod", pod))].sort();
}

const eventText = ({ type, reason, message }: RecordedEvent) => `${type} ${reason}: ${message}`;

async function reports(plane: ControlPlane): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const [key, { name }] of Object.entries(recording.input.nodes)) {
    const node = await plane.get(resources.nodes, name);
    found[key] = (node?.status?.volumesAttached ?? []).map(({ name: volume, devicePath }) => ({
      devicePath,
      name: volume,
    }));
  }
  return found;
}

async function observeClaim(plane: ControlPlane, name: string): Promise<object> {
  const pvc = await plane.get(resources.persistentVolumeClaims, name, namespace);
  const pv = await plane.get(resources.persistentVolumes, `aws-ebs-${name}`);
  const events = [
    ...(await plane.eventsOn("PersistentVolumeClaim", name)),
    ...(await plane.eventsOn("PersistentVolume", `aws-ebs-${name}`)),
  ];
  return {
    pvc:
      pvc === undefined
        ? undefined
        : {
            annotations: sorted(pvc.metadata.annotations),
            phase: pvc.status?.phase,
            conditions: (pvc.status?.conditions ?? []).map(({ type, status }) => ({ type, status })),
          },
    pv:
      pv === undefined
        ? undefined
        : {
            annotations: sorted(pv.metadata.annotations),
            phase: pv.status?.phase,
            finalizers: pv.metadata.finalizers,
          },
    events: [...new Set(events)].sort(),
  };
}

function expectedClaim({ pv, pvc, events }: Level["claims"][string]): object {
  return {
    pvc:
      pvc === null
        ? undefined
        : { annotations: sorted(pvc.annotations), phase: pvc.phase, conditions: pvc.conditions ?? [] },
    pv:
      pv == null
        ? undefined
        : { annotations: sorted(pv.annotations), phase: pv.phase, finalizers: pv.finalizers },
    events: events.map(eventText).sort(),
  };
}

async function annotationsOf(plane: ControlPlane): Promise<Record<string, object>> {
  const found: Record<string, object> = {};
  for (const name of Object.keys(recording.levels.on?.claims ?? {})) {
    const pvc = await plane.get(resources.persistentVolumeClaims, name, namespace);
    const pv = await plane.get(resources.persistentVolumes, `aws-ebs-${name}`);
    if (pvc !== undefined) found[`pvc/${name}`] = sorted(pvc.metadata.annotations);
    if (pv !== undefined) found[`pv/${name}`] = sorted(pv.metadata.annotations);
  }
  return found;
}

function sorted(annotations: Readonly<Record<string, string>> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(annotations ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function mapValues<V, W>(object: Readonly<Record<string, V>>, change: (value: V) => W): Record<string, W> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
}
