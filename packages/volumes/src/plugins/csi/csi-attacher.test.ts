/** Attaching and detaching through VolumeAttachments, against the embedded API server. */
import { resources, type VolumeAttachment } from "@longshore/kube";
import { attachmentName } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { specOfPersistentVolume, type VolumeSpec } from "../../framework/volume-spec.ts";
import { ControlPlane, startInstantAttacher } from "../../testing/control-plane.ts";
import { attachVerdict, detachVerdict } from "./attachment-status.ts";
import { isAttachmentName, parseCsiVolumeName } from "./csi-names.ts";
import { csiPlugin } from "./csi-plugin.ts";

const spec: VolumeSpec = specOfPersistentVolume(
  { metadata: { name: "pv" }, spec: { csi: { driver: "d.example", volumeHandle: "h" } } },
  false,
);
const name = attachmentName("h", "d.example", "n");

async function world() {
  const plane = new ControlPlane();
  const plugin = csiPlugin();
  await plugin.init({
    ...plane.env,
    kube: plane.kube,
    csiDriver: (driver, signal) => plane.kube.get(resources.csiDrivers, { name: driver }, { signal }),
  });
  return { plane, plugin, attacher: plugin.newAttacher(), detacher: plugin.newDetacher() };
}

async function anAttachment(
  plane: ControlPlane,
  fields: Partial<VolumeAttachment["metadata"]> = {},
): Promise<void> {
  await plane.create(resources.volumeAttachments, {
    metadata: { name, ...fields },
    spec: { attacher: "d.example", nodeName: "n", source: { persistentVolumeName: "pv" } },
  });
}

const setStatus = (plane: ControlPlane, status: object) =>
  plane.merge(resources.volumeAttachments, { name }, { status }, "status");

/** Runs until it settles or `ms` have passed; returns the outcome in one word. */
async function outcome(plane: ControlPlane, work: Promise<unknown>, ms: number): Promise<string> {
  let settled = "waits";
  work.then(
    () => {
      settled = "done";
    },
    (error: Error) => {
      settled = error.message;
    },
  );
  await plane.pass(ms);
  return settled;
}

describe("names", () => {
  it("are those of the recorded controller", () => {
    expect(attachmentName("vol-att-this-plugin", "ebs.csi.aws.com", "aws-ebs-this-plugin")).toBe(
      "csi-01dceace380800bb39c88894214d41d2488dc7996d64f878c7598119213794f1",
    );
    expect(isAttachmentName(name)).toBe(true);
    expect(parseCsiVolumeName("d.example^a^b")).toEqual({ driver: "d.example", volumeHandle: "a^b" });
    expect(() => parseCsiVolumeName("d.example")).toThrow("missing expected data");
  });
});

describe("attach", () => {
  it("makes the object and waits for the attacher", async () => {
    const { plane, attacher } = await world();
    const work = attacher.attach(spec, "n", plane.signal);
    expect(await outcome(plane, work, 30_000)).toBe("waits");
    await setStatus(plane, { attached: true });
    expect(await plane.clock.run(work)).toBe("");
  });

  it("takes an object that is there as it is", async () => {
    const { plane, attacher } = await world();
    await anAttachment(plane);
    const before = await plane.get(resources.volumeAttachments, name);
    const work = attacher.attach(spec, "n", plane.signal);
    await plane.pass(1_000);
    expect((await plane.get(resources.volumeAttachments, name))?.metadata.resourceVersion).toBe(
      before?.metadata.resourceVersion,
    );
    await setStatus(plane, { attached: true });
    await plane.clock.run(work);
  });

  it("does not trust an object that is being deleted, even one that says attached", async () => {
    const { plane, attacher } = await world();
    await anAttachment(plane, { finalizers: ["external-attacher/x"] });
    await setStatus(plane, { attached: true });
    await plane.delete(resources.volumeAttachments, name);
    const work = attacher.attach(spec, "n", plane.signal);
    expect(await outcome(plane, work, 1_000)).toContain("volume attachment is being deleted");
  });

  it("gives up after two minutes and leaves the object", async () => {
    const { plane, attacher } = await world();
    const work = attacher.attach(spec, "n", plane.signal);
    expect(await outcome(plane, work, 121_000)).toBe("attachdetachment timeout for volume h");
    expect(await plane.get(resources.volumeAttachments, name)).toBeDefined();
  });

  it("needs none where the driver wants none", async () => {
    const { plane, plugin } = await world();
    expect(await plane.clock.run(plugin.canAttach(spec))).toBe(true);
    await plane.create(resources.csiDrivers, {
      metadata: { name: "d.example" },
      spec: { attachRequired: false },
    });
    expect(await plane.clock.run(plugin.canAttach(spec))).toBe(false);
  });
});

describe("detach", () => {
  it("deletes the object and waits until it is gone", async () => {
    const { plane, detacher } = await world();
    await anAttachment(plane, { finalizers: ["external-attacher/x"] });
    await setStatus(plane, { attached: true });
    const work = detacher.detach("d.example^h", "n", plane.signal);
    expect(await outcome(plane, work, 30_000)).toBe("waits");
    await plane.merge(resources.volumeAttachments, { name }, { metadata: { finalizers: null } });
    await plane.clock.run(work);
  });

  it("believes attached=false only when it changed after the deletion", async () => {
    const { plane, detacher } = await world();
    await anAttachment(plane, { finalizers: ["external-attacher/x"] });
    const never = detacher.detach("d.example^h", "n", plane.signal);
    expect(await outcome(plane, never, 60_000)).toBe("waits");
    await setStatus(plane, { attached: true });
    await setStatus(plane, { attached: false });
    await plane.clock.run(never);
  });

  it("is done at once with nothing to detach, by volume name or attachment name", async () => {
    const { plane, detacher } = await world();
    await plane.clock.run(detacher.detach("d.example^h", "n", plane.signal));
    await plane.clock.run(detacher.detach(name, "n", plane.signal));
  });
});

describe("volumesAreAttached", () => {
  it("asks the API server", async () => {
    const { plane, attacher } = await world();
    const ask = async () =>
      (await plane.clock.run(attacher.volumesAreAttached([spec], "n", plane.signal))).get(spec);
    expect(await ask()).toBe(false);
    await anAttachment(plane);
    expect(await ask()).toBe(false);
    const instant = startInstantAttacher(plane);
    await plane.pass(1_000);
    expect(await ask()).toBe(true);
    await plane.clock.run(instant.stop());
  });
});

describe("the verdict on an object", () => {
  const stored = (status: object | undefined, deleting = false) =>
    ({
      metadata: {
        name,
        uid: "u",
        resourceVersion: "1",
        ...(deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
      },
      spec: {},
      ...(status === undefined ? {} : { status }),
    }) as never;
  it.each([
    ["gone", undefined, "failed", "done"],
    ["nothing yet", stored(undefined), "wait", "wait"],
    ["attached", stored({ attached: true }), "done", "wait"],
    [
      "attached, with an old error",
      stored({ attached: true, attachError: { message: "x" } }),
      "done",
      "wait",
    ],
    ["an attach error", stored({ attached: false, attachError: { message: "x" } }), "failed", "wait"],
    ["being deleted", stored({ attached: true }, true), "failed", "wait"],
    ["a detach error", stored({ attached: true, detachError: { message: "x" } }, true), "failed", "failed"],
  ])("%s", (_name, attachment, attach, detach) => {
    expect(attachVerdict(attachment).kind).toBe(attach);
    expect(detachVerdict(attachment, false).kind).toBe(detach);
  });
});
