/**
 * A provider's cloud in memory with devices on a simulated host, for tests of in-tree plugins: it names disks and devices as
 * the provider does, knows who may have them, and refuses what the provider refuses.
 */
import type { Host } from "@longshore/runtime";
import {
  type CloudAttachOptions,
  type CloudCredentials,
  CloudError,
  type CloudProvider,
  type Disk,
  type DiskAttachment,
  type DiskCloud,
  type Instance,
} from "../framework/ports.ts";

/** What opens shares and images. */
export const fakeCredentials: CloudCredentials = { user: "longshore", key: "bG9uZ3Nob3Jl" };

interface StoredDisk extends Omit<Disk, "attachments"> {
  readonly number: number;
  sizeBytes: bigint;
  readonly attachments: Map<string, DiskAttachment & { readonly readOnly: boolean }>;
}

type NewDisk = Parameters<DiskCloud["createDisk"]>[0];

/** How a provider names a disk, by the name at creation and a number, and its device. */
const forms: Readonly<
  Record<
    CloudProvider,
    {
      id(disk: NewDisk, number: number): string;
      device?(disk: Disk, number: number): string;
    }
  >
> = {
  "aws-ebs": { id: (_, number) => `vol-${hex(number, 17)}`, device: (_, number) => `xvdb${letter(number)}` },
  "gce-pd": { id: ({ name }) => name, device: ({ id }) => `disk/by-id/google-${id}` },
  "azure-disk": {
    id: ({ name }) => `/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/${name}`,
    device: (_, number) => `disk/azure/scsi1/lun${number}`,
  },
  "azure-file": {
    id: ({ name, tags }) =>
      `${tags.resourcegroup ?? "group"}#${tags.storageaccount ?? fakeCredentials.user}#${name}`,
  },
  cinder: { id: (_, number) => uuid(number), device: ({ id }) => `disk/by-id/virtio-${id.slice(0, 20)}` },
  "vsphere-volume": {
    id: ({ name, tags }) => `[${tags.datastore ?? "local"}] kubevols/${name}.vmdk`,
    device: (_, number) => `disk/by-id/wwn-0x${hex(number, 32)}`,
  },
  "portworx-volume": { id: (_, number) => `${1000 + number}`, device: ({ id }) => `pxd/pxd${id}` },
  rbd: { id: ({ name, tags }) => `${tags.pool ?? "rbd"}/${name}`, device: (_, number) => `rbd${number}` },
};

const zoneless: ReadonlySet<CloudProvider> = new Set([
  "azure-file",
  "portworx-volume",
  "rbd",
  "vsphere-volume",
]);
const asksForCredentials: ReadonlySet<CloudProvider> = new Set(["azure-file", "rbd"]);

/** The cloud. */
export class FakeProviderCloud implements DiskCloud {
  readonly disks = new Map<string, StoredDisk>();
  /** Throws what the call is to fail with. */
  before: (call: string) => void = () => {};
  readonly #provider: CloudProvider;
  readonly #host: Host;
  readonly #dir: string;
  readonly #instances: readonly Instance[];
  #made = 0;

