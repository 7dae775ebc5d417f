/** Tokens for drivers, and volumes that are published again with new ones. Source: docs/behaviour/csi-plugin.md 9.5. */
import { CsiStatusError } from "@longshore/csi";
import { type CSIDriver, resources } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { driverName, NodeWorld } from "./testing/node-world.ts";
import { type TestDriver, type TestDriverOptions, testDriver } from "./testing/test-driver.ts";

const attribute = "csi.storage.k8s.io/serviceAccount.tokens";

/** A pod whose volume is mounted by a driver with this CSIDriver object. */
async function mounted(
  spec: object,
  prepare: (driver: TestDriver) => void = () => {},
  options: TestDriverOptions = {},
) {
  const world = await NodeWorld.create();
  const driver = { metadata: { name: driverName }, spec: spec as CSIDriver["spec"] };
  await world.kube.create(resources.csiDrivers, driver, world);
  const account = { metadata: { name: "default", namespace: "default" } };
  await world.kube.create(resources.serviceAccounts, account, world);
  await world.serveDriver(testDriver(world.host, options));
  const agent = world.start();
  await world.volume("vol-1", { csi: { driver: driverName, volumeHandle: "vol-1", fsType: "ext4" } });
  await world.attachCsi("vol-1");
  prepare(world.driver);
  const pod = await world.pod("p", ["vol-1"], { serviceAccountName: "default" });
  await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
  const publishes = () => world.driver.calls.filter((call) => call === "NodePublishVolume vol-1").length;
  return { world, agent, pod, publishes };
}

const tokensIn = (attributes: Record<string, string> | undefined) =>
  JSON.parse(attributes?.[attribute] ?? "{}") as Record<
    string,
    { token: string; expirationTimestamp: string }
  >;

describe("a driver with tokenRequests", () => {
  const tokenRequests = [{ audience: "vault", expirationSeconds: 3600 }, { audience: "" }];

  it("gets a token for each audience, in the volume context (csi-plugin.md 9.5)", async () => {
    const { world, agent } = await mounted({ tokenRequests });
    const tokens = tokensIn(world.driver.lastPublish?.context);
    expect(Object.keys(tokens).sort()).toEqual(["", "vault"]);
    expect(tokens.vault?.token).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/);
    expect(Date.parse(tokens.vault?.expirationTimestamp ?? "")).toBeGreaterThan(0);
    await agent.stop();
  });

  it("gets them among the secrets where it asks for that (csi-plugin.md 9.5)", async () => {
    const { world, agent } = await mounted({ tokenRequests, serviceAccountTokenInSecrets: true });
    expect(world.driver.lastPublish?.context).not.toHaveProperty([attribute]);
    expect(Object.keys(tokensIn(world.driver.lastPublish?.secrets))).toHaveLength(2);
    await agent.stop();
  });

  it("that repeats a token in an error puts it into no event (csi-plugin.md 9.5; contract.md C7)", async () => {
    let token = "";
    const { world, agent } = await mounted({ tokenRequests }, (driver) => {
      driver.after = (rpc) => {
        if (rpc !== "NodePublishVolume" || token !== "") return;
        token = tokensIn(driver.lastPublish?.context).vault?.token ?? "";
        throw new CsiStatusError("INTERNAL", `no access with ${token}`);
      };
    });
    await world.clock.advance(10_000);
    const { items } = await world.kube.list(resources.events, world);
    expect(token).not.toBe("");
    expect(items.map(({ reason }) => reason)).toContain("FailedMount");
    expect(JSON.stringify(items)).not.toContain(token);
    await agent.stop();
  });
});

describe("a driver with requiresRepublish", () => {
  const requiresRepublish = {
    requiresRepublish: true,
    tokenRequests: [{ audience: "vault", expirationSeconds: 600 }],
  };

  it("is asked about once in a minute, with tokens that have not expired (csi-plugin.md 9.5)", async () => {
    const { world, agent, publishes } = await mounted(requiresRepublish);
    const first = tokensIn(world.driver.lastPublish?.context).vault?.token;
    await world.clock.advance(20 * 60_000);
    expect(publishes()).toBeGreaterThanOrEqual(18);
    expect(publishes()).toBeLessThanOrEqual(21);
    const { token, expirationTimestamp = "" } = tokensIn(world.driver.lastPublish?.context).vault ?? {};
    expect(token).not.toBe(first);
    expect(Date.parse(expirationTimestamp)).toBeGreaterThan(world.clock.now().getTime());
    await agent.stop();
  });

  it.each(["INVALID_ARGUMENT", "DEADLINE_EXCEEDED"] as const)(
    "that answers %s keeps the mount, with an event, and is asked again (csi-plugin.md 9.5)",
    async (code) => {
      // One that makes files in the pod's directory, and mounts nothing there.
      const { world, agent, pod, publishes } = await mounted(requiresRepublish, () => {}, {
        staging: false,
      });
      const before = await world.mounts();
      world.driver.before = (rpc) => {
        if (rpc === "NodePublishVolume") throw new CsiStatusError(code, "as the test wants");
      };
      await world.clock.advance(70_000);
      expect(publishes()).toBeGreaterThanOrEqual(3);
      expect(agent.volumes.mountedVolumes(pod.metadata.uid).size).toBe(1);
      expect(await world.mounts()).toEqual(before);
      const data = `/var/lib/kubelet/pods/${pod.metadata.uid}/volumes/kubernetes.io~csi/pv-vol-1/vol_data.json`;
      expect(await world.host.stat(data)).toBeDefined();
      expect(await world.eventReasons()).toEqual(["Pod FailedMount"]);
      await agent.stop();
    },
  );

  it("is not asked for a pod that is gone (csi-plugin.md 9.5)", async () => {
    const { world, agent, pod, publishes } = await mounted(requiresRepublish);
    await world.deletePod("p");
    await world.until("gone", () => agent.volumes.podVolumesGone(pod.metadata.uid));
    const count = publishes();
    await world.clock.advance(10 * 60_000);
    expect(publishes()).toBe(count);
    await agent.stop();
  });

  it("goes on after a restart of the agent (csi-plugin.md 9.5)", async () => {
    const { world, agent, pod, publishes } = await mounted(requiresRepublish);
    agent.crash();
    world.running.add(pod.metadata.uid);
    const second = world.start();
    await world.until("mounted", () => second.volumes.mountedVolumes(pod.metadata.uid).size === 1);
    const count = publishes();
    await world.clock.advance(150_000);
    expect(publishes()).toBeGreaterThanOrEqual(count + 2);
    await second.stop();
  });
});

it("other drivers are asked once (csi-plugin.md 9.5)", async () => {
  const { world, agent, publishes } = await mounted({});
  await world.clock.advance(10 * 60_000);
  expect(publishes()).toBe(1);
  await agent.stop();
});
