/**
 * The Flexvolume driver of a swarm's world: a vendor's disks, each of them a volume of the disk's own name. The text of its
 * file is its version: one that makes every mount itself, or one that attaches only and leaves mounts to the kubelet.
 * Source: docs/behaviour/flexvolume.md 4.
 */
import type { PluginName } from "@longshore/local";
import type { Host, ProgramResult } from "@longshore/runtime";
import type { DiskCloud, Instance } from "@longshore/volumes";

/** Its name in the sources of volumes. */
export const flexDriver = "example.com/disk";
/** The driver directory of every machine. */
export const flexVolumeDir = "/flexvolume";
/** What lies in its file. */
export const flexVersions = ["mounts", "attaches"] as const;
/** One of {@link flexVersions}. */
export type FlexVersion = (typeof flexVersions)[number];

/** The driver's own directory. */
export const flexDriverDir = `${flexVolumeDir}/${flexDriver.replace("/", "~")}`;
/** Its program. */
export const flexDriverFile = `${flexDriverDir}/disk`;

/** Whose disks they are: a provider of which the world has no plugin, so that no other code knows them. */
export function flexProvider(plugins: readonly PluginName[]): PluginName {
  return plugins.includes("aws-ebs") ? "cinder" : "aws-ebs";
}

/** Installs the driver, or replaces it, as an installer does: under a name that is not seen, then renamed. */
export async function installFlexDriver(host: Host, version: FlexVersion): Promise<void> {
  const hidden = `${flexDriverDir}/.disk`;
  await host.makeDirectory(flexDriverDir, 0o755);
  await host.writeFileAtomic(hidden, version, { mode: 0o755 });
  await host.rename(hidden, flexDriverFile);
  // What is durable makes durable what came before it.
  await host.writeFileAtomic(`${flexDriverDir}/.installed`, version);
}

/** Where a driver runs. */
export interface FlexDriverEnv {
  readonly host: Host;
  readonly cloud: DiskCloud;
  /** The node; on the control plane a name that no node has. */
  readonly machine: string;
}

/** Runs the program once. */
export async function runFlexDriver(env: FlexDriverEnv, args: readonly string[]): Promise<ProgramResult> {
  const [name = "", ...rest] = args;
  const version = await env.host.readFile(flexDriverFile);
  const command = version === "attaches" && ofMounts.has(name) ? undefined : commands[name];
  try {
    const answer = command === undefined ? { status: "Not supported" } : await command(env, ...rest);
    return printed({ status: "Success", ...answer }, 0);
  } catch (error) {
    return printed({ status: "Failure", message: error instanceof Error ? error.message : "" }, 1);
  }
}

const printed = (answer: object, code: number): ProgramResult => ({
  code,
  stdout: JSON.stringify(answer),
  stderr: "",
});

type Command = (env: FlexDriverEnv, ...args: string[]) => Promise<object>;

const ofMounts: ReadonlySet<string> = new Set([
  "waitforattach",
  "mountdevice",
  "unmountdevice",
  "mount",
  "unmount",
]);
const signal = new AbortController().signal;

const commands: Readonly<Record<string, Command>> = {
  init: async () => ({ capabilities: { attach: true } }),
  getvolumename: async (_env, options) => ({ volumeName: diskOf(options) }),
  attach: async ({ cloud }, options, node = "") => {
    const { instanceId } = await instanceOf(cloud, node);
    const { devicePath } = await cloud.attachDisk(diskOf(options), instanceId, signal);
    return { device: devicePath };
  },
  detach: async ({ cloud }, volume = "", node = "") => {
    const instance = await cloud.describeInstance(node, signal);
    // A machine that is gone holds nothing.
    if (instance !== undefined) await cloud.detachDisk(volume, instance.instanceId, signal);
    return {};
  },
  isattached: async (env, options, node = "") => ({
    attached: (await attachmentOf(env, diskOf(options), node)) !== undefined,
  }),
  waitforattach: async (env, _device, options) => {
    const attachment = await attachmentOf(env, diskOf(options), env.machine);
    if (attachment === undefined || attachment.devicePath === "") throw new Error("it is not attached yet");
    return { device: attachment.devicePath };
  },
  mountdevice: async ({ host }, directory = "", device = "", options) => {
    const fsType = optionOf(options, "kubernetes.io/fsType");
    if ((await host.fileSystemOf(device)) === undefined) await host.format(device, fsType);
    const readOnly = optionOf(options, "kubernetes.io/readwrite") === "ro";
    await host.mountDevice(device, directory, { fsType, readOnly });
    return {};
  },
  unmountdevice: async ({ host }, directory = "") => unmountAll(host, directory),
  mount: async ({ host }, directory = "", options) => {
    const root = directory.slice(0, directory.indexOf("/pods/"));
    const mounts = `${root}/plugins/kubernetes.io/flexvolume/${flexDriver}/mounts`;
    await host.bindMount(`${mounts}/${diskOf(options)}`, directory);
    return {};
  },
  unmount: async ({ host }, directory = "") => unmountAll(host, directory),
};

async function unmountAll(host: Host, directory: string): Promise<object> {
  while (await host.isMountPoint(directory)) await host.unmount(directory);
  return {};
}

async function attachmentOf({ cloud }: FlexDriverEnv, diskId: string, node: string) {
  const { instanceId } = await instanceOf(cloud, node);
  const disk = await cloud.describeDisk(diskId, signal);
  return disk?.attachments.find((each) => each.instanceId === instanceId);
}

async function instanceOf(cloud: DiskCloud, node: string): Promise<Instance> {
  const instance = await cloud.describeInstance(node, signal);
  if (instance === undefined) throw new Error(`the provider has no machine of node ${node}`);
  return instance;
}

function optionOf(options: string | undefined, name: string): string {
  return (JSON.parse(options ?? "{}") as Record<string, string>)[name] ?? "";
}

/** A volume has its disk's name: all that `detach` is given is the name of the volume. */
const diskOf = (options: string | undefined) => optionOf(options, "kubernetes.io/pvOrVolumeName");
