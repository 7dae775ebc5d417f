/**
 * The three controllers of volumes as one process with shared caches, or what it takes to list what they follow. It is sent
 * the words of what to do one after the other, and answers each with figures. Arguments: how the server is reached, as
 * JSON, the number of nodes and that of volumes. Needs --expose-gc.
 */
import { once } from "node:events";
import {
  createHttpClient,
  fixedCredential,
  interceptWrites,
  type KubeClient,
  type KubeObject,
  type Resource,
  resources,
  type Stored,
  sharedInformers,
} from "@longshore/kube";
import { featureGates, noMeter, silentLogger, systemClock, systemRandom } from "@longshore/runtime";
import {
  csiPlugin,
  type DiskCloud,
  startAttachDetachController,
  startExpandController,
  startPersistentVolumeController,
  volumeGates,
} from "@longshore/volumes";
import { inTreePlugins } from "@longshore/volumes/in-tree-plugins";
import { late, manyOf, nodeOf, type Size, signal, unwanted } from "./objects.ts";

/** What a word is answered with; times in milliseconds. */
export interface Figures {
  readonly wallMs: number;
  readonly cpuMs: number;
  /** After garbage was collected. */
  readonly heapBytes: number;
  /** Requests that write. */
  readonly writes: number;
}

const [where = "", nodesText, volumesText] = process.argv.slice(2);
const { server, ca, token } = JSON.parse(where) as { server: string; ca: string; token: string };
const size: Size = { nodes: Number(nodesText), volumes: Number(volumesText) };
const env = { clock: systemClock, random: systemRandom, logger: silentLogger, meter: noMeter };
const credentials = fixedCredential({ authorization: `Bearer ${token}` });
const kube = createHttpClient(env, { server, ca, credentials });
let writes = 0;

/** Ends when the controllers write both decisions that were left to them; before a detach a node's list is written. */
const decided = (() => {
  const open = new Set([nodeOf(size, unwanted), late.volume]);
  let end = () => {};
  const all = new Promise<void>((resolve) => {
    end = resolve;
  });
  const note = (name: string) => {
    if (open.delete(name) && open.size === 0) end();
  };
  return { all, note };
})();

/** The client of the controllers; with `holds` no write is sent, so that each restart finds what the one before has found. */
function watched(holds: boolean): KubeClient {
  return interceptWrites(kube, ({ key }, within, send) => {
    writes++;
    decided.note(key ?? "");
    return holds ? new Promise(() => {}) : send(within);
  });
}

const cloud = new Proxy({} as DiskCloud, {
  get: (_target, method) => () => Promise.reject(new Error(`the cloud is asked for ${String(method)}`)),
});

function startControllers(client: KubeClient): Promise<void> {
  const shared = { ...env, kube: client, informers: sharedInformers({ ...env, kube: client }) };
  const gates = featureGates(volumeGates, { CSIMigrationAWS: true });
  const plugins = () => [...inTreePlugins({ cloudFor: () => cloud }), csiPlugin()];
  startAttachDetachController({ ...shared, plugins: plugins() }, { gates });
  startPersistentVolumeController({ ...shared, plugins: plugins() }, { gates });
  startExpandController({ ...shared, plugins: plugins() }, { gates });
  return decided.all;
}

/** Every object, as the caches ask for it and at the same time. */
async function list(): Promise<readonly unknown[]> {
  const lists = manyOf.map(async (resource) => {
    const items: Stored<KubeObject>[] = [];
    for (let token = ""; ; ) {
      const page = await kube.list(resource as Resource<KubeObject>, {
        limit: 500,
        dropManagedFields: true,
        shareParts: true,
        signal,
        ...(token === "" ? {} : { continue: token }),
      });
      for (const item of page.items) items.push(item);
      token = page.continue ?? "";
      if (token === "") break;
    }
    return items;
  });
  return Promise.all(lists);
}

const cpuMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/** Until less than a hundredth of a core is used. */
async function quiet(): Promise<void> {
  for (let used = Number.POSITIVE_INFINITY; used > 10; ) {
    const before = cpuMs();
    await new Promise((resolve) => setTimeout(resolve, 1000));
    used = cpuMs() - before;
  }
}

const words: Readonly<Record<string, () => Promise<unknown>>> = {
  list,
  restart: () => startControllers(watched(true)),
  run: () => startControllers(watched(false)),
  quiet,
  observe: () => new Promise((resolve) => setTimeout(resolve, Number(process.env.BENCH_OBSERVE_MS))),
};

// What is loaded and connected once is no cost of listing.
await kube.list(resources.nodes, { limit: 1, signal });
process.send?.("ready");
for (;;) {
  const [word] = (await once(process, "message")) as [string];
  const before = { cpu: cpuMs(), wall: performance.now(), writes };
  await words[word]?.();
  const figures = { wallMs: performance.now() - before.wall, cpuMs: cpuMs() - before.cpu };
  globalThis.gc?.();
  const heapBytes = process.memoryUsage().heapUsed;
  process.send?.({ ...figures, heapBytes, writes: writes - before.writes } satisfies Figures);
}
