/** What a claim and its class say of the volume to be, before anything is read (docs/behaviour/sidecars.md 2.3). Pure. */
import { type PersistentVolumeClaim, parseQuantity, type StorageClass, type Stored } from "@longshore/kube";
import { claimCapabilities, fsTypeOf, volumeName } from "@longshore/storage";
import { translateInTreeStorageClassToCSI } from "@longshore/translation";
import { ProvisionError } from "../create-outcome.ts";
import { type DataSource, dataSourceOf } from "../sources/data-source.ts";
import type { RequestContext, VolumeSettings } from "./request-context.ts";

/** The part of a request that needs no reading. */
export interface VolumeDraft {
  readonly pvName: string;
  readonly dataSource: DataSource | undefined;
  /** The claim's VolumeAttributesClass, if it names one that is heeded. */
  readonly attributesClass: string | undefined;
  readonly migrated: boolean;
  /** The class as the driver sees it. */
  readonly storageClass: StorageClass;
  /** The provisioner that the class names. */
  readonly provisioner: string;
  readonly fsType: string;
  readonly requiredBytes: bigint;
  readonly volumeCapabilities: ReturnType<typeof claimCapabilities>;
}

type DraftContext = Pick<RequestContext, "driver" | "settings">;

/** @throws ProvisionError `Finished` for what the driver cannot do, and for a claim that is filled by another component */
export function draftVolume(
  context: DraftContext,
  claim: Stored<PersistentVolumeClaim>,
  storageClass: StorageClass,
): VolumeDraft {
  const { driver, settings } = context;
  const basics = finished(() => {
    const dataSource = dataSourceOf(claim, settings.crossNamespaceDataSource);
    refuseUnsupported(context, claim, dataSource);
    const migrated = driver.inTreeName !== undefined && storageClass.provisioner === driver.inTreeName;
    const csiClass = migrated ? asCsiClass(storageClass) : storageClass;
    const pvName = volumeName(settings.volumeNamePrefix, claim.metadata.uid, settings.volumeNameUuidLength);
    const fsType = fsTypeOf(csiClass.parameters ?? {}) || settings.defaultFsType;
    const size = claim.spec?.resources?.requests?.storage;
    const requiredBytes = size === undefined ? 0n : parseQuantity(size).toBytes();
    return { dataSource, migrated, storageClass: csiClass, pvName, fsType, requiredBytes };
  });
  return {
    ...basics,
    attributesClass: attributesClassOf(settings, claim),
    provisioner: storageClass.provisioner,
    volumeCapabilities: claimCapabilities(
      claim.spec?.accessModes ?? [],
      claim.spec?.volumeMode,
      { singleNodeMultiWriter: driver.capabilities.controller.has("SINGLE_NODE_MULTI_WRITER") },
      { fsType: basics.fsType, mountOptions: basics.storageClass.mountOptions ?? [] },
    ),
  };
}

/** What the driver cannot do must fail in words, not become another volume than was requested. */
function refuseUnsupported(
  { driver: { capabilities }, settings }: DraftContext,
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

function asCsiClass(storageClass: StorageClass): StorageClass {
  return translateInTreeStorageClassToCSI(storageClass.provisioner, storageClass) as StorageClass;
}

/** What fails here fails again: the driver was not asked. @throws ProvisionError `Finished` */
export function finished<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (cause instanceof ProvisionError) throw cause;
    throw new ProvisionError("Finished", "the claim cannot be provisioned", { cause });
  }
}
