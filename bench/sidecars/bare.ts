/**
 * What a sidecar cannot do without, and nothing else: the same requests and calls over the same libraries, with one watch
 * of each resource, no retries, no deadlines but the driver's, and no care for anything that goes wrong. It is the
 * reference in the same run: what ours cost beyond it is ours, and the rest belongs to the libraries.
 *
 *   bare.mjs --kubeconfig=FILE --csi-address=SOCKET
 */
import { readFileSync } from "node:fs";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { Agent, type Dispatcher } from "undici";
import { clientOver } from "../../packages/csi/src/calls/unary-transport.ts";
import { Controller } from "../../packages/csi/src/gen/csi_pb.ts";
import { methodDefinition } from "../../packages/csi/src/grpc/grpc-service.ts";
import { driverName, finalizer, paths } from "./objects.ts";

interface Metadatum {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly deletionTimestamp?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** As much of each kind as is read here. */
interface Thing {
  readonly metadata: Metadatum;
  readonly spec: {
    readonly volumeName?: string;
    readonly source?: { readonly persistentVolumeName: string };
    readonly resources?: { readonly requests: { readonly storage: string } };
  };
  readonly status?: { readonly attached?: boolean; readonly capacity?: { readonly storage: string } };
}

const option = (name: string) =>
  process.argv.find((arg) => arg.startsWith(`--${name}=`))?.slice(name.length + 3) ?? "";
const config = JSON.parse(readFileSync(option("kubeconfig"), "utf8"));
const { server: origin, "certificate-authority-data": authority } = config.clusters[0].cluster;
const connect = { ca: Buffer.from(authority, "base64").toString() };
const calls = new Agent({ connections: 32, pipelining: 1, connect });
const watches = new Agent({ bodyTimeout: 0, connect });
const accept = { accept: "application/json", authorization: `Bearer ${config.users[0].user.token}` };

function send(method: Dispatcher.HttpMethod, path: string, body?: object): Promise<unknown> {
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let code = 0;
    calls.dispatch(
      {
        origin,
        path,
        method,
        headers: body === undefined ? accept : { ...accept, "content-type": type },
        body: body === undefined ? null : JSON.stringify(body),
      },
      {
        onRequestStart() {},
        onResponseStart(_controller, status) {
          code = status;
        },
        onResponseData(_controller, chunk) {
          chunks.push(chunk);
        },
        onResponseEnd() {
          const text = Buffer.concat(chunks).toString();
          if (code < 300) resolve(JSON.parse(text));
          else reject(new Error(`${method} ${path}: ${code} ${text}`));
        },
        onResponseError(_controller, error) {
          reject(error);
        },
      },
    );
  });
}

const driver = new Client(`unix:${option("csi-address")}`, credentials.createInsecure());

const controller = clientOver(Controller, (method, request) => {
  const { path, requestSerialize, responseDeserialize } = methodDefinition(method);
  return new Promise((resolve, reject) => {
    const options = { deadline: Date.now() + 15_000 };
    driver.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      new Metadata(),
      options,
      (error, answer) => (error === null ? resolve(answer as never) : reject(error)),
    );
  });
});
const unused = { signal: new AbortController().signal, timeoutMs: 0 };

/** At most a hundred at once, in the order of their coming. */
const waiting: (() => Promise<void>)[] = [];
let running = 0;
function enqueue(work: () => Promise<void>): void {
  waiting.push(work);
  pump();
}
function pump(): void {
  while (running < 100) {
    const work = waiting.shift();
    if (work === undefined) return;
    running++;
    work().then(
      () => {
        running--;
        pump();
      },
      (error) => {
        console.error(error);
        process.exit(1);
      },
    );
  }
}

/** Keeps what the collection holds in `cache`, and reports every object that is there or has changed. */
async function follow(
  path: string,
  cache: Map<string, Thing>,
  changed: (thing: Thing) => void,
): Promise<void> {
  const list = (await send("GET", path)) as {
    readonly items: readonly Thing[];
    readonly metadata: { readonly resourceVersion: string };
  };
  const take = (type: string, thing: Thing) => {
    if (type === "DELETED") cache.delete(thing.metadata.name);
    else {
      cache.set(thing.metadata.name, thing);
      changed(thing);
    }
  };
  for (const item of list.items) take("ADDED", item);
  const watch = `${path}?watch=true&resourceVersion=${list.metadata.resourceVersion}`;
  const { body } = await watches.request({ origin, path: watch, method: "GET", headers: accept });
  body.setEncoding("utf8");
  let rest = "";
  body.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const { type, object } = JSON.parse(line);
      take(type, object);
    }
  });
}

