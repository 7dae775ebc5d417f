/**
 * The recorded names of VolumeAttachments and volumes of plugins whose in-tree code we do not have: what
 * goes by CSI, and what is skipped. (Contents of inline volumes follow the newer translation library.)
 */
import { resources } from "@longshore/kube";
import { featureGates } from "@longshore/runtime";
import { afterEach, describe, expect, it } from "vitest";
import { volumeGates } from "../csimigration/volume-gates.ts";
import { csiPlugin } from "../plugins/csi/csi-plugin.ts";
import { ControlPlane, startInstantAttacher } from "../testing/control-plane.ts";
import { type Level, loadRecording, type Recording } from "../testing/kcm-recording.ts";
import { startAttachDetachController } from "./attach-detach/attach-detach-controller.ts";

const planes: ControlPlane[] = [];
afterEach(async () => {
  for (const plane of planes.splice(0)) await plane.stop();
});

describe.each(["azure-disk", "vsphere"])("%s", (plugin) => {
  const recording = loadRecording(plugin);

  it.each(["on", "complete"])("gates %s (controllers.md A5, B2)", async (name) => {
    const level = recording.levels[name] as Level;
    const plane = await attached(recording, level);
    const found = (await plane.list(resources.volumeAttachments)).map(({ metadata, spec }) => ({
      name: metadata.name,
      attacher: spec.attacher,
      nodeName: spec.nodeName,
      pv: spec.source.persistentVolumeName,
    }));
    const recorded = Object.values(level.attach).flatMap((pod) =>
      pod.volumeAttachments.map(({ metadata, spec }) => ({
        name: metadata?.name,
        attacher: spec.attacher,
        nodeName: spec.nodeName,
        pv: spec.source.persistentVolumeName,
      })),
    );
    expect(found.sort(byName)).toEqual(recorded.sort(byName));
    const listed: Record<string, readonly string[]> = {};
    for (const [key, { name: node }] of Object.entries(recording.input.nodes)) {
      listed[key] = await plane.volumesAttached(node);
    }
    const expected = Object.fromEntries(
      Object.entries(level.volumesAttached).map(([key, node]) => [
        key,
        node.attached.map((volume) => volume.name),
      ]),
    );
    expect(listed).toEqual(expected);
  });
});

async function attached({ input, csiDriver }: Recording, level: Level): Promise<ControlPlane> {
  const plane = new ControlPlane();
  planes.push(plane);
  const namespace = Object.values(input.pvcs)[0]?.metadata?.namespace ?? "";
  await plane.create(resources.namespaces, { metadata: { name: namespace } });
  for (const claim of Object.values(input.pvcs)) {
    const stored = await plane.create(resources.persistentVolumeClaims, claim);
    const volume = input.pvs[claim.metadata?.name ?? ""];
    if (volume === undefined) continue;
    const claimRef = { ...volume.spec?.claimRef, uid: stored.metadata.uid };
    await plane.create(resources.persistentVolumes, { ...volume, spec: { ...volume.spec, claimRef } });
  }
  for (const { name, csiNode } of Object.values(input.nodes)) {
    const annotations = { "volumes.kubernetes.io/controller-managed-attach-detach": "true" };
    await plane.create(resources.nodes, { metadata: { name, annotations } });
    if (csiNode !== null) await plane.create(resources.csiNodes, csiNode as never);
  }
  for (const [name, { nodeName, volume }] of Object.entries(input.pods)) {
    await plane.create(resources.pods, {
      metadata: { name, namespace },
      spec: { nodeName, containers: [{ name: "c", image: "i" }], volumes: [{ name: "v", ...volume }] },
    });
  }
  expect(csiDriver).not.toBe("");
  plane.running(startInstantAttacher(plane));
  plane.running(
    startAttachDetachController(
      { ...plane.env, kube: plane.kube, plugins: [csiPlugin()] },
      { gates: featureGates(volumeGates, level.featureGates), compat: "kubernetes-1.20" },
    ),
  );
  await plane.pass(30_000);
  return plane;
}

function byName(a: { name?: string | undefined }, b: { name?: string | undefined }): number {
  return (a.name ?? "") < (b.name ?? "") ? -1 : 1;
}
