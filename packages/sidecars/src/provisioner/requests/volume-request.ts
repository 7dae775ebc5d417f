/**
 * From a claim and its class to the CreateVolume request, and what of the PersistentVolume is known before
 * the driver is asked (docs/behaviour/sidecars.md 2.3). Reads objects; changes nothing.
 */
import type { CreateVolumeRequestSchema, MessageInitShape } from "@longshore/csi";
import {
  type PersistentVolumeClaim,
  resources,
  type SecretReference,
  type StorageClass,
  type Stored,
} from "@longshore/kube";
import { type SecretKind, secretReference, stripParameters } from "@longshore/storage";
import { ProvisionError } from "../create-outcome.ts";
import { type ContentSource, resolveSource } from "../sources/content-source.ts";
import type { DataSource } from "../sources/data-source.ts";
import type { RequestContext } from "./request-context.ts";
import { type Places, selectTopology } from "./select-topology.ts";
import { draftVolume, finished, type VolumeDraft } from "./volume-draft.ts";

/** Secret references of the volume to be, by the field of its CSI source. */
export interface VolumeSecretRefs {
  readonly controllerPublishSecretRef?: Required<SecretReference>;
  readonly nodeStageSecretRef?: Required<SecretReference>;
  readonly nodePublishSecretRef?: Required<SecretReference>;
  readonly controllerExpandSecretRef?: Required<SecretReference>;
  readonly nodeExpandSecretRef?: Required<SecretReference>;
}

/** A request ready to be sent, as often as need be. Holds no secret: each call reads its own. */
export interface PreparedVolume {
  readonly pvName: string;
  readonly request: Omit<MessageInitShape<typeof CreateVolumeRequestSchema>, "secrets" | "$typeName">;
  readonly requiredBytes: bigint;
  /** What the volume is copied from, to be protected before the call. */
  readonly dataSource: DataSource | undefined;
  /** File system of the volume; undefined for a block volume. */
  readonly fsType: string | undefined;
  /** The class as the driver sees it, translated when its plugin migrates. */
  readonly storageClass: StorageClass;
  /** The provisioner that the class names, which is the in-tree plugin when it migrates. */
  readonly provisioner: string;
  readonly migrated: boolean;
  readonly refs: VolumeSecretRefs;
  readonly deletionSecret: Required<SecretReference> | undefined;
  readonly modifySecret: Required<SecretReference> | undefined;
  /** The driver knows topology and a node is chosen, so that another node may do when this one does not. */
  readonly mayReschedule: boolean;
}

/** What was found for a draft. */
export interface FoundForDraft {
  readonly contentSource: ContentSource | undefined;
  readonly places: Places;
}

/** The whole way at once, for a request that is only to find a volume or to ask for room. The errors are those of its parts. */
export async function prepareVolume(
  context: RequestContext,
  claim: Stored<PersistentVolumeClaim>,
  storageClass: StorageClass,
  selectedNode: string | undefined,
  signal: AbortSignal,
): Promise<PreparedVolume> {
  const draft = draftVolume(context, claim, storageClass);
  const { dataSource, attributesClass } = draft;
  const contentSource =
    dataSource === undefined ? undefined : await resolveSource(context, claim, dataSource, signal);
  const places = selectTopology(context, claim, draft.storageClass, selectedNode);
  const prepared = composeRequest(context, claim, draft, { contentSource, places }, selectedNode);
  if (attributesClass === undefined) return prepared;
  return withParameters(prepared, await mutableParameters(context, attributesClass, signal));
}

/**
 * The request, but for the parameters of a VolumeAttributesClass. Pure.
 * @throws ProvisionError `NoChange` or `Finished`: the driver was not asked
 */
export function composeRequest(
  { driver, settings }: Pick<RequestContext, "driver" | "settings">,
  claim: Stored<PersistentVolumeClaim>,
  draft: VolumeDraft,
  { contentSource, places }: FoundForDraft,
  selectedNode: string | undefined,
): PreparedVolume {
  const { pvName, requiredBytes, storageClass } = draft;
  const refs = secretsOf(claim, draft);
  const parameters = finished(() => stripParameters(storageClass.parameters ?? {}));
  const hasTopology = driver.capabilities.plugin.has("VOLUME_ACCESSIBILITY_CONSTRAINTS");
  return {
    pvName,
    request: {
      name: pvName,
      capacityRange: { requiredBytes },
      volumeCapabilities: draft.volumeCapabilities,
      parameters: settings.extraCreateMetadata ? { ...parameters, ...namesOf(claim, pvName) } : parameters,
      ...(contentSource === undefined ? {} : { volumeContentSource: contentSource }),
      ...(places === undefined ? {} : { accessibilityRequirements: places }),
    },
    requiredBytes,
    dataSource: draft.dataSource,
    fsType: claim.spec?.volumeMode === "Block" ? undefined : draft.fsType,
    storageClass,
    provisioner: draft.provisioner,
    migrated: draft.migrated,
    refs: refs.volume,
    deletionSecret: refs.provisioner,
    modifySecret: refs.modify,
    mayReschedule: hasTopology && selectedNode !== undefined,
  };
}

function namesOf({ metadata }: Stored<PersistentVolumeClaim>, pvName: string): Record<string, string> {
  return {
    "csi.storage.k8s.io/pvc/name": metadata.name,
    "csi.storage.k8s.io/pvc/namespace": metadata.namespace ?? "",
    "csi.storage.k8s.io/pv/name": pvName,
  };
}

function secretsOf({ metadata }: Stored<PersistentVolumeClaim>, { pvName, storageClass }: VolumeDraft) {
  const { name, namespace = "", annotations = {} } = metadata;
  const parameters = storageClass.parameters ?? {};
  // Most classes name no secret at all.
  const namesSecrets = Object.keys(parameters).some((key) => /secret/i.test(key));
  const refOf = (kind: SecretKind) =>
    namesSecrets ? secretReference(kind, parameters, pvName, { name, namespace, annotations }) : undefined;
  return unchanged("a secret of the class cannot be resolved", () => ({
    provisioner: refOf("Provisioner"),
    modify: refOf("ControllerModify"),
    volume: withoutUndefined({
      controllerPublishSecretRef: refOf("ControllerPublish"),
      nodeStageSecretRef: refOf("NodeStage"),
      nodePublishSecretRef: refOf("NodePublish"),
      controllerExpandSecretRef: refOf("ControllerExpand"),
      nodeExpandSecretRef: refOf("NodeExpand"),
    }),
  }));
}

/** The parameters of the VolumeAttributesClass of this name. @throws ProvisionError `NoChange` or `Finished` */
export async function mutableParameters(
  { kube, driver }: Pick<RequestContext, "kube" | "driver">,
  name: string,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const found = await kube.get(resources.volumeAttributesClasses, { name }, { signal });
  if (found === undefined)
    throw new ProvisionError("NoChange", `VolumeAttributesClass "${name}" not found: create it`);
  if (found.driverName !== driver.name) {
    throw new ProvisionError(
      "Finished",
      `VolumeAttributesClass "${name}" is of another driver: choose one of ${driver.name}`,
    );
  }
  return { ...found.parameters };
}

/** The request with the parameters of the VolumeAttributesClass. */
export function withParameters(prepared: PreparedVolume, parameters: Record<string, string>): PreparedVolume {
  return { ...prepared, request: { ...prepared.request, mutableParameters: parameters } };
}

function unchanged<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw new ProvisionError("NoChange", what, { cause });
  }
}

function withoutUndefined<T extends object>(object: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as never;
}
