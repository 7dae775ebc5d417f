/** How Ceph images are made. */
import {
  checkClaim,
  classFsType,
  classParameters,
  generatedVolumeName,
  oneOf,
  requiredParameter,
} from "../disk/class-parameters.ts";
import type { DiskProvisioning } from "../disk/disk-description.ts";
import { readSecret } from "../disk/secrets.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";

const accessModes = ["ReadWriteOnce", "ReadOnlyMany"];
const known = [
  ...(["monitors", "adminid", "adminsecretname", "adminsecretnamespace"] as const),
  ...(["userid", "usersecretname", "usersecretnamespace"] as const),
  ...(["pool", "fstype", "imageformat", "imagefeatures"] as const),
];

/** The user that a volume or class without one means. */
export const defaultUser = "admin";
/** The pool that a volume or class without one means. */
export const defaultPool = "rbd";

/** The provisioning of `pluginName`. The administrator's secret has to be there; the user's is looked at by nodes alone. */
export function rbdProvisioning(pluginName: string, label: string): DiskProvisioning {
  return {
    createdBy: "rbd-dynamic-provisioner",
    sizeUnit: "MiB",
    async plan(options, host, signal) {
      checkClaim(options, label, accessModes);
      const parameters = classParameters(pluginName, options.parameters, known);
      const { pool = defaultPool, adminid = defaultUser, userid: user = adminid } = parameters;
      const monitors = monitorsOf(requiredParameter(pluginName, "monitors", parameters.monitors));
      const secretName = requiredParameter(pluginName, "userSecretName", parameters.usersecretname);
      const adminSecret = {
        namespace: parameters.adminsecretnamespace ?? "default",
        name: requiredParameter(pluginName, "adminSecretName", parameters.adminsecretname),
      };
      const imageFormat = oneOf("imageFormat", parameters.imageformat ?? "2", ["1", "2"]);
      const imageFeatures = featuresOf(parameters.imagefeatures ?? "", imageFormat);
      const fsType = classFsType(options, parameters.fstype);
      const namespace = parameters.usersecretnamespace;
      await readSecret(host, adminSecret, pluginName, signal);
      return {
        name: generatedVolumeName(options),
        type: "",
        tags: {
          pool,
          imageformat: imageFormat,
          ...(imageFeatures !== "" && { imagefeatures: imageFeatures }),
        },
        zoneCount: 0,
        accessModes,
        sourceOf: ({ id }) => ({
          rbd: {
            monitors: [...monitors],
            image: id.slice(id.indexOf("/") + 1),
            pool,
            user,
            secretRef: { name: secretName, ...(namespace !== undefined && { namespace }) },
            ...(fsType !== undefined && { fsType }),
          },
        }),
      };
    },
  };
}

function monitorsOf(text: string): readonly string[] {
  const monitors = text.split(",").map((monitor) => monitor.trim());
  if (!monitors.includes("")) return monitors;
  throw new InTreeVolumeError(`monitors "${text}" of the StorageClass: write addresses with commas between`);
}

/** Source: upstream documentation of StorageClasses: of format 2 alone, and of its features this one. */
function featuresOf(text: string, imageFormat: string): string {
  const features = text.split(",").flatMap((feature) => (feature.trim() === "" ? [] : [feature.trim()]));
  if (features.length > 0 && imageFormat !== "2") {
    throw new InTreeVolumeError("imageFeatures of the StorageClass need imageFormat 2: drop one");
  }
  return features.map((feature) => oneOf("imageFeatures", feature, ["layering"])).join(",");
}
