/**
 * What a driver's answers and its CSIDriver object make of a pod's ownership facts: who gives the files to the group, and
 * under which SELinux label they are mounted. Source: docs/behaviour/csi-plugin.md 9.6, 9.8.
 */
import { NodeServiceCapability_RPC_Type } from "@longshore/csi";
import type { Host } from "@longshore/runtime";
import type { MounterArgs } from "../../framework/volume-plugin.ts";
import type { CsiDriverPolicy } from "./csi-node-context.ts";

/** The part of a VolumeCapability that comes from the pod. */
export interface CsiMountFacts {
  /** For `volume_mount_group`; empty where the driver does not take it. */
  readonly mountGroup: string;
  readonly mountOptions: readonly string[];
}

/** What stage and publish calls say of the pod's ownership. */
export async function csiMountFacts(
  host: Host,
  volume: { readonly accessModes: readonly string[]; readonly mountOptions: readonly string[] },
  {
    args,
    policy,
    capabilities,
  }: {
    readonly args: MounterArgs;
    readonly policy: Pick<CsiDriverPolicy, "seLinuxMount">;
    readonly capabilities: ReadonlySet<NodeServiceCapability_RPC_Type>;
  },
): Promise<CsiMountFacts> {
  const { fsGroup, seLinuxLabel } = args;
  const takesGroup = capabilities.has(NodeServiceCapability_RPC_Type.VOLUME_MOUNT_GROUP);
  const isLabelled =
    seLinuxLabel !== undefined && mountsWithLabel(policy, volume.accessModes) && (await hasSELinux(host));
  return {
    mountGroup: takesGroup && fsGroup !== undefined ? String(fsGroup) : "",
    mountOptions: isLabelled ? [...volume.mountOptions, `context="${seLinuxLabel}"`] : volume.mountOptions,
  };
}

/** Only a volume of one pod has one label for certain. */
function mountsWithLabel(
  { seLinuxMount }: Pick<CsiDriverPolicy, "seLinuxMount">,
  accessModes: readonly string[],
): boolean {
  return seLinuxMount && accessModes.length === 1 && accessModes[0] === "ReadWriteOncePod";
}

/** The kernel refuses the mount option where it has no SELinux. */
async function hasSELinux(host: Host): Promise<boolean> {
  return (await host.stat("/sys/fs/selinux/enforce")) !== undefined;
}

const modesOfOneNode: ReadonlySet<string> = new Set(["ReadWriteOnce", "ReadWriteOncePod"]);

/** Whether the node changes the group of the volume's files. Source: docs/behaviour/csi-plugin.md 9.6. */
export function fsGroupApplies(
  policy: string,
  volume: {
    readonly readOnly: boolean;
    readonly fsType?: string | undefined;
    readonly accessModes: readonly string[];
  },
): boolean {
  if (policy === "None" || volume.readOnly) return false;
  if (policy === "File") return true;
  const isOfOneNode = volume.accessModes.some((mode) => modesOfOneNode.has(mode));
  return (volume.fsType ?? "") !== "" && isOfOneNode;
}
