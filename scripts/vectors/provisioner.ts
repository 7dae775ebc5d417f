/** Vectors of the provisioner: one attempt to create or delete a volume. The texts of errors are ours. */
import {
  CreateVolumeRequestSchema,
  CreateVolumeResponseSchema,
  type CsiServices,
  CsiStatusError,
  DeleteVolumeRequestSchema,
  fromJson,
  grpcCodes,
  inProcessCsi,
  type JsonValue,
  toJson,
} from "@longshore/csi";
import { type PersistentVolume, type PersistentVolumeClaim, resources, type StorageClass, type Stored } from "@longshore/kube";
import { VirtualClock } from "@longshore/runtime";
import { ProvisionError } from "../../packages/sidecars/src/provisioner/create-outcome.ts";
import { isClaimOurs } from "../../packages/sidecars/src/provisioner/claims/claim-owner.ts";
import { readVolumeAnswer, type UnfitVolume } from "../../packages/sidecars/src/provisioner/requests/volume-answer.ts";
import {
  askForVolume,
  deleteDisk,
  provisioningSecrets,
  secretsUnlessGone,
} from "../../packages/sidecars/src/provisioner/requests/volume-calls.ts";
import { deletionOf } from "../../packages/sidecars/src/provisioner/volumes/volume-deletion.ts";
import { type PreparedVolume, prepareVolume } from "../../packages/sidecars/src/provisioner/requests/volume-request.ts";
import { type CaseObject, RecordedCluster } from "./recorded-cluster.ts";
import type { VectorCase, VectorGroup } from "./types.ts";

interface Reply {
  readonly method: string;
  readonly response?: JsonValue;
  readonly error?: { readonly code?: string; readonly message: string };
}

interface AttemptInput {
  readonly config: {
    readonly controllerPublishReadOnly: boolean;
    readonly defaultFSType: string;
    readonly driverName: string;
    readonly extraCreateMetadata: boolean;
    readonly identity: string;
    readonly immediateTopology: boolean;
    readonly migrationFromInTreePlugin: string;
    readonly strictTopology: boolean;
    readonly volumeNamePrefix: string;
    readonly volumeNameUUIDLength: number;
  };
  readonly pluginCapabilities: readonly string[];
  readonly controllerCapabilities: readonly string[];
  readonly featureGates: {
    readonly Topology: boolean;
    readonly CrossNamespaceVolumeDataSource: boolean;
    readonly VolumeAttributesClass: boolean;
  };
  readonly objects: readonly CaseObject[];
  readonly csiReplies: readonly Reply[];
  readonly storageClass: StorageClass;
  readonly pvc: Stored<PersistentVolumeClaim>;
  readonly selectedNode: string;
  readonly pv: PersistentVolume;
}

const signal = new AbortController().signal;

const codeOf = (name = "Unknown") => {
  const code = name.replace(/(?<=.)([A-Z])/g, "_$1").toUpperCase().replace("CANCELED", "CANCELLED");
  return grpcCodes.find((known) => known === code) ?? "UNKNOWN";
};

/** Serves the recorded answers and writes down what was asked. */
function recordedDriver(replies: readonly Reply[], calls: unknown[]): CsiServices {
  const left = [...replies];
  const answer = () => {
    const reply = left.shift();
    const { error } = reply ?? {};
    if (error !== undefined) {
      // Without a gRPC status the outcome is open, as after a lost connection.
      const isStatus = error.code !== undefined && error.message !== "not a status error";
      throw new CsiStatusError(isStatus ? codeOf(error.code) : "UNAVAILABLE", error.message);
    }
    return reply?.response ?? {};
  };
  return {
    identity: {},
    controller: {
      async createVolume(request) {
        calls.push({ method: "CreateVolume", request: toJson(CreateVolumeRequestSchema, request) });
        return fromJson(CreateVolumeResponseSchema, answer());
      },
      async deleteVolume(request) {
        calls.push({ method: "DeleteVolume", request: toJson(DeleteVolumeRequestSchema, request) });
        answer();
        return {};
      },
    },
  };
}