const volumes = new Map<string, Thing>();
const attachments = new Map<string, Thing>();
const claims = new Map<string, Thing>();
/** What has been begun, by the state it leads to: each only once. */
const begun = new Set<string>();
function once(what: string, work: () => Promise<void>): void {
  if (begun.has(what)) return;
  begun.add(what);
  enqueue(work);
}

const capability = {
  accessType: { case: "mount", value: { fsType: "ext4" } },
  accessMode: { mode: 1 },
} as const;

async function attach({ metadata, spec }: Thing): Promise<void> {
  const volume = spec.source?.persistentVolumeName ?? "";
  await send("PATCH", `${paths.volumes}/${volume}`, { metadata: { finalizers: [finalizer] } });
  await send("PATCH", `${paths.attachments}/${metadata.name}`, {
    metadata: { finalizers: [finalizer], annotations: { "csi.alpha.kubernetes.io/node-id": "n-1" } },
  });
  await controller.controllerPublishVolume(
    {
      volumeId: volume,
      nodeId: "n-1",
      volumeCapability: capability,
    },
    unused,
  );
  await send("PATCH", `${paths.attachments}/${metadata.name}/status`, { status: { attached: true } });
}

async function detach({ metadata, spec }: Thing): Promise<void> {
  const volumeId = spec.source?.persistentVolumeName ?? "";
  await controller.controllerUnpublishVolume({ volumeId, nodeId: "n-1" }, unused);
  await send("PATCH", `${paths.attachments}/${metadata.name}`, { metadata: { finalizers: null } });
}

/** An event about a claim: the reference writes two for each piece of work, and so do ours. */
async function recordEvent({ metadata: { name, uid } }: Thing, reason: string): Promise<void> {
  const time = new Date().toISOString();
  await send("POST", "/api/v1/namespaces/default/events", {
    metadata: { generateName: `${name}.` },
    involvedObject: { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace: "default", name, uid },
    reason,
    message: reason,
    type: "Normal",
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  });
}

/** With the intent, which is stored before the driver is asked, and taken back at the end. */
async function provision(claim: Thing): Promise<void> {
  const { name, uid } = claim.metadata;
  const path = `${paths.claims}/${name}`;
  await recordEvent(claim, "Provisioning");
  await send("PATCH", path, { metadata: { annotations: { intent: "stored" } } });
  const volume = `pvc-${uid}`;
  await controller.createVolume(
    {
      name: volume,
      capacityRange: { requiredBytes: 1n << 30n },
      volumeCapabilities: [capability],
    },
    unused,
  );
  await send("POST", paths.volumes, {
    metadata: { name: volume },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "1Gi" },
      claimRef: { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace: "default", name, uid },
      csi: { driver: driverName, volumeHandle: volume },
      storageClassName: "bench",
    },
  });
  await send("PATCH", path, { metadata: { annotations: { intent: null } } });
  await recordEvent(claim, "ProvisioningSucceeded");
}

async function expand(claim: Thing): Promise<void> {
  const { metadata, spec } = claim;
  const path = `${paths.claims}/${metadata.name}/status`;
  const storage = spec.resources?.requests.storage ?? "";
  await recordEvent(claim, "Resizing");
  await send("PATCH", path, { status: { conditions: [{ type: "Resizing", status: "True" }] } });
  await controller.controllerExpandVolume(
    {
      volumeId: spec.volumeName ?? "",
      capacityRange: { requiredBytes: 2n << 30n },
    },
    unused,
  );
  await send("PATCH", `${paths.volumes}/${spec.volumeName}`, { spec: { capacity: { storage } } });
  await send("PATCH", path, { status: { conditions: null, capacity: { storage } } });
  await recordEvent(claim, "VolumeResizeSuccessful");
}

await follow(paths.volumes, volumes, () => {});
await Promise.all([
  follow(paths.attachments, attachments, (attachment) => {
    const { name, deletionTimestamp } = attachment.metadata;
    if (deletionTimestamp !== undefined) once(`detach ${name}`, () => detach(attachment));
    else if (attachment.status?.attached !== true) once(`attach ${name}`, () => attach(attachment));
  }),
  follow(paths.claims, claims, (claim) => {
    const { uid } = claim.metadata;
    const { volumeName, resources } = claim.spec;
    const capacity = claim.status?.capacity?.storage;
    if (volumeName === undefined) once(`provision ${uid}`, () => provision(claim));
    else if (capacity !== undefined && capacity !== resources?.requests.storage) {
      once(`expand ${uid}`, () => expand(claim));
    }
  }),
]);
process.on("SIGTERM", () => process.exit(0));
