/**
 * From a claim and its class to the CreateVolume request, and what of the PersistentVolume is known before
 * the driver is asked (sidecars.md §2.3). Reads secrets; changes nothing.
 */
import type { CreateVolumeRequestSchema, MessageInitShape } from "@longshore/csi";
import {
  type CSINode,
  type KubeClient,
  type KubeObject,
  type Node,
  type PersistentVolumeClaim,
  parseQuantity,
  type Resource,
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
  volumeName,
} from "@longshore/storage";
import { translateInTreeStorageClassToCSI } from "@longshore/translation";
import type { Driver } from "../common/env.ts";
import { secretValues } from "../common/secret-values.ts";
import { ProvisionError } from "./create-outcome.ts";

/** Settings that decide what volumes look like; the defaults are in `provisioner.ts`. */
export interface VolumeSettings {
  /** Written into every volume's attributes, to tell who made it. */
  readonly identity: string;
  readonly volumeNamePrefix: string;
  /** −1: the whole uid. */
  readonly volumeNameUuidLength: number;
  readonly strictTopology: boolean;
  readonly immediateTopology: boolean;
  readonly defaultFsType: string;
  /** Tells the driver the names of claim and volume. */
  readonly extraCreateMetadata: boolean;
  /** A volume that is ReadOnlyMany only is published read-only. */
  readonly controllerPublishReadOnly: boolean;
}

/** What the request is made from besides claim and class. */
export interface RequestContext {
  readonly kube: KubeClient;
  readonly driver: Driver;
  readonly settings: VolumeSettings;
  readonly csiNodes: () => readonly CSINode[];
  readonly nodes: () => readonly Node[];
}

/** Secret references of the volume to be, by the field of its CSI source. */
export interface VolumeSecretRefs {
  readonly controllerPublishSecretRef?: Required<SecretReference>;
  readonly nodeStageSecretRef?: Required<SecretReference>;
  readonly nodePublishSecretRef?: Required<SecretReference>;
  readonly controllerExpandSecretRef?: Required<SecretReference>;
  readonly nodeExpandSecretRef?: Required<SecretReference>;
}

