/**
 * Vectors of the attacher. The texts of errors are ours, so a case is compared by what each request leaves
 * behind; a case that agrees returns the recorded answer.
 */
import { isDeepStrictEqual } from "node:util";
import { type CsiServices, CsiStatusError, grpcCodes, inProcessCsi, toJson, VolumeCapabilitySchema } from "@longshore/csi";
import { resources, type VolumeAttachment, walkSteps } from "@longshore/kube";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { getInTreeNameFromCSIName, isMigratedCSIDriverByName } from "@longshore/translation";
import type { AttachContext } from "../../packages/sidecars/src/attacher/attach-context.ts";
import { attachSteps } from "../../packages/sidecars/src/attacher/attach-steps.ts";
import { shouldEnqueue } from "../../packages/sidecars/src/attacher/attach-triggers.ts";
import { attachRules } from "../../packages/sidecars/src/attacher/attach-rules.ts";
import { contradicted } from "../../packages/sidecars/src/attacher/published-volumes.ts";
import { volumeFinalizerSteps } from "../../packages/sidecars/src/attacher/volume-finalizer-steps.ts";
import { VolumeReleases } from "../../packages/sidecars/src/attacher/volume-releases.ts";
import { volumeNameOf } from "../../packages/sidecars/src/common/attachments.ts";
import { addFinalizerPatch, removeFinalizerPatch } from "@longshore/kube";
import { type CaseObject, type RecordedAction, RecordedCluster } from "./recorded-cluster.ts";
import type { VectorCase, VectorGroup } from "./types.ts";

interface Reply {
  readonly call: "attach" | "detach";
  readonly error?: { readonly code?: string; readonly grpc: boolean; readonly message: string };
  readonly publishContext?: Record<string, string> | null;
}

interface SyncInput {
  readonly driverName: string;
  readonly supportsPublishReadOnly: boolean;
  readonly supportsSingleNodeMultiWriter: boolean;
  readonly defaultFSType: string;
  readonly objects: readonly CaseObject[];
  readonly event: {
    readonly type: string;
    readonly kind: string;
    readonly name?: string;
    readonly object?: VolumeAttachment;
  } | null;
  readonly publishedVolumes?: Readonly<Record<string, readonly string[]>>;
  readonly csiReplies: readonly Reply[];
}

interface SyncOutput {
  readonly actions: readonly (RecordedAction & { readonly patch?: unknown })[];
  readonly csiCalls: readonly unknown[];
  readonly requeued: readonly string[];
}

const signal = new AbortController().signal;

/** `DeadlineExceeded` as the protocol writes it. */
const codeOf = (name = "Unknown") => {
  const code = name.replace(/(?<=.)([A-Z])/g, "_$1").toUpperCase().replace("CANCELED", "CANCELLED");
  return grpcCodes.find((known) => known === code) ?? "UNKNOWN";
};

/** Serves the recorded answers and writes down what was asked. */
function recordedDriver(replies: readonly Reply[], calls: unknown[]): CsiServices {
  const left = [...replies];
  const answer = () => {
    const reply = left.shift();
    if (reply?.error !== undefined) throw new CsiStatusError(codeOf(reply.error.code), reply.error.message);
    return reply;
  };
  const orNull = (map: Record<string, string>) => (Object.keys(map).length === 0 ? null : map);
  return {
    identity: {},
    controller: {
      async controllerPublishVolume(request) {
        calls.push({
          call: "attach",
          nodeId: request.nodeId,
          readOnly: request.readonly,
          secrets: orNull(request.secrets),
          volumeCapability:
            request.volumeCapability === undefined ? null : toJson(VolumeCapabilitySchema, request.volumeCapability),
          volumeContext: orNull(request.volumeContext),
          volumeId: request.volumeId,
        });
        return { publishContext: answer()?.publishContext ?? {} };
      },
      async controllerUnpublishVolume(request) {
        const { nodeId, volumeId } = request;
        calls.push({ call: "detach", nodeId, secrets: orNull(request.secrets), volumeId });
        answer();
        return {};
      },
    },
  };
}

