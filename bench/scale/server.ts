/**
 * The embedded API server with the objects of the cluster, as a process of its own: what is measured is who reads. It is
 * the kubelets as well. Arguments: the repository, whose built packages it runs, the number of nodes and that of volumes.
 * It sends how it is reached. When it is sent anything, it begins to renew leases and to report nodes and pods.
 */
import { pathToFileURL } from "node:url";
import { type KubeClient, resources } from "@longshore/kube";
import {
  fill,
  leaseAt,
  namespace,
  podOf,
  podStatus,
  reportOf,
  type Size,
  signal,
  unwanted,
} from "./objects.ts";
import { leaseMs, podChangeMs, reportMs } from "./rates.ts";

const [repository = "", nodesText, volumesText] = process.argv.slice(2);
const size: Size = { nodes: Number(nodesText), volumes: Number(volumesText) };
const load = <T>(name: string): Promise<T> =>
  import(pathToFileURL(`${repository}/packages/${name}/dist/index.js`).href);
const api = await load<typeof import("@longshore/apiserver")>("apiserver");
const runtime = await load<typeof import("@longshore/runtime")>("runtime");

const env = {
  clock: runtime.systemClock,
  random: runtime.systemRandom,
  logger: runtime.silentLogger,
  meter: runtime.noMeter,
};
const tokens = [{ token: "bench", user: api.adminUser }];
const server = api.createApiServer(env, { store: api.memoryStore(), tokens });
await server.start();
const kube = server.client() as unknown as KubeClient;
await fill(kube, size);
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

/** Does the work for each number below `count` once in `periodMs`, evenly. */
function spread(count: number, periodMs: number, work: (index: number, round: number) => Promise<unknown>) {
  const began = performance.now();
  let done = 0;
  setInterval(() => {
    for (const due = ((performance.now() - began) / periodMs) * count; done < due; done++) {
      work(done % count, 1 + Math.floor(done / count)).catch((error: unknown) => {
        console.error("load:", error);
        process.exit(1);
      });
    }
  }, 20);
}

process.once("message", () => {
  spread(size.nodes, leaseMs, (node, round) => {
    const name = `node-${node}`;
    const body = { spec: leaseAt(name, round) };
    return kube.patch(resources.leases, { name, namespace }, { type: "merge", body }, { signal });
  });
  spread(size.nodes, reportMs, (node, round) => {
    const body = { status: reportOf(round) };
    return kube.patch(
      resources.nodes,
      { name: `node-${node}` },
      { type: "merge", body },
      { signal, subresource: "status" },
    );
  });
  spread(size.volumes, podChangeMs, async (index, round) => {
    if (index === unwanted) return;
    const body = { status: podStatus(round) };
    const ref = { name: podOf(index), namespace };
    await kube.patch(resources.pods, ref, { type: "merge", body }, { signal, subresource: "status" });
  });
});
process.on("disconnect", () => process.exit());
