/** Serves the disk cloud over HTTP on a unix socket of mode 0600. */
import { chmodSync, rmSync } from "node:fs";
import { connect, type Server } from "node:net";
import { isMainThread } from "node:worker_threads";
import { type Component, underUmask } from "@longshore/runtime";
import { CloudError } from "@longshore/volumes";
import Fastify from "fastify";
import { type CloudOp, cloudOps } from "./call-log.ts";
import type { CloudKnobs } from "./cloud-faults.ts";
import type { CloudInstance } from "./cloud-state.ts";
import type { DiskCloudService } from "./disk-cloud.ts";
import type {
  AttachOptions,
  CreateDiskRequest,
  DiskSource,
  ProviderCloud,
  SnapshotBlocksRequest,
} from "./provider-cloud.ts";
import {
  countArg,
  credentialsArg,
  encode,
  parseRequest,
  providerArg,
  sizeArg,
  statusOf,
  textArg,
  textMapArg,
  textsArg,
  type WireRequest,
} from "./wire.ts";

/** The socket cannot be served on. */
export class CloudSocketError extends Error {
  override readonly name = "CloudSocketError";
}

type Args = WireRequest["args"];
type Operation = (cloud: ProviderCloud, args: Args, signal: AbortSignal) => Promise<unknown>;
type AdminOperation = (service: DiskCloudService, args: Args, signal: AbortSignal) => Promise<unknown>;

const operations: Readonly<Record<CloudOp, Operation>> = {
  createDisk: (cloud, args, signal) => cloud.createDisk(createRequest(args), signal),
  deleteDisk: (cloud, args, signal) => cloud.deleteDisk(textArg(args, "diskId"), signal),
  attachDisk: (cloud, args, signal) =>
    cloud.attachDisk(textArg(args, "diskId"), textArg(args, "instanceId"), signal, attachOptions(args)),
  detachDisk: (cloud, args, signal) =>
    cloud.detachDisk(textArg(args, "diskId"), textArg(args, "instanceId"), signal),
  resizeDisk: async (cloud, args, signal) => {
    return { sizeBytes: await cloud.resizeDisk(textArg(args, "diskId"), sizeArg(args), signal) };
  },
  describeDisk: (cloud, args, signal) => cloud.describeDisk(textArg(args, "diskId"), signal),
  listDisks: (cloud, _args, signal) => cloud.listDisks(signal),
  describeInstance: (cloud, args, signal) => cloud.describeInstance(textArg(args, "nodeName"), signal),
  listInstances: (cloud, _args, signal) => cloud.listInstances(signal),
  modifyDisk: (cloud, args, signal) =>
    cloud.modifyDisk(textArg(args, "diskId"), (args.change ?? {}) as { readonly type?: string }, signal),
  diskConditions: (cloud, args, signal) => cloud.diskConditions(textsArg(args, "diskIds"), signal),
  listZones: (cloud, _args, signal) => cloud.listZones(signal),
  listStoragePolicies: (cloud, _args, signal) => cloud.listStoragePolicies(signal),
  zoneCapacity: (cloud, args, signal) => cloud.zoneCapacity(textArg(args, "zone"), signal),
  createSnapshot: (cloud, args, signal) =>
    cloud.createSnapshot({ name: textArg(args, "name"), diskId: textArg(args, "diskId") }, signal),
  deleteSnapshot: (cloud, args, signal) => cloud.deleteSnapshot(textArg(args, "snapshotId"), signal),
  listSnapshots: (cloud, _args, signal) => cloud.listSnapshots(signal),
  snapshotBlocks: (cloud, args, signal) => cloud.snapshotBlocks(blocksRequest(args), signal),
  createSnapshotGroup: (cloud, args, signal) =>
    cloud.createSnapshotGroup({ name: textArg(args, "name"), diskIds: textsArg(args, "diskIds") }, signal),
  deleteSnapshotGroup: (cloud, args, signal) => cloud.deleteSnapshotGroup(textArg(args, "groupId"), signal),
  describeSnapshotGroup: (cloud, args, signal) =>
    cloud.describeSnapshotGroup(textArg(args, "groupId"), signal),
  shareCredentials: (cloud, args, signal) => cloud.shareCredentials(textArg(args, "diskId"), signal),
};

const adminOperations: Readonly<Record<string, AdminOperation>> = {
  registerInstance: (service, args, signal) =>
    service.registerInstance(args.instance as CloudInstance, signal),
  deregisterInstance: (service, args, signal) =>
    service.deregisterInstance(textArg(args, "instanceId"), signal),
  calls: (service, args, signal) => service.calls(Number(args.sinceSeq ?? 0), signal),
  counters: (service, _args, signal) => service.counters(signal),
  setKnobs: (service, args, signal) =>
    service.setKnobs(operationArg(args), (args.knobs ?? {}) as CloudKnobs, signal, ofProvider(args)),
  setCondition: (service, args, signal) =>
    service.setCondition(
      textArg(args, "diskId"),
      args.message === undefined ? undefined : textArg(args, "message"),
      signal,
      ofProvider(args),
    ),
};