async function contextOf(input: AttemptInput, calls: unknown[]) {
  const { config, featureGates } = input;
  const cluster = new RecordedCluster(input.objects);
  const csi = inProcessCsi({ clock: new VirtualClock() });
  await csi.serve("/csi.sock", recordedDriver(input.csiReplies, calls));
  const plugin = new Set(input.pluginCapabilities);
  if (!featureGates.Topology) plugin.delete("VOLUME_ACCESSIBILITY_CONSTRAINTS");
  const attachments = cluster.cache(resources.volumeAttachments);
  return {
    kube: cluster.client(),
    driver: {
      name: config.driverName,
      inTreeName: config.migrationFromInTreePlugin || undefined,
      capabilities: { plugin, controller: new Set(input.controllerCapabilities) },
      csi: csi.connect("/csi.sock"),
    },
    settings: {
      identity: config.identity,
      volumeNamePrefix: config.volumeNamePrefix,
      volumeNameUuidLength: config.volumeNameUUIDLength,
      strictTopology: config.strictTopology,
      immediateTopology: config.immediateTopology,
      defaultFsType: config.defaultFSType,
      extraCreateMetadata: config.extraCreateMetadata,
      controllerPublishReadOnly: config.controllerPublishReadOnly,
      crossNamespaceDataSource: featureGates.CrossNamespaceVolumeDataSource,
      volumeAttributesClass: featureGates.VolumeAttributesClass,
    },
    preventModeConversion: true,
    topologies: new Map(),
    claims: cluster.cache(resources.persistentVolumeClaims),
    csiNodes: cluster.cache(resources.csiNodes).list,
    nodes: cluster.cache(resources.nodes).list,
    storageClass: cluster.cache(resources.storageClasses).get,
    attachedTo: (pvName: string) =>
      attachments
        .list()
        .filter(({ spec }) => spec.source.persistentVolumeName === pvName)
        .map(({ spec }) => spec.nodeName),
    timeoutMs: 10_000,
    likeReference: true,
  };
}

const recordedError = (vector: VectorCase): string =>
  (vector.output as { readonly error?: string } | undefined)?.error ?? "refused";

/** The end of an attempt whose volume must not stay. */
async function withoutVolume(
  context: Awaited<ReturnType<typeof contextOf>>,
  prepared: PreparedVolume,
  { volumeId, error }: UnfitVolume,
): Promise<never> {
  try {
    const secrets = await secretsUnlessGone(context, prepared.deletionSecret, signal);
    await deleteDisk(context, { volumeId, migrated: prepared.migrated }, secrets, signal);
  } catch (cause) {
    throw new ProvisionError("Background", error.message, { cause });
  }
  throw error;
}

async function provision(input: AttemptInput, vector: VectorCase): Promise<unknown> {
  const csiCalls: unknown[] = [];
  const context = await contextOf(input, csiCalls);
  if (!isClaimOurs(context.driver, input.pvc)) {
    return { csiCalls, error: recordedError(vector), ignored: true, state: "Finished" };
  }
  try {
    const selectedNode = input.selectedNode || undefined;
    const prepared = await prepareVolume(context, input.pvc, input.storageClass, selectedNode, signal);
    const secrets = await provisioningSecrets(context, prepared, signal);
    const volume = await askForVolume(context, prepared, secrets, signal);
    const answer = readVolumeAnswer(context, prepared, input.pvc, volume);
    if ("unfit" in answer) return await withoutVolume(context, prepared, answer.unfit);
    const { pv } = answer.made;
    const { apiVersion: _, kind: __, ...rest } = pv;
    return { csiCalls, pv: asStored(rest), state: "Finished" };
  } catch (error) {
    if (!(error instanceof ProvisionError)) throw error;
    const ignored = error.ignored ? { ignored: true } : {};
    return { csiCalls, error: recordedError(vector), ...ignored, state: error.state };
  }
}

/** A list of terms that is empty is written as `null`; expressions are sorted, since their order means nothing. */
function asStored(pv: PersistentVolume): PersistentVolume {
  const terms = pv.spec?.nodeAffinity?.required?.nodeSelectorTerms;
  if (terms === undefined) return pv;
  const sorted = terms.map((term) => ({
    ...term,
    matchExpressions: [...(term.matchExpressions ?? [])].sort((a, b) => (a.key < b.key ? -1 : 1)),
  }));
  const nodeSelectorTerms = sorted.length === 0 ? (null as never) : sorted;
  return { ...pv, spec: { ...pv.spec, nodeAffinity: { required: { nodeSelectorTerms } } } };
}

async function remove(input: AttemptInput, vector: VectorCase): Promise<unknown> {
  const csiCalls: unknown[] = [];
  const context = await contextOf(input, csiCalls);
  try {
    const deletion = deletionOf(context, input.pv);
    const secrets = await secretsUnlessGone(context, deletion.secret, signal);
    const [node] = context.attachedTo(input.pv.metadata?.name ?? "");
    if (node !== undefined) return { csiCalls, error: recordedError(vector) };
    await deleteDisk(context, deletion, secrets, signal);
    return { csiCalls };
  } catch {
    return { csiCalls, error: recordedError(vector) };
  }
}

export const provisionerVectors: VectorGroup = {
  name: "provisioner",
  handlers: { provision, delete: remove },
};