async function sync(input: SyncInput, vector: VectorCase): Promise<unknown> {
  const emptyFinalizers = JSON.stringify(vector.output).includes('"path":"/metadata/finalizers","value":[]');
  const cluster = new RecordedCluster(input.objects, emptyFinalizers);
  const csiCalls: unknown[] = [];
  const clock = new VirtualClock();
  const csi = inProcessCsi({ clock });
  await csi.serve("/csi.sock", recordedDriver(input.csiReplies, csiCalls));
  const connection = csi.connect("/csi.sock");
  const kube = cluster.client();
  const attachments = cluster.cache(resources.volumeAttachments);
  const controller = new Set<string>(["PUBLISH_UNPUBLISH_VOLUME"]);
  if (input.supportsPublishReadOnly) controller.add("PUBLISH_READONLY");
  if (input.supportsSingleNodeMultiWriter) controller.add("SINGLE_NODE_MULTI_WRITER");
  const name = input.driverName;
  const driver = {
    name,
    inTreeName: isMigratedCSIDriverByName(name) ? getInTreeNameFromCSIName(name) : undefined,
    capabilities: { plugin: new Set<string>(), controller },
    csi: connection,
  };
  const context: AttachContext = {
    env: { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter, kube, csi: connection },
    driver,
    events: { event() {} },
    attachments: {
      ...attachments,
      byIndex: (_, pvName) => attachments.list().filter((va) => volumeNameOf(va) === pvName),
    },
    volumes: cluster.cache(resources.persistentVolumes),
    csiNodes: cluster.cache(resources.csiNodes),
    rules: attachRules(driver, input.defaultFSType, false),
    forced: new Set(),
    releases: new VolumeReleases(),
    timeoutMs: 15_000,
  };
  const requeued: string[] = [];
  const pass = async (kind: "VolumeAttachment" | "PersistentVolume", key: string) => {
    const walked =
      kind === "VolumeAttachment"
        ? walkSteps(attachSteps(context), { key, signal })
        : walkSteps(volumeFinalizerSteps(context), { key, signal });
    await walked.catch(() => requeued.push(`${kind}/${key}`));
  };
  const { event } = input;
  if (event === null) {
    const published = new Map(Object.entries(input.publishedVolumes ?? {}));
    for (const va of contradicted(context, attachments.list(), published)) {
      context.forced.add(va.metadata.name);
      await pass("VolumeAttachment", va.metadata.name);
    }
  } else if (event.type === "DELETED") {
    const pvName = event.object === undefined ? undefined : volumeNameOf(event.object);
    if (pvName !== undefined) await pass("PersistentVolume", pvName);
  } else {
    await pass(event.kind as "VolumeAttachment" | "PersistentVolume", event.name ?? "");
  }
  const ours = { actions: cluster.actions, csiCalls, requeued };
  return isDeepStrictEqual(plain(ours), plain(essenceOf(vector.output as SyncOutput, input))) ? vector.output : ours;
}

/**
 * Allowed difference `detach-in-one-write`, the only one of this group. The recorded attacher patches the status of an
 * attachment also when taking off its finalizer has just ended it, and is answered 404; ours does not. Nothing but that
 * patch is passed over: it must come right after the one that left a deleted attachment without any finalizer.
 */
function detachInOneWrite(output: SyncOutput, input: SyncInput): SyncOutput["actions"] {
  const cluster = new RecordedCluster(input.objects);
  return output.actions.filter((action, at) => {
    const before = output.actions[at - 1];
    if (before?.name !== action.name || before.resource !== "volumeattachments") return true;
    if (action.resource !== "volumeattachments" || action.subresource !== "status") return true;
    if (before.verb !== "patch" || before.subresource !== undefined || before.patch === undefined) return true;
    const left = cluster.patched("VolumeAttachment", action.name, before.patch);
    return !(left?.metadata?.deletionTimestamp && (left.metadata.finalizers ?? []).length === 0);
  });
}

/** The recorded answer in the form of ours: patches by what they leave behind. */
function essenceOf(output: SyncOutput, input: SyncInput): unknown {
  const cluster = new RecordedCluster(input.objects);
  const kinds: Record<string, string> = { volumeattachments: "VolumeAttachment", persistentvolumes: "PersistentVolume" };
  for (const { patch, ...action } of detachInOneWrite(output, input)) {
    const before = cluster.find(kinds[action.resource] ?? "", action.name);
    if (action.verb !== "patch") cluster.actions.push(action);
    else if (before !== undefined) cluster.record(action.resource, action.name, action.subresource, before, patch);
  }
  const csiCalls = output.csiCalls.map((call) => {
    const { secrets } = call as { readonly secrets?: object | null };
    return { ...(call as object), secrets: Object.keys(secrets ?? {}).length === 0 ? null : secrets };
  });
  return { actions: cluster.actions, csiCalls, requeued: output.requeued };
}

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

interface FinalizerInput {
  readonly finalizers: readonly string[] | null;
  readonly finalizer: string;
}

export const attacherVectors: VectorGroup = {
  name: "attacher",
  handlers: {
    sync,
    addFinalizerPatch: (i: FinalizerInput) => addFinalizerPatch(i.finalizers, i.finalizer),
    removeFinalizerPatch: (i: FinalizerInput) => removeFinalizerPatch(i.finalizers, i.finalizer),
    shouldEnqueue: (i: { old: VolumeAttachment; new: VolumeAttachment }) => shouldEnqueue(i.old, i.new),
  },
};
