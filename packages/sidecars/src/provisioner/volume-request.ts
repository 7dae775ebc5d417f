/**
 * From a claim and its class to the CreateVolume request, and what of the PersistentVolume is known before
 * the driver is asked (docs/behaviour/sidecars.md 2.3). Reads secrets; changes nothing.
 */
import type { CreateVolumeRequestSchema, MessageInitShape } from "@longshore/csi";
import {
  type CSINode,
  type Node,
  type PersistentVolumeClaim,
  parseQuantity,
  resources,
  type SecretReference,
  type StorageClass,
  type Stored,
} from "@longshore/kube";
import {
  accessibilityRequirements,
  claimCapabilities,
  fsTypeOf,
  type SecretKind,
  secretReference,
  stripParameters,
  TopologyError,
  type TopologyMemory,
  volumeName,
} from "@longshore/storage";
import { translateInTreeStorageClassToCSI } from "@longshore/translation";
import { resolveSource, type SourceContext } from "./content-source.ts";
import { ProvisionError } from "./create-outcome.ts";
import { type DataSource, dataSourceOf } from "./data-source.ts";
import type { TopologyView } from "./topology-view.ts";

/** Settings that decide what volumes look like; the defaults are in `provisioner.ts`. */
export interface VolumeSettings {
  /** Written into every volume's attributes, to identify the provisioner that created it. */
  readonly identity: string;
  readonly volumeNamePrefix: string;
  /** −1: the whole uid. */
  readonly volumeNameUuidLength: number;
  readonly strictTopology: boolean;
  readonly immediateTopology: boolean;
  readonly defaultFsType: string;
  /** Passes the names of claim and volume to the driver. */
  readonly extraCreateMetadata: boolean;
  /** A volume that is ReadOnlyMany only is published read-only. */
  readonly controllerPublishReadOnly: boolean;
  /** Volumes may be made from another namespace's sources (gate CrossNamespaceVolumeDataSource). */
  readonly crossNamespaceDataSource: boolean;
  /** `spec.volumeAttributesClassName` is heeded (gate VolumeAttributesClass). */
  readonly volumeAttributesClass: boolean;
}

/** What the request is made from besides claim and class. */
export interface RequestContext extends SourceContext {
  readonly settings: VolumeSettings;
  readonly csiNodes: () => readonly CSINode[];
  readonly nodes: () => readonly Node[];
  /** What an attempt would see of the cluster's topology now; left out: nodes and CSINodes are gone through. */
  readonly topologyNow?: TopologyView["now"];
  /**
   * By claim uid, what the last attempt saw of the cluster's topology, so that the next asks for the same; dropped
   * once the driver is certainly not working on the claim (docs/behaviour/sidecars.md 2.3).
   */
  readonly topologies: Map<string, SeenTopology>;
}

/** What an attempt saw; void for another node. */
export interface SeenTopology {
  readonly selectedNode: string | undefined;
  readonly memory: TopologyMemory;
}

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

/**
 * @param selectedNode undefined with immediate binding
 * @throws ProvisionError `Finished` or `NoChange` (both: the driver was not asked), or `Reschedule`
 */
export async function prepareVolume(
  context: RequestContext,
  claim: Stored<PersistentVolumeClaim>,
  storageClass: StorageClass,
  selectedNode: string | undefined,
  signal: AbortSignal,
): Promise<PreparedVolume> {
  const { driver, settings } = context;
  const basics = finished(() => {
    const dataSource = dataSourceOf(claim, settings.crossNamespaceDataSource);
    refuseUnsupported(context, claim, dataSource);
    const migrated = driver.inTreeName !== undefined && storageClass.provisioner === driver.inTreeName;
    const csiClass = migrated ? asCsiClass(storageClass) : storageClass;
    const parameters = csiClass.parameters ?? {};
    const pvName = volumeName(settings.volumeNamePrefix, claim.metadata.uid, settings.volumeNameUuidLength);
    const fsType = fsTypeOf(parameters) || settings.defaultFsType;
    const size = claim.spec?.resources?.requests?.storage;
    const requiredBytes = size === undefined ? 0n : parseQuantity(size).toBytes();
    return { dataSource, migrated, csiClass, parameters, pvName, fsType, requiredBytes };
  });
  const { dataSource, migrated, csiClass, parameters, pvName, fsType, requiredBytes } = basics;
  const hasTopology = driver.capabilities.plugin.has("VOLUME_ACCESSIBILITY_CONSTRAINTS");
  const volumeCapabilities = claimCapabilities(
    claim.spec?.accessModes ?? [],
    claim.spec?.volumeMode,
    { singleNodeMultiWriter: driver.capabilities.controller.has("SINGLE_NODE_MULTI_WRITER") },
    { fsType, mountOptions: csiClass.mountOptions ?? [] },
  );
  const volumeContentSource =
    dataSource === undefined ? undefined : await resolveSource(context, claim, dataSource, signal);
  const topology = hasTopology ? requirementsOf(context, claim, csiClass, selectedNode) : undefined;
  const templateClaim = {
    name: claim.metadata.name,
    namespace: claim.metadata.namespace ?? "",
    annotations: claim.metadata.annotations ?? {},
  };
  const refs = unchanged("a secret of the class cannot be resolved", () => {
    // Most classes name no secret at all.
    const namesSecrets = Object.keys(parameters).some((key) => /secret/i.test(key));
    const refOf = (kind: SecretKind) =>
      namesSecrets ? secretReference(kind, parameters, pvName, templateClaim) : undefined;
    return {
      provisioner: refOf("Provisioner"),
      modify: refOf("ControllerModify"),
      volume: withoutUndefined({
        controllerPublishSecretRef: refOf("ControllerPublish"),
        nodeStageSecretRef: refOf("NodeStage"),
        nodePublishSecretRef: refOf("NodePublish"),
        controllerExpandSecretRef: refOf("ControllerExpand"),
        nodeExpandSecretRef: refOf("NodeExpand"),
      }),
    };
  });
  const driverParameters = finished(() => stripParameters(parameters));
  if (settings.extraCreateMetadata) {
    driverParameters["csi.storage.k8s.io/pvc/name"] = templateClaim.name;
    driverParameters["csi.storage.k8s.io/pvc/namespace"] = templateClaim.namespace;
    driverParameters["csi.storage.k8s.io/pv/name"] = pvName;
  }
  const mutableParameters = await mutableParametersOf(context, claim, signal);
  return {
    pvName,
    request: {
      name: pvName,
      capacityRange: { requiredBytes },
      volumeCapabilities,
      parameters: driverParameters,
      ...(volumeContentSource === undefined ? {} : { volumeContentSource }),
      ...(mutableParameters === undefined ? {} : { mutableParameters }),
      ...(topology === undefined ? {} : { accessibilityRequirements: topology }),
    },
    requiredBytes,
    dataSource,
    fsType: claim.spec?.volumeMode === "Block" ? undefined : fsType,
    storageClass: csiClass,
    provisioner: storageClass.provisioner,
    migrated,
    refs: refs.volume,
    deletionSecret: refs.provisioner,
    modifySecret: refs.modify,
    mayReschedule: hasTopology && selectedNode !== undefined,
  };
}

