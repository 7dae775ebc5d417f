/** The driver under the conformance suite: in memory, on this machine without root, and with mounts where root is. */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { conformanceSuite } from "@longshore/conformance";
import { grpcConnector, grpcListener, inProcessCsi, VolumeCapability_AccessMode_Mode } from "@longshore/csi";
import { allObjects, planDeployment, renderDeployment, yamlText } from "@longshore/deployment";
import {
  type Host,
  kernelHost,
  SeededRandom,
  SimulatedHost,
  silentLogger,
  systemClock,
  unprivilegedHost,
} from "@longshore/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { directoryDriver } from "./driver.ts";

const env = { clock: systemClock, random: new SeededRandom(1), logger: silentLogger };
const own = { name: "directories.example.com", nodeId: "node-1" };

async function world(host: Host, dir: string) {
  const [listener, connector] =
    host.form === "simulated"
      ? ((hub) => [hub, hub] as const)(inProcessCsi(env))
      : ([grpcListener(env), grpcConnector(env)] as const);
  for (const name of ["volumes", "staging", "pods"]) await host.makeDirectory(`${dir}/${name}`);
  const endpoint = `${dir}/csi.sock`;
  const serve = () => listener.serve(endpoint, directoryDriver({ ...own, host, dir: `${dir}/volumes` }));
  let server = await serve();
  const options = {
    endpoint,
    stagingDir: `${dir}/staging`,
    targetDir: `${dir}/pods`,
    restartDriver: async () => {
      await server.close();
      server = await serve();
    },
  };
  return { target: { env: { ...env, connector, host }, options }, close: () => server.close() };
}

describe("in memory", () => {
  conformanceSuite({ describe, test, afterAll }, async () => (await world(new SimulatedHost(), "/d")).target);
});

const isRoot = process.platform === "linux" && process.getuid?.() === 0;
describe.each([
  ["with links for mounts", unprivilegedHost, true],
  ["with mounts (needs root)", kernelHost, isRoot],
] as const)("%s", (_how, makeHost, isPossible) => {
  describe.skipIf(!isPossible)("on this machine", () => {
    let dir: string;
    let open: Awaited<ReturnType<typeof world>>;
    beforeAll(async () => {
      dir = await realpath(await mkdtemp(`${tmpdir()}/longshore-`));
      open = await world(makeHost(), dir);
    });
    afterAll(async () => {
      await open.close();
      await rm(dir, { recursive: true, force: true });
    });
    conformanceSuite({ describe, test, afterAll }, async () => open.target);
  });
});

test("a shared volume can be used on each node: the driver names no topology", async () => {
  const csiHub = inProcessCsi(env);
  const host = new SimulatedHost();
  await host.makeDirectory("/d");
  await csiHub.serve("/csi.sock", directoryDriver({ ...own, host, dir: "/d", shared: true }));
  const driver = csiHub.connect("/csi.sock");
  const call = { signal: new AbortController().signal, timeoutMs: 10_000 };
  const { capabilities } = await driver.identity.getPluginCapabilities({}, call);
  expect(capabilities).toHaveLength(1);
  expect((await driver.node.nodeGetInfo({}, call)).accessibleTopology).toBeUndefined();
});

test("a volume that a crash left half made is made by the repeat, and gone when it is deleted", async () => {
  for (let at = 1; ; at++) {
    let writes = 0;
    const host: SimulatedHost = new SimulatedHost({
      beforeChange: () => {
        if (++writes === at) host.losePower();
      },
    });
    const csi = inProcessCsi(env);
    const call = { signal: new AbortController().signal, timeoutMs: 10_000 };
    const writer = VolumeCapability_AccessMode_Mode.SINGLE_NODE_WRITER;
    const capability = { accessType: { case: "mount" as const, value: {} }, accessMode: { mode: writer } };
    const life = async (endpoint: string) => {
      await host.makeDirectory("/d");
      await csi.serve(endpoint, directoryDriver({ ...own, host, dir: "/d" }));
      const driver = csi.connect(endpoint);
      const asked = { name: "a", volumeCapabilities: [capability] };
      const volumeId = (await driver.controller.createVolume(asked, call)).volume?.volumeId ?? "";
      const where = { volumeId, targetPath: "/pod/mount" };
      await driver.node.nodePublishVolume({ ...where, volumeCapability: capability }, call);
      await driver.node.nodeUnpublishVolume(where, call);
      await driver.controller.deleteVolume({ volumeId }, call);
    };
    const lost = (async () => {
      while (host.boots === 1) await new Promise(setImmediate);
      return true;
    })();
    const wasCut = await Promise.race([life("/one.sock").then(() => false), lost]);
    writes = Number.NEGATIVE_INFINITY;
    if (wasCut) await life("/two.sock");
    else host.losePower(); // Ends the waiting for it.
    expect(await host.stat("/pod/mount")).toBeUndefined();
    if (wasCut) expect(await host.readDirectory("/d")).toEqual([]);
    else return expect(at).toBeGreaterThan(8);
  }
});

test("the manifest is what driver deploy renders (npx vitest run examples/driver --update regenerates it)", async () => {
  const plan = planDeployment({
    name: own.name,
    image: "registry.example.com/directories:v1",
    topology: true,
    nodeDeployment: true,
    storageClasses: [{ name: "directories", parameters: {} }],
  });
  const command =
    "# longshore driver deploy --name directories.example.com --image registry.example.com/directories:v1 \\\n" +
    "#   --topology --node-deployment --storage-class directories -o yaml\n";
  const objects = allObjects(renderDeployment(plan)).map(
    ({ object, comments }) => `---\n${yamlText(object, comments)}`,
  );
  await expect([command, ...objects].join("")).toMatchFileSnapshot("manifest.yaml");
});
