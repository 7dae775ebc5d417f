/** Inline CSI volumes of pods. Source: docs/behaviour/csi-plugin.md 3, 9. */
import { type CSIDriver, resources } from "@longshore/kube";
import { inlineVolumeHandle } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { driverName, NodeWorld, rootDir } from "./testing/node-world.ts";
import { failOnce, testDriver } from "./testing/test-driver.ts";

const ephemeral: CSIDriver["spec"] = { volumeLifecycleModes: ["Ephemeral"], podInfoOnMount: true };

/** A node with a registered driver, and a way to make pods with an inline volume of it. */
async function aNode(spec: CSIDriver["spec"] | null = ephemeral) {
  const world = await NodeWorld.create();
  if (spec !== null)
    await world.kube.create(resources.csiDrivers, { metadata: { name: driverName }, spec }, world);
  await world.serveDriver(testDriver(world.host, { staging: true }));
  const aPod = (name: string, source: object = {}) =>
    world.pod(name, ["x"], { volumes: [{ name: "data-x", csi: { driver: driverName, ...source } }] });
  const directoryOf = (uid: string) => `${rootDir}/pods/${uid}/volumes/kubernetes.io~csi/data-x`;
  return { world, agent: world.start(), aPod, directoryOf };
}

describe("an inline volume", () => {
  it("is published without a stage, with the pod's Secret, and deleted with its pod (csi-plugin.md 9.3)", async () => {
    const { world, agent, aPod, directoryOf } = await aNode();
    const secret = { metadata: { name: "s", namespace: "default" }, data: { key: "aGVsbG8=" } };
    await world.kube.create(resources.secrets, secret, world);
    const pod = await aPod("p", {
      volumeAttributes: { color: "blue" },
      nodePublishSecretRef: { name: "s" },
      readOnly: true,
    });
    const { uid } = pod.metadata;
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    const handle = inlineVolumeHandle(uid, "data-x");
    const path = `${directoryOf(uid)}/mount`;
    expect(agent.volumes.mountedVolumes(uid)).toEqual(
      new Map([["data-x", { path, readOnly: true, volumeName: "data-x" }]]),
    );
    expect(world.driver.calls).toEqual(["NodeGetInfo", `NodePublishVolume ${handle}`]);
    expect(world.driver.lastPublish).toMatchObject({
      context: { color: "blue", "csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.name": "p" },
      publishContext: {},
      secrets: { key: "hello" },
      readonly: true,
    });
    expect(agent.volumes.volumesInUse()).toEqual([]);
    await world.deletePod("p");
    await world.until("gone", () => agent.volumes.podVolumesGone(uid));
    expect(world.driver.calls.at(-1)).toBe(`NodeUnpublishVolume ${handle}`);
    expect(await world.host.stat(directoryOf(uid))).toBeUndefined();
    await agent.stop();
  });

  it("is each pod's own, whatever its name (csi-plugin.md 9.3)", async () => {
    const { world, agent, aPod } = await aNode();
    for (const name of ["p", "q"]) {
      const pod = await aPod(name);
      await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    }
    const published = world.driver.calls.filter((call) => call.startsWith("NodePublishVolume"));
    expect(new Set(published).size).toBe(2);
    await agent.stop();
  });

  it.each(["running", "gone"])(
    "is found again after a crash when its pod is %s (csi-plugin.md 15; node-agent.md 9)",
    async (fate) => {
      const { world, agent, aPod } = await aNode();
      const pod = await aPod("p");
      const { uid } = pod.metadata;
      await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
      agent.crash();
      if (fate === "gone") await world.deletePod("p");
      else world.running.add(uid);
      const second = world.start();
      const handle = inlineVolumeHandle(uid, "data-x");
      if (fate === "gone") {
        await world.until("gone", () => second.volumes.podVolumesGone(uid));
        expect(world.driver.calls.at(-1)).toBe(`NodeUnpublishVolume ${handle}`);
      } else {
        await world.until("mounted", () => second.volumes.mountedVolumes(uid).size === 1);
        expect(world.driver.calls).not.toContain(`NodeUnpublishVolume ${handle}`);
      }
      await second.stop();
    },
  );

  it.each<[string, CSIDriver["spec"] | null]>([
    ["whose driver serves only volumes of claims", { volumeLifecycleModes: ["Persistent"] }],
    ["whose driver has no CSIDriver object", null],
  ])("%s is refused, saying so (csi-plugin.md 3)", async (_, spec) => {
    const { world, agent, aPod } = await aNode(spec);
    const pod = await aPod("p");
    const wait = agent.volumes.waitForAttachAndMount(pod, world.signal);
    await expect(world.clock.run(wait)).rejects.toThrow(
      "spec.volumeLifecycleModes lacks Ephemeral, which an inline volume of a pod needs",
    );
    expect(world.driver.calls).toEqual(["NodeGetInfo"]);
    await agent.stop();
  });

  it("whose publish may have worked is unpublished with its pod (node-agent.md 11.5)", async () => {
    const { world, agent, aPod } = await aNode();
    failOnce(world.driver, "NodePublishVolume", "DEADLINE_EXCEEDED", "after");
    const pod = await aPod("p");
    await world.until("asked", () => world.driver.calls.length > 1);
    await world.deletePod("p");
    await world.until("gone", () => agent.volumes.podVolumesGone(pod.metadata.uid));
    expect(world.driver.calls.at(-1)).toMatch(/^NodeUnpublishVolume csi-/);
    await agent.stop();
  });

  it("waits for its driver to register (csi-plugin.md 12)", async () => {
    const { world, agent, aPod } = await aNode();
    await world.until("registered", () => world.registrations.length > 0);
    await world.removeRegistration();
    await world.clock.advance(10_000);
    const pod = await aPod("p");
    await world.clock.advance(60_000);
    expect(agent.volumes.mountedVolumes(pod.metadata.uid).size).toBe(0);
    await world.placeRegistration();
    await world.until("mounted", () => agent.volumes.mountedVolumes(pod.metadata.uid).size === 1, 10_000);
    await agent.stop();
  });
});

