/** A cloud of disks in memory for tests of the in-tree plugin: one attachment a disk, a log of calls, failures on demand. */
import {
  CloudError,
  type Disk,
  type DiskAttachment,
  type DiskCloud,
  type Instance,
} from "../framework/ports.ts";

interface StoredDisk {
  readonly id: string;
  readonly name: string;
  readonly zone: string;
  sizeBytes: bigint;
  readonly type: string;
  readonly tags: Readonly<Record<string, string>>;
  attachment: DiskAttachment | undefined;
}

/** The cloud. Unknown disks are made on first use, so that a test only names what it is about. */
export class FakeCloud implements DiskCloud {
  readonly calls: string[] = [];
  readonly disks = new Map<string, StoredDisk>();
  readonly #instances: readonly Instance[];
  /** Throws what the call is to fail with. */
  before: (call: string) => void | Promise<void> = () => {};
  #made = 0;

  constructor(nodeNames: readonly string[]) {
    this.#instances = nodeNames.map((nodeName, index) => ({
      instanceId: `i-${nodeName}`,
      nodeName,
      zone: `us-east-1${"abc"[index % 3]}`,
      region: "us-east-1",
      attachLimit: 39,
    }));
  }

  /** Node on which the disk is. */
  nodeOf(diskId: string): string | undefined {
    return this.disks.get(diskId)?.attachment?.instanceId.slice(2);
  }

  async createDisk(request: Parameters<DiskCloud["createDisk"]>[0]): Promise<Disk> {
    await this.#call(`create ${request.name} ${request.zone}`);
    const present = [...this.disks.values()].find(({ name }) => name === request.name);
    if (present !== undefined) return asDisk(present);
    const disk: StoredDisk = { ...request, id: `vol-${++this.#made}`, attachment: undefined };
    this.disks.set(disk.id, disk);
    return asDisk(disk);
  }

  async deleteDisk(diskId: string): Promise<void> {
    await this.#call(`delete ${diskId}`);
    if (this.disks.get(diskId)?.attachment !== undefined)
      throw new CloudError("InUse", `${diskId} is attached`);
    this.disks.delete(diskId);
  }

  async attachDisk(diskId: string, instanceId: string): Promise<DiskAttachment> {
    await this.#call(`attach ${diskId} ${instanceId}`);
    const disk = this.#disk(diskId);
    if (disk.attachment !== undefined && disk.attachment.instanceId !== instanceId) {
      throw new CloudError("InUse", `${diskId} is attached to ${disk.attachment.instanceId}`);
    }
    disk.attachment = { instanceId, devicePath: `/dev/${diskId}` };
    return disk.attachment;
  }

  async detachDisk(diskId: string, instanceId: string): Promise<void> {
    await this.#call(`detach ${diskId} ${instanceId}`);
    const disk = this.#disk(diskId);
    if (disk.attachment?.instanceId === instanceId) disk.attachment = undefined;
  }

  async resizeDisk(diskId: string, sizeBytes: bigint): Promise<bigint> {
    await this.#call(`resize ${diskId}`);
    this.#disk(diskId).sizeBytes = sizeBytes;
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
    return [];
  }

  async describeInstance(nodeName: string): Promise<Instance | undefined> {
    return this.#instances.find((instance) => instance.nodeName === nodeName);
  }

  async listInstances(): Promise<readonly Instance[]> {
    return this.#instances;
  }

  async #call(call: string): Promise<void> {
    this.calls.push(call);
    await this.before(call);
  }

  #disk(id: string): StoredDisk {
    let disk = this.disks.get(id);
    if (disk === undefined) {
      disk = {
        id,
        name: id,
        zone: "us-east-1a",
        sizeBytes: 5n,
        type: "gp2",
        tags: {},
        attachment: undefined,
      };
      this.disks.set(id, disk);
    }
    return disk;
  }
}

function asDisk({ attachment, ...disk }: StoredDisk): Disk {
  return { ...disk, attachments: attachment === undefined ? [] : [attachment] };
}
