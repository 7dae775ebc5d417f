/**
 * What our controllers do with the recorded inputs of `kcm-migration`, compared with what a real
 * kube-controller-manager 1.20.2 was recorded to do: exactly under `compat`, and with the differences
 * of docs/decisions/0003 in the default mode.
 */
import { resources, type StorageClass, type VolumeAttachment } from "@longshore/kube";
import { type Component, featureGates } from "@longshore/runtime";
import { afterEach, describe, expect, it } from "vitest";
import { volumeGates } from "../csimigration/volume-gates.ts";
import { csiPlugin } from "../plugins/csi/csi-plugin.ts";
import { inTreePlugins } from "../plugins/in-tree-plugins.ts";
import { ControlPlane } from "../testing/control-plane.ts";
import {
  type Level,
  loadRecording,
  type RecordedEvent,
  type RecordedPod,
  type Recording,
} from "../testing/kcm-recording.ts";
import { startAttachDetachController } from "./attach-detach/attach-detach-controller.ts";
import { startExpandController } from "./expand/expand-controller.ts";
import { startPersistentVolumeController } from "./persistent-volume/persistent-volume-controller.ts";
import { startProtectionControllers } from "./protection/protection-controllers.ts";

const recordings = ["aws-ebs", "azure-disk", "vsphere"] as const;
type Recorded = (typeof recordings)[number];
const recordingOf = Object.fromEntries(recordings.map((name) => [name, loadRecording(name)])) as Record<
  Recorded,
  Recording
>;
const awsEbs = recordingOf["aws-ebs"];
const levels = Object.keys(awsEbs.levels);
const compat = "kubernetes-1.20" as const;

const planes: ControlPlane[] = [];
afterEach(async () => {
  for (const plane of planes.splice(0)) await plane.stop();
});