it("a generic ephemeral volume takes no claim that was not made for its pod (node-agent.md 4.2)", async () => {
  const { world, agent } = await aNode();
  const claim = {
    metadata: { name: "p-data-x", namespace: "default" },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Mi" } } },
  };
  await world.kube.create(resources.persistentVolumeClaims, claim, world);
  const volumeClaimTemplate = { spec: claim.spec };
  const pod = await world.pod("p", ["x"], {
    volumes: [{ name: "data-x", ephemeral: { volumeClaimTemplate } }],
  });
  const wait = agent.volumes.waitForAttachAndMount(pod, world.signal);
  await expect(world.clock.run(wait)).rejects.toThrow("default/p-data-x was not created for pod p");
  await agent.stop();
});

describe("a data file that a full disk refuses", () => {
  it("publishes nothing, and is written once there is room (csi-plugin.md 9.1)", async () => {
    const { world, agent, aPod, directoryOf } = await aNode();
    const write = world.host.writeFileAtomic.bind(world.host);
    let isFull = true;
    world.host.writeFileAtomic = async (path, data, options) => {
      if (isFull && path.endsWith("vol_data.json")) throw new Error("ENOSPC: no space left on device");
      await write(path, data, options);
    };
    const pod = await aPod("p");
    await world.clock.advance(10_000);
    expect(world.driver.calls).toEqual(["NodeGetInfo"]);
    expect(await world.eventReasons()).toEqual(["Pod FailedMount"]);
    isFull = false;
    await world.until("mounted", () => agent.volumes.mountedVolumes(pod.metadata.uid).size === 1);
    expect(await world.host.readFile(`${directoryOf(pod.metadata.uid)}/vol_data.json`)).toContain(
      '"volumeLifecycleMode":"Ephemeral"',
    );
    await agent.stop();
  });
});