/** What the driver cannot do must fail in words, not become another volume than was asked for. */
function refuseUnsupported(
  { driver: { capabilities }, settings }: RequestContext,
  claim: PersistentVolumeClaim,
  source: DataSource | undefined,
): void {
  if (!capabilities.plugin.has("CONTROLLER_SERVICE")) throw new Error("the driver has no controller service");
  const need = (rpc: string, what: string) => {
    if (!capabilities.controller.has(rpc)) throw new Error(`the driver cannot ${what} (${rpc})`);
  };
  need("CREATE_DELETE_VOLUME", "create volumes");
  if (source?.kind === "snapshot") need("CREATE_DELETE_SNAPSHOT", "make volumes from snapshots");
  if (source?.kind === "clone") need("CLONE_VOLUME", "clone volumes");
  if (attributesClassOf(settings, claim) !== undefined) {
    need("MODIFY_VOLUME", "modify volumes, as spec.volumeAttributesClassName asks");
  }
  if (claim.spec?.selector !== undefined && claim.spec.selector !== null) {
    throw new Error("spec.selector is not supported with dynamic provisioning: remove it");
  }
}

/** The claim's VolumeAttributesClass; undefined when it names none or the gate is off. */
export function attributesClassOf(
  { volumeAttributesClass }: Pick<VolumeSettings, "volumeAttributesClass">,
  claim: PersistentVolumeClaim,
): string | undefined {
  return (volumeAttributesClass && claim.spec?.volumeAttributesClassName) || undefined;
}

/** The parameters of the claim's VolumeAttributesClass; undefined when it names none. */
async function mutableParametersOf(
  { kube, driver, settings }: RequestContext,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<Record<string, string> | undefined> {
  const name = attributesClassOf(settings, claim);
  if (name === undefined) return undefined;
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

function asCsiClass(storageClass: StorageClass): StorageClass {
  return translateInTreeStorageClassToCSI(storageClass.provisioner, storageClass) as StorageClass;
}

function requirementsOf(
  context: RequestContext,
  claim: Stored<PersistentVolumeClaim>,
  storageClass: StorageClass,
  selectedNode: string | undefined,
) {
  const { uid } = claim.metadata;
  const seen = context.topologies.get(uid);
  const before = seen?.selectedNode === selectedNode ? seen?.memory : undefined;
  const now = before === undefined ? context.topologyNow?.(selectedNode) : undefined;
  const known = before ?? now;
  try {
    const { requirements, memory } = accessibilityRequirements({
      driverName: context.driver.name,
      pvcName: claim.metadata.name,
      allowedTopologies: storageClass.allowedTopologies ?? [],
      selectedNode,
      strictTopology: context.settings.strictTopology,
      immediateTopology: context.settings.immediateTopology,
      // All there is to know of them is in what is seen now.
      csiNodes: now === undefined ? context.csiNodes() : [],
      nodes: now === undefined ? context.nodes() : [],
      ...(known === undefined ? {} : { memory: known }),
    });
    context.topologies.set(uid, { selectedNode, memory });
    if (requirements === undefined) return undefined;
    const { requisite, preferred } = requirements;
    const topologies = (terms: typeof requisite) => terms.map((segments) => ({ segments: { ...segments } }));
    return { requisite: topologies(requisite), preferred: topologies(preferred) };
  } catch (cause) {
    const state = cause instanceof TopologyError && cause.nodeNotFound ? "Reschedule" : "NoChange";
    throw new ProvisionError(state, "error generating accessibility requirements", { cause });
  }
}

function finished<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (cause instanceof ProvisionError) throw cause;
    throw new ProvisionError("Finished", "the claim cannot be provisioned", { cause });
  }
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