  /** @param dir where devices appear on the host, below `devices` */
  constructor(provider: CloudProvider, host: Host, nodeNames: readonly string[], dir = "") {
    this.#provider = provider;
    this.#host = host;
    this.#dir = dir;
    this.#instances = nodeNames.map((nodeName, index) => ({
      instanceId: `i-${nodeName}`,
      nodeName,
      zone: `us-east-1${letter(index)}`,
      region: "us-east-1",
      attachLimit: 39,
    }));
  }

  async createDisk(request: NewDisk): Promise<Disk> {
    this.before(`create ${request.name}`);
    const present = [...this.disks.values()].find(({ name }) => name === request.name);
    if (present !== undefined) return asDisk(present);
    if ((request.zone === "") !== zoneless.has(this.#provider)) {
      throw new CloudError("InvalidArgument", `zone "${request.zone}"`);
    }
    const number = ++this.#made;
    const id = forms[this.#provider].id(request, number);
    const tags = { ...request.tags, azurestorageaccountkey: fakeCredentials.key };
    const disk: StoredDisk = { ...request, tags, id, number, attachments: new Map() };
    this.disks.set(id, disk);
    await this.#host.makeDirectory(`${this.#dir}/backing`);
    await this.#host.truncateFile(this.#backingOf(disk), Number(request.sizeBytes));
    return asDisk(disk);
  }

  async deleteDisk(diskId: string): Promise<void> {
    this.before(`delete ${diskId}`);
    const disk = this.disks.get(diskId);
    if (disk === undefined) return;
    if (disk.attachments.size > 0) throw new CloudError("InUse", `${diskId} is attached`);
    this.disks.delete(diskId);
  }

  async attachDisk(
    diskId: string,
    instanceId: string,
    _signal: AbortSignal,
    { readOnly = false, credentials }: CloudAttachOptions = {},
  ): Promise<DiskAttachment> {
    this.before(`attach ${diskId} ${instanceId}`);
    const disk = this.#disk(diskId);
    const { user, key } = credentials ?? {};
    const isTheirs = user === fakeCredentials.user && key === fakeCredentials.key;
    if (asksForCredentials.has(this.#provider) && !isTheirs) {
      throw new CloudError("Unauthenticated", `${user} does not open ${diskId}`);
    }
    const { device } = forms[this.#provider];
    if (device === undefined) return await this.#share(disk, instanceId);
    for (const other of disk.attachments.values()) {
      if (other.instanceId === instanceId) return other;
      if (!readOnly || !other.readOnly) throw new CloudError("InUse", `${diskId} is at ${other.instanceId}`);
    }
    const devicePath = `${this.#dir}/devices/${instanceId}/${device(asDisk(disk), disk.number)}`;
    await this.#host.makeDirectory(devicePath.slice(0, devicePath.lastIndexOf("/")));
    await this.#host.symlink(await this.#host.attachLoop(this.#backingOf(disk)), devicePath);
    const lun = this.#provider === "azure-disk" ? { lun: disk.number } : {};
    const attachment = { instanceId, devicePath, readOnly, ...lun };
    disk.attachments.set(instanceId, attachment);
    return attachment;
  }

  async detachDisk(diskId: string, instanceId: string): Promise<void> {
    this.before(`detach ${diskId} ${instanceId}`);
    const disk = this.disks.get(diskId);
    const attachment = disk?.attachments.get(instanceId);
    if (disk === undefined || attachment === undefined) return;
    if (disk.attachments.size === 1) await this.#host.detachLoop(this.#backingOf(disk));
    await this.#host.removeFile(attachment.devicePath);
    disk.attachments.delete(instanceId);
  }

  async resizeDisk(diskId: string, sizeBytes: bigint): Promise<bigint> {
    this.before(`resize ${diskId}`);
    const disk = this.#disk(diskId);
    disk.sizeBytes = sizeBytes;
    await this.#host.truncateFile(this.#backingOf(disk), Number(sizeBytes));
    if (disk.attachments.size > 0) await this.#host.attachLoop(this.#backingOf(disk));
    return sizeBytes;
  }

  async describeDisk(diskId: string): Promise<Disk | undefined> {
    const disk = this.disks.get(diskId);
    return disk === undefined ? undefined : asDisk(disk);
  }

  async listDisks(): Promise<readonly Disk[]> {
    return [...this.disks.values()].map(asDisk);
  }

  async listStoragePolicies(): Promise<readonly string[]> {
    return this.#provider === "vsphere-volume" ? ["gold", "silver"] : [];
  }

  async describeInstance(nodeName: string): Promise<Instance | undefined> {
    return this.#instances.find((instance) => instance.nodeName === nodeName);
  }

  async listInstances(): Promise<readonly Instance[]> {
    return this.#instances;
  }

  #disk(diskId: string): StoredDisk {
    const disk = this.disks.get(diskId);
    if (disk === undefined) throw new CloudError("NotFound", `there is no ${diskId}`);
    return disk;
  }

  #backingOf({ name }: StoredDisk): string {
    return `${this.#dir}/backing/${name}`;
  }

  async #share(disk: StoredDisk, instanceId: string): Promise<DiskAttachment> {
    const devicePath = `${this.#dir}/shares/${disk.name}`;
    await this.#host.makeDirectory(devicePath);
    return { instanceId, devicePath };
  }
}

function asDisk({ attachments, number: _number, ...disk }: StoredDisk): Disk {
  return { ...disk, attachments: [...attachments.values()] };
}

function hex(number: number, length: number): string {
  return number.toString(16).padStart(length, "0");
}

function uuid(number: number): string {
  return `${hex(number, 8)}-0000-4000-8000-${hex(number, 12)}`;
}

function letter(index: number): string {
  return "abcdefghijklmnopqrstuvwxyz"[index] ?? "z";
}
