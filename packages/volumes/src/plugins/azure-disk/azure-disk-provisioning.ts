/** How managed disks are made. */
import {
  checkClaim,
  classParameters,
  generatedVolumeName,
  oneOf,
  parameterZones,
} from "../disk/class-parameters.ts";
import type { DiskProvisioning } from "../disk/disk-description.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";

const accessModes = ["ReadWriteOnce"];
const skus = ["StandardSSD_LRS", "Standard_LRS", "Premium_LRS", "UltraSSD_LRS"] as const;
const cachingModes = ["ReadOnly", "ReadWrite", "None"] as const;

/** Longest name of a disk. */
const maximumNameLength = 75;

/** Settings that the disk keeps as tags. */
const taggedSettings = [
  "resourcegroup",
  "diskiopsreadwrite",
  "diskmbpsreadwrite",
  "diskencryptionsetid",
  "writeacceleratorenabled",
] as const;
/** Of disks in blobs alone; they say nothing of a managed disk. */
const blobSettings = ["location", "storageaccount"] as const;

/** The provisioning of `pluginName`. */
export function azureDiskProvisioning(pluginName: string, label: string): DiskProvisioning {
  const known = [
    ...["skuname", "storageaccounttype", "kind", "cachingmode", "fstype"],
    ...["zone", "zones", "zoned", "tags", "maxshares"],
    ...taggedSettings,
    ...blobSettings,
  ];
  return {
    createdBy: "azure-disk-dynamic-provisioner",
    plan(options) {
      checkClaim(options, label, accessModes);
      const parameters: Readonly<Partial<Record<string, string>>> = classParameters(
        pluginName,
        options.parameters,
        known,
      );
      oneOf("kind", parameters.kind ?? "Managed", ["Managed"]);
      oneOf("maxShares", parameters.maxshares ?? "1", ["1"]);
      const zones = parameterZones({
        ...(parameters.zone !== undefined && { zone: parameters.zone }),
        ...(parameters.zones !== undefined && { zones: parameters.zones }),
      });
      const zoned = oneOf("zoned", parameters.zoned ?? "true", ["true", "false"]) === "true";
      if (!zoned && zones !== undefined) {
        throw new InTreeVolumeError("zone and zones of the StorageClass need zoned: true: drop one");
      }
      // Empty, not left out: the API server puts ext4 in place of what is left out.
      const fsType = options.pvc.spec?.volumeMode === "Block" ? "" : parameters.fstype?.toLowerCase();
      const cachingMode = oneOf("cachingMode", parameters.cachingmode ?? cachingModes[0], cachingModes);
      const name = generatedVolumeName(options, maximumNameLength);
      const sku = parameters.skuname ?? parameters.storageaccounttype ?? skus[0];
      return {
        name,
        type: oneOf("skuName", sku, skus),
        tags: { ...customTags(parameters.tags ?? ""), ...keptSettings(parameters) },
        zoneCount: zoned ? 1 : 0,
        zones,
        sourceOf: ({ id }) => ({
          azureDisk: {
            cachingMode,
            diskName: name,
            diskURI: id,
            kind: "Managed",
            ...(fsType !== undefined && { fsType }),
          },
        }),
      };
    },
  };
}

function keptSettings(parameters: Readonly<Partial<Record<string, string>>>): Record<string, string> {
  const kept = taggedSettings.flatMap((name) => {
    const value = parameters[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(kept);
}

/** `key=value,key2=value2`. */
function customTags(text: string): Record<string, string> {
  const pairs = text.split(",").filter((pair) => pair.trim() !== "");
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) {
        throw new InTreeVolumeError(
          `tags "${text}" of the StorageClass: write key=value, with commas between`,
        );
      }
      return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    }),
  );
}
