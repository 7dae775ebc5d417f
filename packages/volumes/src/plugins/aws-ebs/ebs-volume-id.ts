/**
 * Volume ids of the in-tree EBS plugin: `vol-…`, or `aws://<zone>/vol-…` as its provisioner writes them; and the
 * directories that they name:
 *
 *   vol-1 ↔ vol-1      aws://zone/vol-1 ↔ aws/zone/vol-1      aws:///vol-1 ↔ aws/vol-1
 */
import { type DiskNames, unreadableName } from "../disk/disk-description.ts";

const form = { field: "volumeID", expected: "vol-… or aws://<zone>/vol-…" };

/** The provider's disk id in a volume id of either form. @throws InTreeVolumeError */
export function diskIdOf(volumeID: string): string {
  const url = /^aws:\/\/[^/]*\/(.*)$/.exec(volumeID);
  const id = url === null ? volumeID : (url[1] ?? "");
  if (!/^vol-[^/]*$/.test(id)) throw unreadableName(form, volumeID);
  return id;
}

/** How the plugin names volumes. */
export const ebsNames: DiskNames = {
  ...form,
  diskIdOf,
  volumeNameOf: ({ zone, id }) => `aws://${zone}/${id}`,
  directoryOf: (volumeID) => volumeID.replace(/^aws:\/\/\/?/, "aws/"),
  volumeNameIn(directory) {
    if (!directory.startsWith("aws/")) return directory;
    const rest = directory.slice("aws/".length);
    return rest.includes("/") ? `aws://${rest}` : `aws:///${rest}`;
  },
};
