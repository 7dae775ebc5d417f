/**
 * The embedded API server with the persistent-volume controller and the protection controllers, as a process of its own, filled with
 * bound pairs of volumes and claims. Arguments: the repository, whose built packages it runs, and the number of pairs of each of the
 * names `a` and `b`. It sends how it is reached.
 */
import { pathToFileURL } from "node:url";
import { type KubeClient, resources } from "@longshore/kube";
import { claimOf, driver, namespace, volumeOf } from "./pairs.ts";

const [repository = "", pairsText] = process.argv.slice(2);
const pairs = Number(pairsText);
const load = <T>(path: string): Promise<T> => import(pathToFileURL(`${repository}/packages/${path}.js`).href);
const api = await load<typeof import("@longshore/apiserver")>("apiserver/dist/index");
const runtime = await load<typeof import("@longshore/runtime")>("runtime/dist/index");
const volumes = await load<typeof import("@longshore/volumes")>("volumes/dist/index");
const inTree = await load<typeof import("@longshore/volumes/in-tree-plugins")>(
  "volumes/dist/plugins/in-tree-plugins",
);

const env = {
  clock: runtime.systemClock,
  random: runtime.systemRandom,
  logger: runtime.silentLogger,
  meter: runtime.noMeter,
};
const { signal } = new AbortController();
const tokens = [{ token: "bench", user: api.adminUser }];
const server = api.createApiServer(env, { store: api.memoryStore(), tokens });
await server.start();
const kube = server.client() as unknown as KubeClient;
await kube.create(resources.namespaces, { metadata: { name: "kube-system" } }, { signal }).catch(() => {});
await kube.create(resources.csiDrivers, { metadata: { name: driver }, spec: {} }, { signal });
const cloud = new Proxy({} as never, {
  get: (_target, call) => () => Promise.reject(new Error(`the cloud is asked: ${String(call)}`)),
});
const plugins = [...inTree.inTreePlugins({ cloudFor: () => cloud }), volumes.csiPlugin()];
volumes.startPersistentVolumeController(
  { ...env, kube, plugins },
  { gates: runtime.featureGates(volumes.volumeGates, {}) },
);
volumes.startProtectionControllers({ ...env, kube });
for (const group of ["a", "b"]) {
  for (let at = 0; at < pairs; at++) {
    const name = `${group}-${at}`;
    await kube.create(resources.persistentVolumes, volumeOf(name), { signal });
    await kube.create(resources.persistentVolumeClaims, claimOf(name), { signal });
  }
}
const areBound = async () => {
  const { items } = await kube.list(resources.persistentVolumeClaims, { namespace, signal });
  return items.every(({ status }) => status?.phase === "Bound");
};
while (!(await areBound())) await runtime.systemClock.sleep(100, signal);

const authority = await api.createAuthority("bench authority", new Date());
const own = await api.issueCertificate(authority, {
  commonName: "bench",
  hosts: ["127.0.0.1"],
  now: new Date(),
});
const { port } = await api.serveHttps(env, server, {
  port: 0,
  certificate: own.certificate,
  key: own.key,
  clientCa: authority.certificate,
});
process.send?.({ server: `https://127.0.0.1:${port}`, ca: authority.certificate, token: "bench" });
process.on("disconnect", () => process.exit());