/**
 * Serves until it is stopped; stopping it stops the service, too, and removes the socket.
 * @throws CloudSocketError when a live cloud answers there, or the socket cannot be made
 */
export async function serveDiskCloud(service: DiskCloudService, socketPath: string): Promise<Component> {
  const app = Fastify({ forceCloseConnections: true });
  app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
  app.removeContentTypeParser("application/json");
  app.addContentTypeParser("application/json", { parseAs: "string" }, (_request, body, done) =>
    done(null, body),
  );
  app.post<{ Params: { readonly operation: string } }>("/v1/:operation", async (request, reply) => {
    const gone = new AbortController();
    reply.raw.on("close", () => {
      if (!reply.raw.writableEnded) gone.abort(new CloudError("Unavailable", "the caller has gone"));
    });
    reply.type("application/json");
    try {
      const result = await perform(service, request.params.operation, String(request.body), gone.signal);
      return encode({ result: result ?? null });
    } catch (error) {
      const { code, message } = toAnswer(error);
      reply.code(statusOf[code]);
      return encode({ error: { code, message } });
    }
  });
  await app.ready();
  await removeStaleSocket(socketPath);
  await listen(app.server, socketPath);
  return {
    async stop() {
      await app.close();
      await service.stop();
    },
  };
}

async function perform(
  service: DiskCloudService,
  name: string,
  body: string,
  signal: AbortSignal,
): Promise<unknown> {
  const { caller, args } = parseRequest(body);
  const operation = cloudOps.find((op) => op === name);
  if (operation !== undefined) return operations[operation](service.forCaller(caller), args, signal);
  const admin = Object.hasOwn(adminOperations, name) ? adminOperations[name] : undefined;
  if (admin === undefined) throw new CloudError("InvalidArgument", `there is no operation ${name}`);
  return admin(service, args, signal);
}

const ofProvider = (args: Args) => providerArg(args.provider, "argument provider");

function createRequest(args: Args): CreateDiskRequest {
  const { source } = args as Partial<CreateDiskRequest>;
  return {
    ...(source === undefined ? {} : { source: source satisfies DiskSource }),
    ...(args.settings === undefined ? {} : { settings: textMapArg(args, "settings") }),
    ...(args.replicaZones === undefined ? {} : { replicaZones: textsArg(args, "replicaZones") }),
    ...(args.storagePolicy === undefined ? {} : { storagePolicy: textArg(args, "storagePolicy") }),
    ...(args.fingerprint === undefined ? {} : { fingerprint: textArg(args, "fingerprint") }),
    name: textArg(args, "name"),
    zone: textArg(args, "zone"),
    type: textArg(args, "type"),
    sizeBytes: sizeArg(args),
    tags: args.tags === undefined ? {} : textMapArg(args, "tags"),
  };
}

function blocksRequest(args: Args): SnapshotBlocksRequest {
  return {
    snapshotId: textArg(args, "snapshotId"),
    ...(args.baseSnapshotId === undefined ? {} : { baseSnapshotId: textArg(args, "baseSnapshotId") }),
    from: countArg(args, "from"),
    max: countArg(args, "max"),
  };
}

function attachOptions(args: Args): AttachOptions {
  const credentials = credentialsArg(args);
  return {
    ...(credentials === undefined ? {} : { credentials }),
    ...(args.readOnly === true ? { readOnly: true } : {}),
    ...(args.use === undefined ? {} : { use: textArg(args, "use") }),
    ...(args.caching === undefined ? {} : { caching: textArg(args, "caching") }),
  };
}

function operationArg(args: Args): CloudOp | "*" {
  const op = args.op === "*" ? "*" : cloudOps.find((known) => known === args.op);
  if (op === undefined) throw new CloudError("InvalidArgument", `there is no operation ${String(args.op)}`);
  return op;
}

function toAnswer(error: unknown): CloudError {
  if (error instanceof CloudError) return error;
  return new CloudError("Unavailable", "the disk cloud failed: see its log and try again", { cause: error });
}

/** Binds with mode 0600 from the first moment on, where the umask can be set (not in a worker thread). */
function listen(server: Server, socketPath: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (cause: unknown) =>
      reject(
        new CloudSocketError(
          `the disk cloud cannot listen on ${socketPath}: its directory must exist and the path be shorter than 104 bytes`,
          { cause },
        ),
      );
    try {
      server.once("error", failed);
      underUmask(0o177, () => server.listen(socketPath, () => resolve()));
      if (!isMainThread) chmodSync(socketPath, 0o600);
    } catch (error) {
      failed(error);
    }
  });
}

async function removeStaleSocket(socketPath: string): Promise<void> {
  const isLive = await new Promise<boolean>((resolve) => {
    const probe = connect(socketPath);
    probe.once("connect", () => {
      probe.destroy();
      resolve(true);
    });
    probe.once("error", () => resolve(false));
  });
  if (isLive) {
    throw new CloudSocketError(
      `a disk cloud is already running on ${socketPath}: stop it or use another directory`,
    );
  }
  rmSync(socketPath, { force: true });
}
