/**
 * Where the in-tree EBS plugin mounts a device for the whole node: below
 * `<root>/plugins/kubernetes.io/aws-ebs/mounts`, the path names the volume id.
 *
 *   vol-1 ↔ vol-1      aws://zone/vol-1 ↔ aws/zone/vol-1      aws:///vol-1 ↔ aws/vol-1
 */
import { kubeletPaths } from "../../framework/volume-host.ts";
import { awsEbsPluginName, EbsVolumeError } from "./ebs-volume-id.ts";

/** The directory below which all global mounts lie. */
export function globalMountsDirectory(root: string): string {
  return `${kubeletPaths.pluginDir(root, awsEbsPluginName)}/mounts`;
}

/** The global mount of a volume. @throws EbsVolumeError for an id that would leave the directory */
export function globalMountPath(root: string, volumeID: string): string {
  const relative = volumeID.replace(/^aws:\/\/\/?/, "aws/");
  if (relative.split("/").some((part) => part === "" || part === "." || part === "..")) {
    throw new EbsVolumeError(`volumeID "${volumeID}": expected vol-… or aws://<zone>/vol-…`);
  }
  return `${globalMountsDirectory(root)}/${relative}`;
}

/** The volume whose global mount the path is, or undefined when it is none. */
export function volumeIDOfGlobalMount(root: string, path: string): string | undefined {
  const prefix = `${globalMountsDirectory(root)}/`;
  if (!path.startsWith(prefix)) return undefined;
  const relative = path.slice(prefix.length);
  if (!relative.startsWith("aws/")) return relative;
  const rest = relative.slice("aws/".length);
  return rest.includes("/") ? `aws://${rest}` : `aws:///${rest}`;
}
