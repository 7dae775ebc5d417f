/** Faults of the node service. */
import {
  CsiStatusError,
  create,
  VolumeCapability_AccessMode_Mode as Mode,
  NodeExpandVolumeResponseSchema,
  NodeGetCapabilitiesResponseSchema,
  NodeGetInfoResponseSchema,
  NodeGetVolumeStatsResponseSchema,
  NodeServiceCapability_RPC_Type as NodeRpc,
  VolumeUsage_Unit as Unit,
} from "@longshore/csi";
import {
  type AnswerOf,
  answersOn,
  answersWhen,
  around,
  asks,
  changes,
  everyCall,
  type Fault,
  notTwice,
  type RequestOf,
  type Rpc,
} from "./fault.ts";
import type { FaultName } from "./fault-descriptions.ts";

const service = "node";
const some = { usage: [{ total: 2n, available: 1n, used: 1n, unit: Unit.BYTES }], volumeCondition: {} };
const nodePadding = `-${"x".repeat(300)}`;

/** OK where a field is missing. */
function okWithout<R extends Rpc<"node">>(
  rpc: R,
  when: (request: RequestOf<"node", R>) => boolean,
  answer: AnswerOf<"node", R>,
): Fault {
  return answersWhen(service, rpc, when, () => answer);
}

const isUnknownVolume = (error: CsiStatusError) => error.message.includes("does not exist");
const isElsewhere = (error: CsiStatusError) => !isUnknownVolume(error);
const isRelative = (path: string) => path !== "" && !path.startsWith("/");

const published = (request: { readonly volumeId: string; readonly targetPath: string }) =>
  `${request.volumeId} ${request.targetPath}`;
const staged = (request: { readonly volumeId: string; readonly stagingTargetPath: string }) =>
  `${request.volumeId} ${request.stagingTargetPath}`;
const unpublished = {
  service,
  rpc: "nodeUnpublishVolume",
  key: ({ volumeId, targetPath }: Readonly<Record<string, unknown>>) => `${volumeId} ${targetPath}`,
} as const;
const unstaged = {
  service,
  rpc: "nodeUnstageVolume",
  key: ({ volumeId, stagingTargetPath }: Readonly<Record<string, unknown>>) =>
    `${volumeId} ${stagingTargetPath}`,
} as const;

/** Fails when the reverse call has nothing to undo. */
function needsDone<D extends Rpc<"node">, U extends Rpc<"node">>(
  done: { readonly rpc: D; readonly key: (request: RequestOf<"node", D>) => string },
  undo: { readonly rpc: U; readonly key: (request: RequestOf<"node", U>) => string },
): Fault {
  return (services, context) => {
    const known = new Set<string>();
    const noting = around(
      service,
      done.rpc,
      () =>
        async ({ request, next }): Promise<AnswerOf<"node", D>> => {
          const answer = await next();
          known.add(done.key(request));
          return answer;
        },
    );
    const refusing = around(
      service,
      undo.rpc,
      () =>
        async ({ request, next }): Promise<AnswerOf<"node", U>> => {
          const answer = await next();
          if (!known.delete(undo.key(request)))
            throw new CsiStatusError("INTERNAL", "there is nothing to undo");
          return answer;
        },
    );
    return refusing(noting(services, context), context);
  };
}

