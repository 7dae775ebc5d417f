/** How EBS volumes are made. */

import { defaultFsType } from "../device-mounts.ts";
import { checkClaim, classFsType, classParameters, parameterZones } from "../disk/class-parameters.ts";
import type { DiskProvisioning } from "../disk/disk-description.ts";
import { ebsNames } from "./ebs-volume-id.ts";

const label = "AWS EBS";
const accessModes = ["ReadWriteOnce"];
const defaultType = "gp2";

/** Settings that the disk keeps as tags. */
const taggedSettings = ["iopspergb", "encrypted", "kmskeyid"] as const;

/**
 * The provisioning of `pluginName`. The disk is named after the PersistentVolume.
 */
export function ebsProvisioning(pluginName: string): DiskProvisioning {
  return {
    createdBy: "aws-ebs-dynamic-provisioner",
    regionOfZone,
    plan(options) {
      checkClaim(options, label, accessModes);
      const { parameters, pvName } = options;
      const known = ["type", "fstype", "zone", "zones", ...taggedSettings] as const;
      const {
        type = defaultType,
        fstype = defaultFsType,
        ...others
      } = classParameters(pluginName, parameters, known);
      const fsType = classFsType(options, fstype);
      const tags = taggedSettings.flatMap((name) => {
        const value = others[name];
        return value === undefined ? [] : [[`${pluginName}/${name}`, value] as const];
      });
      return {
        name: pvName,
        type,
        tags: Object.fromEntries(tags),
        zoneCount: 1,
        zones: parameterZones(others),
        sourceOf: (disk) => ({
          awsElasticBlockStore: {
            volumeID: ebsNames.volumeNameOf(disk),
            ...(fsType !== undefined && { fsType }),
          },
        }),
      };
    },
  };
}

/** `us-east-1a` → `us-east-1`; a name without a trailing letter is its own region. */
export function regionOfZone(zone: string): string {
  return /\d[a-z]$/.test(zone) ? zone.slice(0, -1) : zone;
}