const cases = recordings.flatMap((plugin) => levels.map((name) => ({ plugin, name })));
describe.each(cases)("kube-controller-manager 1.20.2, $plugin, gates $name", ({ plugin, name }) => {
  const recording = recordingOf[plugin];
  const level = recording.levels[name] as Level;

  it("attaches, reports and detaches as recorded (controllers.md A5, A7, A8)", async () => {
    const scene = await started(plugin, level, compat);
    const { plane } = scene;
    for (const [pod, recorded] of Object.entries(level.attach)) {
      expect({ pod, ...(await observePod(scene, pod)) }).toEqual({ pod, ...expectedPod(recorded, plugin) });
    }
    await attachAll(plane);
    expect(await reports(scene)).toEqual(mapValues(level.volumesAttached, (node) => node.attached));
    for (const pod of Object.keys(level.attach)) {
      expect({ pod, events: await podEvents(plane, pod) }).toEqual({
        pod,
        events: (level.attach[pod]?.events ?? []).map((event) => podEventText(event, plugin)).sort(),
      });
    }
    for (const pod of Object.keys(recording.input.pods)) {
      await plane.delete(resources.pods, pod, namespaceOf(plugin));
    }
    await plane.pass(60_000);
    expect(await plane.list(resources.volumeAttachments)).toHaveLength(
      level.attachmentsLeftAfterPodsDeleted.length,
    );
    expect(await reports(scene)).toEqual(mapValues(level.volumesAttached, (node) => node.afterPodsDeleted));
  });

  it("says why it skips a volume as recorded (controllers.md A5)", async () => {
    const { plane } = await started(plugin, level, compat);
    const skipped = plane.logged
      .map(({ message }) => message)
      .filter((message) => message.startsWith("error performing CSI migration"));
    expect([...new Set(skipped)].sort()).toEqual(
      [...new Set(Object.values(level.attach).flatMap((pod) => pod.skipped))].sort(),
    );
  });

  it("keeps annotations, phases, finalizers and events of claims and volumes as recorded (controllers.md B2, B5)", async () => {
    const scene = await started(plugin, level, compat);
    await changeClaims(scene);
    for (const [claim, recorded] of Object.entries(level.claims)) {
      expect({ claim, ...(await observeClaim(scene, claim)) }).toEqual({ claim, ...expectedClaim(recorded) });
    }
  });

  const { restart } = level;
  if (restart === undefined) return;
  it(`changes annotations as recorded when it restarts with the gates ${restart.to} (controllers.md B2)`, async () => {
    // The recording changes no resizer annotation, which 1.20 does for a claim that still waits to grow:
    // so the claims were at rest when it was made.
    const scene = await started(plugin, level, compat);
    const { plane, controllers } = scene;
    await changeClaims(scene, ["del-"]);
    const before = await annotationsOf(scene);
    for (const controller of controllers) await plane.clock.run(controller.stop());
    startControllers(plane, recording.levels[restart.to] as Level, compat);
    await plane.pass(60_000);
    const after = await annotationsOf(scene);
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
      const level = awsEbs.levels[name] as Level;
      const scene = await started("aws-ebs", level, undefined);
      const different: Record<string, string> = {};
      for (const [pod, recorded] of Object.entries(level.attach)) {
        const { backend } = await observePod(scene, pod);
        if (backend !== recorded.backend) different[pod] = `${recorded.backend} → ${backend}`;
      }
      expect(different).toEqual(expectedDifferences[name]);
    },
  );

  it("emits an event for the pod in each of the error rows (controllers.md A5)", async () => {
    const base = await started("aws-ebs", awsEbs.levels.base as Level, undefined);
    expect(await podEvents(base.plane, "pv-this-plugin")).toEqual([
      expect.stringContaining("but its migration to ebs.csi.aws.com is not enabled in the controller"),
    ]);
    const on = await started("aws-ebs", awsEbs.levels.on as Level, undefined);
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

/** The recorded objects, and our controllers at work on them. */
interface Scene {
  readonly plugin: Recorded;
  readonly recording: Recording;
  readonly plane: ControlPlane;
  readonly controllers: readonly Component[];
}

const namespaceOf = (plugin: Recorded) => `m-${plugin}`;

async function started(plugin: Recorded, level: Level, mode: typeof compat | undefined): Promise<Scene> {
  const recording = recordingOf[plugin];
  const namespace = namespaceOf(plugin);
  const plane = new ControlPlane();
  planes.push(plane);
  await plane.create(resources.namespaces, { metadata: { name: namespace } });
  await createClasses(plane, plugin);
  await createVolumes(plane, plugin);
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
  return { plugin, recording, plane, controllers };
}

function startControllers(
  plane: ControlPlane,
  level: Level,
  mode: typeof compat | undefined,
): readonly Component[] {
  const gates = featureGates(volumeGates, level.featureGates);
  // Without a cloud provider, as recorded.
  const env = () => ({ ...plane.env, kube: plane.kube, plugins: [...inTreePlugins(), csiPlugin()] });
  return [
    startAttachDetachController(env(), { gates, compat: mode }),
    startPersistentVolumeController(env(), { gates, compat: mode }),
    startExpandController(env(), { gates }),
    startProtectionControllers(env()),
  ].map((controller) => plane.running(controller));
}

async function createClasses(plane: ControlPlane, plugin: Recorded): Promise<void> {
  const recording = recordingOf[plugin];
  const classes: readonly [string, string, StorageClass["volumeBindingMode"]][] = [
    [`sc-${plugin}`, recording.plugin, "Immediate"],
    [`sc-${plugin}-wait`, recording.plugin, "WaitForFirstConsumer"],
    [`sc-${plugin}-csi`, recording.csiDriver, "Immediate"],
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
async function createVolumes(plane: ControlPlane, plugin: Recorded): Promise<void> {
  const { input } = recordingOf[plugin];
  for (const claim of Object.values(input.pvcs)) {
    await plane.create(resources.persistentVolumeClaims, claim);
  }
  for (const volume of Object.values(input.pvs)) {
    const claimRef = volume.spec?.claimRef;
    const claim = await plane.get(
      resources.persistentVolumeClaims,
      claimRef?.name ?? "",
      namespaceOf(plugin),
    );
    await plane.create(resources.persistentVolumes, {
      ...volume,
      spec: { ...volume.spec, claimRef: { ...claimRef, uid: claim?.metadata.uid ?? "" } },
    });
  }
}

/** What the recording did to claims while the controllers ran. */
async function changeClaims({ plugin, recording, plane }: Scene, kinds = ["del-", "resize"]): Promise<void> {
  const namespace = namespaceOf(plugin);
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
  { recording, plane }: Scene,
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

function expectedPod({ backend, volumeAttachments }: RecordedPod, plugin: Recorded): object {
  const translated = volumeAttachments.map((attachment) => asTranslatedNow(attachment, plugin));
  return { backend, volumeAttachments: translated };
}

/**
 * Our translation of an azureDisk that a pod names is that of the newer library: other keys of the attributes, and named by
 * the disk's URI (docs/behaviour/volume-plugins.md 8.3). All else of it is as recorded.
 */
function asTranslatedNow(attachment: VolumeAttachment, plugin: Recorded): VolumeAttachment {
  const inline = attachment.spec.source.inlineVolumeSpec;
  if (plugin !== "azure-disk" || inline?.csi == null) return attachment;
  const { cachingMode = "", fsType = "", kind = "" } = inline.csi.volumeAttributes ?? {};
  const csi = { ...inline.csi, volumeAttributes: { cachingmode: cachingMode, fstype: fsType, kind } };
  return {
    ...attachment,
    spec: { ...attachment.spec, source: { inlineVolumeSpec: { ...inline, csi } } },
  };
}

function podEventText(event: RecordedEvent, plugin: Recorded): string {
  const text = eventText(event);
  if (plugin !== "azure-disk") return text;
  const folder = "/subscriptions/s1/resourceGroups/rg1/providers/Microsoft.Compute/disks/";
  return text.replace('"disk.csi.azure.com-', `"${folder}`);
}

async function podEvents(plane: ControlPlane, pod: string): Promise<readonly string[]> {
  return [...new Set(await plane.eventsOn("Pod", pod))].sort();
}

const eventText = ({ type, reason, message }: RecordedEvent) => `${type} ${reason}: ${message}`;

async function reports({ recording, plane }: Scene): Promise<Record<string, unknown>> {
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

async function observeClaim({ plugin, plane }: Scene, name: string): Promise<object> {
  const pvc = await plane.get(resources.persistentVolumeClaims, name, namespaceOf(plugin));
  const pv = await plane.get(resources.persistentVolumes, `${plugin}-${name}`);
  const events = [
    ...(await plane.eventsOn("PersistentVolumeClaim", name)),
    ...(await plane.eventsOn("PersistentVolume", `${plugin}-${name}`)),
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

async function annotationsOf({ plugin, recording, plane }: Scene): Promise<Record<string, object>> {
  const found: Record<string, object> = {};
  for (const name of Object.keys(recording.levels.on?.claims ?? {})) {
    const pvc = await plane.get(resources.persistentVolumeClaims, name, namespaceOf(plugin));
    const pv = await plane.get(resources.persistentVolumes, `${plugin}-${name}`);
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