/** By name. */
export const nodeFaults = {
  "node-id-empty": changes(service, "nodeGetInfo", (answer) => ({ ...answer, nodeId: "" })),
  "node-id-too-long": (services, context) => {
    const understanding = everyCall(({ request, next }) => {
      const { nodeId } = request;
      return next(
        typeof nodeId === "string" ? { ...request, nodeId: nodeId.replace(nodePadding, "") } : request,
      );
    });
    const padded = changes(service, "nodeGetInfo", (answer) => {
      const message = create(NodeGetInfoResponseSchema, answer);
      return { ...message, nodeId: `${message.nodeId}${nodePadding}` };
    });
    return padded(understanding(services, context), context);
  },
  "node-max-volumes-negative": changes(service, "nodeGetInfo", (answer) => ({
    ...create(NodeGetInfoResponseSchema, answer),
    maxVolumesPerNode: -1n,
  })),
  "node-topology-missing": changes(service, "nodeGetInfo", (answer) => {
    const { accessibleTopology: _where, ...rest } = create(NodeGetInfoResponseSchema, answer);
    return rest;
  }),
  "node-topology-malformed": changes(service, "nodeGetInfo", (answer) => {
    const { nodeId, maxVolumesPerNode } = create(NodeGetInfoResponseSchema, answer);
    return { nodeId, maxVolumesPerNode, accessibleTopology: { segments: { "-no key!": "somewhere" } } };
  }),
  "node-capability-unknown": changes(service, "nodeGetCapabilities", (answer) => {
    const { capabilities } = create(NodeGetCapabilitiesResponseSchema, answer);
    const unknown = { type: { case: "rpc" as const, value: { type: NodeRpc.UNKNOWN } } };
    return { capabilities: [...capabilities, unknown] };
  }),

  "stage-without-id-accepted": okWithout("nodeStageVolume", ({ volumeId }) => volumeId === "", {}),
  "stage-without-path-accepted": okWithout(
    "nodeStageVolume",
    ({ volumeId, stagingTargetPath }) => volumeId !== "" && stagingTargetPath === "",
    {},
  ),
  "stage-without-capability-accepted": okWithout(
    "nodeStageVolume",
    ({ volumeId, stagingTargetPath, volumeCapability }) =>
      volumeId !== "" && stagingTargetPath !== "" && volumeCapability === undefined,
    {},
  ),
  "stage-unknown-volume-accepted": answersOn(service, "nodeStageVolume", "NOT_FOUND", () => ({})),
  "stage-relative-path-accepted": okWithout(
    "nodeStageVolume",
    ({ stagingTargetPath }) => isRelative(stagingTargetPath),
    {},
  ),
  "stage-not-idempotent": notTwice(service, "nodeStageVolume", staged, {
    code: "ALREADY_EXISTS",
    undone: unstaged,
  }),
  "stage-incompatible-repeat-accepted": answersOn(service, "nodeStageVolume", "ALREADY_EXISTS", () => ({})),
  "stage-unpublished-accepted": answersOn(
    service,
    "nodeStageVolume",
    "FAILED_PRECONDITION",
    () => ({}),
    ({ message }) => message.includes("not attached"),
  ),
  "stage-erases-data": (services, context) => {
    const open = new Set<string>();
    const staging = around(service, "nodeStageVolume", () => async ({ request, next, context: { host } }) => {
      const answer = await next();
      const path = request.stagingTargetPath;
      const isNew = !open.has(staged(request));
      open.add(staged(request));
      if (!isNew || !(await host.isMountPoint(path))) return answer;
      for (const name of (await host.readDirectory(path)) ?? []) {
        if (name !== "lost+found") await host.removeTree(`${path}/${name}`);
      }
      return answer;
    });
    const unstaging = around(service, "nodeUnstageVolume", () => async ({ request, next }) => {
      open.delete(staged(request));
      return next();
    });
    return staging(unstaging(services, context), context);
  },
  "unstage-without-id-accepted": okWithout("nodeUnstageVolume", ({ volumeId }) => volumeId === "", {}),
  "unstage-without-path-accepted": okWithout(
    "nodeUnstageVolume",
    ({ volumeId, stagingTargetPath }) => volumeId !== "" && stagingTargetPath === "",
    {},
  ),
  "unstage-not-idempotent": needsDone(
    { rpc: "nodeStageVolume", key: staged },
    { rpc: "nodeUnstageVolume", key: staged },
  ),

  "node-publish-without-id-accepted": okWithout("nodePublishVolume", ({ volumeId }) => volumeId === "", {}),
  "node-publish-without-target-accepted": okWithout(
    "nodePublishVolume",
    ({ volumeId, targetPath }) => volumeId !== "" && targetPath === "",
    {},
  ),
  "node-publish-without-capability-accepted": okWithout(
    "nodePublishVolume",
    ({ volumeId, targetPath, volumeCapability }) =>
      volumeId !== "" && targetPath !== "" && volumeCapability === undefined,
    {},
  ),
  "node-publish-unknown-volume-accepted": answersOn(service, "nodePublishVolume", "NOT_FOUND", () => ({})),
  "node-publish-relative-path-accepted": okWithout(
    "nodePublishVolume",
    ({ targetPath }) => isRelative(targetPath),
    {},
  ),
  "node-publish-unstaged-accepted": answersOn(
    service,
    "nodePublishVolume",
    "FAILED_PRECONDITION",
    () => ({}),
    ({ message }) => !message.includes("one writer"),
  ),
  "node-publish-not-idempotent": notTwice(service, "nodePublishVolume", published, {
    code: "ALREADY_EXISTS",
    undone: unpublished,
  }),
  "node-publish-incompatible-repeat-accepted": answersOn(
    service,
    "nodePublishVolume",
    "ALREADY_EXISTS",
    () => ({}),
  ),
  "single-writer-published-twice": asks(service, "nodePublishVolume", (request) => {
    const capability = request.volumeCapability;
    const mode = capability?.accessMode;
    if (mode?.mode !== Mode.SINGLE_NODE_SINGLE_WRITER) return request;
    const accessMode = { ...mode, mode: Mode.SINGLE_NODE_MULTI_WRITER };
    return { ...request, volumeCapability: { ...capability, accessMode } as typeof capability & object };
  }),
  "multi-writer-refused": (services, context) => {
    const targets = new Map<string, string>();
    const refusing = around(service, "nodePublishVolume", () => async ({ request, next }) => {
      const isMany = request.volumeCapability?.accessMode?.mode === Mode.SINGLE_NODE_MULTI_WRITER;
      const other = targets.get(request.volumeId);
      if (isMany && other !== undefined && other !== request.targetPath) {
        throw new CsiStatusError("FAILED_PRECONDITION", `the volume is published at ${other}`);
      }
      const answer = await next();
      if (isMany) targets.set(request.volumeId, request.targetPath);
      return answer;
    });
    const forgetting = around(service, "nodeUnpublishVolume", () => async ({ request, next }) => {
      if (targets.get(request.volumeId) === request.targetPath) targets.delete(request.volumeId);
      return next();
    });
    return refusing(forgetting(services, context), context);
  },
  "node-publish-ignores-readonly": (services, context) => {
    const asked = new Map<string, boolean>();
    const ignoring = around(service, "nodePublishVolume", () => async ({ request, next }) => {
      const before = asked.get(published(request));
      if (before !== undefined && before !== request.readonly) {
        throw new CsiStatusError("ALREADY_EXISTS", "the volume is published with another readonly flag");
      }
      const answer = await next({ ...request, readonly: false });
      asked.set(published(request), request.readonly);
      return answer;
    });
    const forgetting = around(service, "nodeUnpublishVolume", () => async ({ request, next }) => {
      asked.delete(published(request));
      return next();
    });
    return ignoring(forgetting(services, context), context);
  },
  "node-publish-leaves-target-empty": okWithout(
    "nodePublishVolume",
    ({ volumeId, targetPath, volumeCapability }) =>
      volumeId !== "" && targetPath.startsWith("/") && volumeCapability !== undefined,
    {},
  ),
  "node-unpublish-without-id-accepted": okWithout(
    "nodeUnpublishVolume",
    ({ volumeId }) => volumeId === "",
    {},
  ),
  "node-unpublish-without-target-accepted": okWithout(
    "nodeUnpublishVolume",
    ({ volumeId, targetPath }) => volumeId !== "" && targetPath === "",
    {},
  ),
  "node-unpublish-not-idempotent": needsDone(
    { rpc: "nodePublishVolume", key: published },
    { rpc: "nodeUnpublishVolume", key: published },
  ),
  "node-unpublish-leaves-target": around(
    service,
    "nodeUnpublishVolume",
    () =>
      async ({ request, next, context: { host } }) => {
        const wasThere = (await host.stat(request.targetPath).catch(() => undefined)) !== undefined;
        const answer = await next();
        if (wasThere) await host.makeDirectory(request.targetPath);
        return answer;
      },
  ),

  "stats-without-id-accepted": okWithout("nodeGetVolumeStats", ({ volumeId }) => volumeId === "", some),
  "stats-without-path-accepted": okWithout(
    "nodeGetVolumeStats",
    ({ volumeId, volumePath }) => volumeId !== "" && volumePath === "",
    some,
  ),
  "stats-unknown-volume-accepted": answersOn(
    service,
    "nodeGetVolumeStats",
    "NOT_FOUND",
    () => some,
    isUnknownVolume,
  ),
  "stats-unknown-path-accepted": answersOn(
    service,
    "nodeGetVolumeStats",
    "NOT_FOUND",
    () => some,
    isElsewhere,
  ),
  "stats-without-usage": changes(service, "nodeGetVolumeStats", (answer) => ({
    ...create(NodeGetVolumeStatsResponseSchema, answer),
    usage: [],
  })),
  "stats-unit-unknown": changes(service, "nodeGetVolumeStats", (answer) => {
    const message = create(NodeGetVolumeStatsResponseSchema, answer);
    return { ...message, usage: message.usage.map((usage) => ({ ...usage, unit: Unit.UNKNOWN })) };
  }),
  "stats-used-negative": changes(service, "nodeGetVolumeStats", (answer) => {
    const message = create(NodeGetVolumeStatsResponseSchema, answer);
    return { ...message, usage: message.usage.map((usage) => ({ ...usage, used: -1n })) };
  }),
  "stats-without-condition": changes(service, "nodeGetVolumeStats", (answer) => {
    const { volumeCondition: _condition, ...rest } = create(NodeGetVolumeStatsResponseSchema, answer);
    return rest;
  }),
  "node-expand-without-id-accepted": okWithout("nodeExpandVolume", ({ volumeId }) => volumeId === "", {}),
  "node-expand-without-path-accepted": okWithout(
    "nodeExpandVolume",
    ({ volumeId, volumePath }) => volumeId !== "" && volumePath === "",
    {},
  ),
  "node-expand-unknown-volume-accepted": answersOn(
    service,
    "nodeExpandVolume",
    "NOT_FOUND",
    ({ request }) => ({ capacityBytes: request.capacityRange?.requiredBytes ?? 0n }),
    isUnknownVolume,
  ),
  "node-expand-unknown-path-accepted": answersOn(
    service,
    "nodeExpandVolume",
    "NOT_FOUND",
    ({ request }) => ({ capacityBytes: request.capacityRange?.requiredBytes ?? 0n }),
    isElsewhere,
  ),
  "node-expand-below-required": changes(service, "nodeExpandVolume", (answer, { capacityRange }) => {
    const { requiredBytes = 0n } = capacityRange ?? {};
    const message = create(NodeExpandVolumeResponseSchema, answer);
    return { ...message, capacityBytes: requiredBytes > 0n ? requiredBytes - 1n : 1n };
  }),
} as const satisfies Partial<Record<FaultName, Fault>>;