/** A request ready to be sent, as often as need be. */
export interface PreparedVolume {
  readonly pvName: string;
  readonly request: MessageInitShape<typeof CreateVolumeRequestSchema>;
  readonly requiredBytes: bigint;
  readonly secrets: Readonly<Record<string, string>>;
  /** File system of the volume; undefined for a block volume. */
  readonly fsType: string | undefined;
  /** The class as the driver sees it, translated when its plugin migrates. */
  readonly storageClass: StorageClass;
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
    refuseUnsupported(driver, claim);
    const migrated = driver.inTreeName !== undefined && storageClass.provisioner === driver.inTreeName;
    const csiClass = migrated ? asCsiClass(storageClass) : storageClass;
    const parameters = csiClass.parameters ?? {};
    const pvName = volumeName(settings.volumeNamePrefix, claim.metadata.uid, settings.volumeNameUuidLength);
    const fsType = fsTypeOf(parameters) || settings.defaultFsType;
    const size = claim.spec?.resources?.requests?.storage;
    const requiredBytes = size === undefined ? 0n : parseQuantity(size).toBytes();
    return { migrated, csiClass, parameters, pvName, fsType, requiredBytes };
  });
  const { migrated, csiClass, parameters, pvName, fsType, requiredBytes } = basics;
  const hasTopology = driver.capabilities.plugin.has("VOLUME_ACCESSIBILITY_CONSTRAINTS");
  const volumeCapabilities = claimCapabilities(
    claim.spec?.accessModes ?? [],
    claim.spec?.volumeMode,
    { singleNodeMultiWriter: driver.capabilities.controller.has("SINGLE_NODE_MULTI_WRITER") },
    { fsType, mountOptions: csiClass.mountOptions ?? [] },
  );
  const topology = hasTopology ? requirementsOf(context, claim, csiClass, selectedNode) : undefined;
  const templateClaim = {
    name: claim.metadata.name,
    namespace: claim.metadata.namespace ?? "",
    annotations: claim.metadata.annotations ?? {},
  };
  const refs = unchanged("a secret of the class cannot be resolved", () => {
    const refOf = (kind: SecretKind) => secretReference(kind, parameters, pvName, templateClaim);
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
  const secrets = await secretValues(context.kube, refs.provisioner, signal).catch((cause: unknown) => {
    throw new ProvisionError("NoChange", "the provisioner's secret cannot be read", { cause });
  });
  return {
    pvName,
    request: {
      name: pvName,
      capacityRange: { requiredBytes },
      volumeCapabilities,
      parameters: driverParameters,
      secrets,
      ...(mutableParameters === undefined ? {} : { mutableParameters }),
      ...(topology === undefined ? {} : { accessibilityRequirements: topology }),
    },
    requiredBytes,
    secrets,
    fsType: claim.spec?.volumeMode === "Block" ? undefined : fsType,
    storageClass: csiClass,
    migrated,
    refs: refs.volume,
    deletionSecret: refs.provisioner,
    modifySecret: refs.modify,
    mayReschedule: hasTopology && selectedNode !== undefined,
  };
}

/** What this provisioner cannot do must fail in words, not become an empty volume. */
function refuseUnsupported({ capabilities }: Driver, claim: PersistentVolumeClaim): void {
  const source = claim.spec?.dataSourceRef ?? claim.spec?.dataSource;
  if (source !== undefined && source !== null) {
    const isKnown = source.kind === "PersistentVolumeClaim" || source.kind === "VolumeSnapshot";
    if (!isKnown) {
      throw new ProvisionError("Finished", "Assuming an external populator will provision the volume", {
        ignored: true,
      });
    }
    throw new Error(`spec.dataSource: volumes from a ${source.kind} are not supported yet`);
  }
  if (!capabilities.plugin.has("CONTROLLER_SERVICE")) throw new Error("the driver has no controller service");
  if (!capabilities.controller.has("CREATE_DELETE_VOLUME")) {
    throw new Error("the driver cannot create volumes (CREATE_DELETE_VOLUME)");
  }
  if ((claim.spec?.volumeAttributesClassName ?? "") !== "" && !capabilities.controller.has("MODIFY_VOLUME")) {
    throw new Error("spec.volumeAttributesClassName: the driver cannot modify volumes (MODIFY_VOLUME)");
  }
  if (claim.spec?.selector !== undefined && claim.spec.selector !== null) {
    throw new Error("spec.selector is not supported with dynamic provisioning: remove it");
  }
}

interface VolumeAttributesClass extends KubeObject {
  readonly driverName?: string;
  readonly parameters?: Readonly<Record<string, string>>;
}

const volumeAttributesClasses: Resource<VolumeAttributesClass> = {
  group: "storage.k8s.io",
  versions: ["v1", "v1beta1"],
  plural: "volumeattributesclasses",
  kind: "VolumeAttributesClass",
  namespaced: false,
};

/** The parameters of the claim's VolumeAttributesClass; undefined when it names none. */
async function mutableParametersOf(
  { kube, driver }: RequestContext,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<Record<string, string> | undefined> {
  const name = claim.spec?.volumeAttributesClassName ?? "";
  if (name === "") return undefined;
  const found = await kube.get(volumeAttributesClasses, { name }, { signal });
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
  try {
    const { requirements } = accessibilityRequirements({
      driverName: context.driver.name,
      pvcName: claim.metadata.name,
      allowedTopologies: storageClass.allowedTopologies ?? [],
      selectedNode,
      strictTopology: context.settings.strictTopology,
      immediateTopology: context.settings.immediateTopology,
      csiNodes: context.csiNodes(),
      nodes: context.nodes(),
    });
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
