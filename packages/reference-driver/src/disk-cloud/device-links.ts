/**
 * Devices by the names that providers give them: links below a directory for each instance,
 *
 *     DEVICE-DIR/INSTANCE-ID/disk/by-id/google-pvc-1 -> /dev/loop3
 *
 * as udev makes them in /dev of a machine. A loop device has another number after the machine was started again, and its number is
 * another disk's then; a link is the disk's alone, and made again when the cloud starts.
 *
 * Invariant: no link lies outside its instance's directory, whatever disks and instances are called.
 */
import type { Host } from "@longshore/runtime";
import { CloudError } from "@longshore/volumes";
import type { DiskRecord } from "./cloud-state.ts";
import { idOf } from "./find-disk.ts";
import { providerOf } from "./providers/index.ts";

/** The links of one cloud. */
export class DeviceLinks {
  readonly #host: Host;
  readonly #deviceDir: string;

  constructor(host: Host, deviceDir: string) {
    this.#host = host;
    this.#deviceDir = deviceDir;
  }

  /** Makes the disk's link on the instance, or finds it. @returns the path by which the instance knows the device */
  async make(
    disk: DiskRecord,
    instanceId: string | undefined,
    slot: number | undefined,
    device: string,
  ): Promise<string> {
    const path = this.#pathOf(disk, instanceId, slot);
    if (path === undefined) return device;
    if ((await this.#host.readLink(path)) === device) return path;
    await this.#host.makeDirectory(path.slice(0, path.lastIndexOf("/")));
    await this.#host.removeFile(path);
    await this.#host.symlink(device, path);
    return path;
  }

  /** Removes it; fine when it is gone. */
  async remove(disk: DiskRecord, instanceId: string | undefined, slot: number | undefined): Promise<void> {
    const path = this.#pathOf(disk, instanceId, slot);
    if (path !== undefined) await this.#host.removeFile(path);
  }

  #pathOf(disk: DiskRecord, instanceId: string | undefined, slot = 0): string | undefined {
    const { deviceName } = providerOf(disk);
    if (deviceName === undefined) {
      // The provider has no name for it. Other hosts' devices have names that stay.
      return this.#host.form === "kernel" ? `${this.#deviceDir}/${disk.id}` : undefined;
    }
    // What is attached nowhere has no link.
    if (instanceId === undefined) return undefined;
    const hex = disk.id.replace(/^vol-/, "");
    const name = deviceName({ id: idOf(disk), name: disk.name, hex, slot });
    const parts = [directoryName(instanceId), ...name.split("/")];
    if (parts.some((part) => part === "" || part === "." || part === ".." || part.includes("\0"))) {
      throw new CloudError("InvalidArgument", `disk ${idOf(disk)} cannot have a device named ${name}`);
    }
    return `${this.#deviceDir}/${parts.join("/")}`;
  }
}

/** An instance's id as the name of a directory: a slash or two dots must not lead elsewhere. */
function directoryName(instanceId: string): string {
  return encodeURIComponent(instanceId).replace(/^\.+$/, (dots) => dots.replaceAll(".", "%2E"));
}
