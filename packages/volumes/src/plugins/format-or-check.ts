/** What in-tree plugins and Flexvolumes do with a device before they mount it. A device that holds a file system is never formatted. */
import { type Host, HostError } from "@longshore/runtime";

/** Makes a file system on a blank device; checks the one that is there. Source: upstream SafeFormatAndMount.formatAndMountSensitive. */
export async function formatOrCheck(host: Host, device: string, fsType: string): Promise<void> {
  if ((await host.fileSystemOf(device)) !== undefined) {
    await host.checkFileSystem(device);
    return;
  }
  try {
    await host.format(device, fsType);
  } catch (error) {
    // Someone else's file system got there first: it is left as it is, and mounted.
    if (!(error instanceof HostError && error.code === "EEXIST")) throw error;
  }
}
