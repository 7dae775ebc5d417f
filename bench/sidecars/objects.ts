/** The objects of the benchmark, and how they are put into a cluster: over a few plain connections, cheaply. */
import { Connection, type Target } from "../apiserver/raw-http.ts";

/** Work that takes longer has failed, in milliseconds; reference sidecars with default flags need ten minutes. */
const lateMs = Number(process.env.LONGSHORE_BENCH_LATE_MS ?? 900_000);

/** Name of the driver. */
export const driverName = "bench.csi.example.com";
/** What an attacher puts on attachments and volumes. */
export const finalizer = "external-attacher/bench-csi-example-com";
const storage = "/apis/storage.k8s.io/v1";

/** Paths of what is made. */
export const paths = {
  volumes: "/api/v1/persistentvolumes",
  claims: "/api/v1/namespaces/default/persistentvolumeclaims",
  pods: "/api/v1/namespaces/default/pods",
  nodes: "/api/v1/nodes",
  csiNodes: `${storage}/csinodes`,
  classes: `${storage}/storageclasses`,
  attachments: `${storage}/volumeattachments`,
} as const;

/** One request of a batch. */
export interface Request {
  readonly method: "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly body?: object;
}

/** Sends all of them over `connections` connections. @throws Error for an answer that is not a success */
export async function sendAll(target: Target, requests: readonly Request[], connections = 16): Promise<void> {
  let next = 0;
  const worker = async () => {
    const connection = await Connection.open(target);
    for (let at = next++; at < requests.length; at = next++) {
      const { method, path, body } = requests[at] as Request;
      const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
      const type = method === "PATCH" ? { type: "application/merge-patch+json" } : {};
      const answer = await connection.send(method, path, bytes, type);
      if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: Math.min(connections, requests.length) }, worker));
}

/** Reads an object or a list. */
export async function read(target: Target, path: string): Promise<unknown> {
  const connection = await Connection.open(target);
  const answer = await connection.send("GET", path, undefined, { keep: true });
  connection.close();
  if (answer.status !== 200) throw new Error(`GET ${path}: ${answer.status} ${answer.body}`);
  return JSON.parse(answer.body);
}

/**
 * Follows a collection until `count` different objects have had an event that `matches`. Begin it before the work:
 * it resolves, once it follows, with the promise of the end.
 */
export async function following(
  target: Target,
  path: string,
  count: number,
  matches: (line: string) => boolean,
): Promise<{ readonly end: Promise<void> }> {
  const list = (await read(target, `${path}?limit=1`)) as { readonly metadata: { resourceVersion: string } };
  let version = list.metadata.resourceVersion;
  const seen = new Set<string>();
  const take = (line: string) => {
    if (line.startsWith('{"type":"ERROR"')) throw new Error(`the watch of ${path}: ${line}`);
    version = /"resourceVersion":"(\d+)"/.exec(line)?.[1] ?? version;
    const name = matches(line) ? /"metadata":\{"name":"([^"]+)"/.exec(line)?.[1] : undefined;
    if (name !== undefined) seen.add(name);
  };
  const end = (async () => {
    const lateAtMs = performance.now() + lateMs;
    // The server ends the watch of a reader that it takes for too slow.
    while (seen.size < count) {
      if (performance.now() > lateAtMs) throw new Error(`${path}: ${seen.size} of ${count} in time`);
      await watchOnce(
        target,
        `${path}?watch=true&resourceVersion=${version}`,
        take,
        () => seen.size >= count,
      );
    }
  })();
  end.catch(() => {}); // Callers that wait for `end` get the error.
  await new Promise((resolve) => setTimeout(resolve, 200));
  return { end };
}

/** Passes each line to `take` until it is enough, or the server ends the watch. */
async function watchOnce(
  target: Target,
  path: string,
  take: (line: string) => void,
  isEnough: () => boolean,
): Promise<void> {
  const connection = await Connection.open(target);
  let rest = "";
  try {
    await new Promise<void>((resolve, reject) => {
      connection.onData = (data) => {
        rest += data.toString("latin1");
        try {
          for (let at = rest.indexOf("\n"); at >= 0; at = rest.indexOf("\n")) {
            take(rest.slice(0, at));
            rest = rest.slice(at + 1);
          }
        } catch (error) {
          reject(error);
        }
        if (isEnough()) resolve();
      };
      connection.send("GET", path).then(() => resolve(), reject);
      setTimeout(resolve, lateMs).unref();
    });
  } finally {
    connection.close();
  }
}

/** Numbers from 0. */
export const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** What every run needs. */
export const basics: readonly Request[] = [
  { method: "POST", path: paths.nodes, body: { metadata: { name: "node-1" } } },
  {
    method: "POST",
    path: paths.csiNodes,
    body: { metadata: { name: "node-1" }, spec: { drivers: [{ name: driverName, nodeID: "n-1" }] } },
  },
  {
    method: "POST",
    path: paths.classes,
    body: { metadata: { name: "bench" }, provisioner: driverName, allowVolumeExpansion: true },
  },
];

/** A volume to attach. @param attached with what an attacher puts there */
export function volume(name: string, attached = false): Request {
  return {
    method: "POST",
    path: paths.volumes,
    body: {
      metadata: { name, ...(attached ? { finalizers: [finalizer] } : {}) },
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "1Gi" },
        csi: { driver: driverName, volumeHandle: name, fsType: "ext4" },
        persistentVolumeReclaimPolicy: "Retain",
        storageClassName: "bench",
      },
    },
  };
}

/** The attachment of a volume. @param attached with what an attacher puts there */
export function attachment(name: string, volumeName: string, attached = false): Request {
  const theirs = { finalizers: [finalizer], annotations: { "csi.alpha.kubernetes.io/node-id": "n-1" } };
  return {
    method: "POST",
    path: paths.attachments,
    body: {
      metadata: { name, ...(attached ? theirs : {}) },
      spec: { attacher: driverName, nodeName: "node-1", source: { persistentVolumeName: volumeName } },
    },
  };
}

/** What the persistent-volume controller makes of a claim that is to be provisioned. */
export function claim(name: string): Request {
  const provisioner = {
    "volume.beta.kubernetes.io/storage-provisioner": driverName,
    "volume.kubernetes.io/storage-provisioner": driverName,
  };
  return {
    method: "POST",
    path: paths.claims,
    body: {
      metadata: { name, annotations: provisioner },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "1Gi" } },
        storageClassName: "bench",
      },
    },
  };
}

/** A pod as it runs everywhere, which uses a claim. */
export function pod(name: string, claimName: string): Request {
  const container = (index: number) => ({
    name: `c-${index}`,
    image: "registry.example.com/team/app:1.2.3",
    env: range(8).map((i) => ({ name: `VARIABLE_${i}`, value: `value of variable ${i}` })),
    resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } },
    volumeMounts: [{ name: "data", mountPath: "/data" }],
  });
  return {
    method: "POST",
    path: paths.pods,
    body: {
      metadata: { name, labels: { app: "bench", "pod-template-hash": "7d9f8c6b5" } },
      spec: {
        nodeName: "node-1",
        automountServiceAccountToken: false,
        containers: [container(0), container(1)],
        volumes: [{ name: "data", persistentVolumeClaim: { claimName } }],
      },
    },
  };
}
