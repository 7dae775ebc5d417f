/**
 * A driver that repeats every secret the node agent sends it, also in answers to calls without secrets: no secret
 * gets into a log, an event, an object or a metric. The RPCs come from the protocol's descriptors.
 */
import { type CsiServices, NodeServiceCapability_RPC_Type } from "@longshore/csi";
import { interceptWrites, resources } from "@longshore/kube";
import { createMeter, type RecordedLine, recordingLogger } from "@longshore/runtime";
// Tests stand outside the floors: what a driver may say is planted where the protocol is.
import { leakyServices, methodsWithSecrets } from "@longshore/testing/csi";
import { expect, test } from "vitest";
import { csiName, driverName, NodeWorld } from "./testing/node-world.ts";
import { testDriver } from "./testing/test-driver.ts";

const password = `correct horse/battery+"staple"`;
const login = { namespace: "default", name: "login" };

test("no secret that a driver returns to the node agent is anywhere (contract.md C7)", async () => {
  const logger = recordingLogger();
  const meter = createMeter();
  const world = await NodeWorld.create({ logger, meter });
  const written = new Set<string>();
  Object.assign(world, {
    kube: interceptWrites(world.kube, async (_, signal, send) => {
      const object = await send(signal);
      // The volume's own options are where its author put them.
      written.add((JSON.stringify(object) ?? "").replaceAll('"password=battery-of-options"', "own"));
      return object;
    }),
  });
  const driver = testDriver(world.host);
  const leaky = leakyServices(expanding(driver.services));
  await world.serveDriver({ ...driver, services: leaky.services });
  const data = { password: Buffer.from(password).toString("base64") };
  // Written with a client that is not watched: the Secret object itself may hold the secret.
  await world.api.client().create(resources.secrets, { metadata: login, data }, world);
  await world.volume("vol-1", {
    capacity: { storage: "2Mi" },
    csi: {
      driver: driverName,
      volumeHandle: "vol-1",
      fsType: "ext4",
      nodeStageSecretRef: login,
      nodePublishSecretRef: login,
      nodeExpandSecretRef: login,
    },
    mountOptions: ["noatime", "password=battery-of-options"],
  });
  const claim = { namespace: "default", name: "claim-vol-1" };
  const conditions = [{ type: "FileSystemResizePending", status: "True" }];
  const body = { status: { phase: "Bound", capacity: { storage: "1Mi" }, conditions } };
  await world.kube.patch(
    resources.persistentVolumeClaims,
    claim,
    { type: "merge", body },
    { subresource: "status", signal: world.signal },
  );
  const agent = world.start();
  await world.until("registered", () => world.registrations.length > 0);
  const pod = await world.pod("p", ["vol-1"]);
  const { uid } = pod.metadata;
  await world.until("in use", async () =>
    ((await world.node()).status?.volumesInUse ?? []).includes(csiName("vol-1")),
  );
  await world.attachCsi("vol-1");
  const hour = 3_600_000;
  await world.until("mounted", () => agent.volumes.mountedVolumes(uid).size === 1, hour);
  await world.deletePod("p");
  await world.until("gone", () => agent.volumes.podVolumesGone(uid), hour);
  await world.until("unstaged", async () => (await world.mounts()).length === 0, hour);
  await agent.stop();

  const ofNode = methodsWithSecrets.filter(({ parent }) => parent.name === "Node").map(({ name }) => name);
  for (const name of [...ofNode, "NodeUnpublishVolume", "NodeUnstageVolume"]) {
    const expected = expect.arrayContaining(["INTERNAL", "UNAVAILABLE", "INVALID_ARGUMENT"]);
    expect(leaky.leaks.get(name), `${name} gave nothing back: it says nothing`).toEqual(expected);
  }
  const { items } = await world.kube.list(resources.events, world);
  const lines = logger.lines.map(textOf);
  for (const text of [...lines, ...written, JSON.stringify(items), await meter.exposition()]) {
    expect(text).not.toMatch(/correct horse|battery-of-options/);
    expect(text).not.toContain(Buffer.from(password).toString("base64"));
  }
  expect([...lines, JSON.stringify(items)].join("\n")).toContain("***stripped***");
});

/** The driver can expand volumes on the node. */
function expanding(services: CsiServices): CsiServices {
  const { STAGE_UNSTAGE_VOLUME, EXPAND_VOLUME } = NodeServiceCapability_RPC_Type;
  return {
    ...services,
    node: {
      ...services.node,
      nodeGetCapabilities: async () => ({
        capabilities: [STAGE_UNSTAGE_VOLUME, EXPAND_VOLUME].map((type) => ({
          type: { case: "rpc" as const, value: { type } },
        })),
      }),
      nodeExpandVolume: async ({ capacityRange }) => ({ capacityBytes: capacityRange?.requiredBytes ?? 0n }),
    },
  };
}

/** A line as it would be written, errors with their causes. */
function textOf({ message, fields }: RecordedLine): string {
  const withErrors = (_: string, value: unknown) => {
    if (typeof value === "bigint") return String(value);
    if (!(value instanceof Error)) return value;
    return { ...value, message: value.message, stack: value.stack, cause: value.cause };
  };
  return `${message} ${JSON.stringify(fields, withErrors)}`;
}
