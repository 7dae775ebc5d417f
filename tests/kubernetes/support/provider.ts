/**
 * The provider that tests of volumes use with a control plane: its machines and disks,
 * in a temporary directory and without root (directories and links instead of devices and mounts).
 */
import { mkdtemp, rm } from "node:fs/promises";
import { type Host, unprivilegedHost } from "@longshore/runtime";
import type { CloudProvider } from "@longshore/volumes";
import {
  createDiskCloud,
  type DiskCloudService,
} from "../../../packages/reference-driver/src/disk-cloud/index.ts";
import { realEnv, signal } from "./clients.ts";

/** A machine of the provider. */
export interface Machine {
  readonly nodeName: string;
  readonly instanceId: string;
  readonly zone: string;
}

export const region = "us-east-1";
export const zone = "us-east-1a";

/** The caller by whose name a test makes disks. */
export const operator = "test";

/** A machine in the first zone. */
export function machine(nodeName: string): Machine {
  return { nodeName, instanceId: `i-${nodeName}`, zone };
}

/** A provider with machines and disks. */
export interface Provider {
  /** Room for sockets and root directories; short, since socket paths are limited. */
  readonly directory: string;
  readonly host: Host;
  readonly cloud: DiskCloudService;
  /** Makes a disk of 1 GiB, of EBS unless another provider is named, and returns its id. */
  makeDisk(name: string, provider?: CloudProvider): Promise<string>;
  /** Instances that the disk is attached to. */
  attachedTo(diskId: string): readonly string[];
  /** Ends the cloud and removes the directory. */
  stop(): Promise<void>;
}

/** Starts a provider with these machines. */
export async function startProvider(machines: readonly Machine[]): Promise<Provider> {
  const directory = await mkdtemp("/tmp/ls-k8s-");
  const host = unprivilegedHost();
  const cloud = await createDiskCloud(
    { ...realEnv, host },
    {
      stateDir: `${directory}/cloud`,
      instances: machines.map((each) => ({ ...each, region, attachLimit: 25 })),
    },
  );
  return {
    directory,
    host,
    cloud,
    async makeDisk(name, owner = "aws-ebs") {
      const caller = cloud.forCaller({ provider: owner, path: "in-tree", component: operator });
      const request = { name, zone, sizeBytes: 2n ** 30n, type: "gp2", tags: {} };
      return (await caller.createDisk(request, signal)).id;
    },
    attachedTo(diskId) {
      const disk = cloud.disks().find(({ id }) => id === diskId);
      if (disk === undefined) throw new Error(`the provider has no disk ${diskId}`);
      return disk.attachments.map(({ instanceId }) => instanceId);
    },
    async stop() {
      await cloud.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
