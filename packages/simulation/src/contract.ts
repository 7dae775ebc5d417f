/**
 * The contract (C1 to C5), checked at every step of a simulation against the world itself: the disk
 * cloud, the nodes' mounts and the API's objects, never against what a component believes.
 */
import type { CSINode, PersistentVolume, Stored } from "@longshore/kube";
import type { Mount } from "@longshore/runtime";
import { migratedPluginsAnnotation } from "@longshore/storage";

/** A call that changed an attachment at the disk cloud. */
export interface AttachmentChange {
  readonly op: "attach" | "detach";
  readonly path: "in-tree" | "csi";
  readonly diskId: string;
  readonly nodeName: string;
}

/** What the checks look at. */
export interface WorldView {
  /** Devices of attached disks by disk and node. */
  readonly attachments: readonly { readonly diskId: string; readonly nodeName: string; readonly devicePath: string }[];
  /** Mounts of each node. */
  readonly mounts: ReadonlyMap<string, readonly Mount[]>;
  readonly csiNodes: readonly Stored<CSINode>[];
  readonly volumes: readonly Stored<PersistentVolume>[];
  readonly disks: ReadonlySet<string>;
}

const plugin = "kubernetes.io/aws-ebs";

/** Follows the world and collects what breaks the contract. */
export class ContractWatch {
  readonly violations: string[] = [];
  /** Who attached what: `disk@node` → path. */
  readonly #attachedBy = new Map<string, "in-tree" | "csi">();

  report(rule: "C1" | "C2" | "C3" | "C4" | "C5" | "C8", what: string): void {
    const text = `${rule}: ${what}`;
    if (!this.violations.includes(text)) this.violations.push(text);
  }

  /** To be told of every change at the disk cloud, in order. */
  attachmentChanged(change: AttachmentChange, world: WorldView): void {
    const key = `${change.diskId}@${change.nodeName}`;
    const by = this.#attachedBy.get(key);
    if (change.op === "attach") {
      if (by !== undefined && by !== change.path) {
        this.report("C1", `${key} is attached by ${by} and was attached again by ${change.path}`);
      }
      this.#attachedBy.set(key, by ?? change.path);
      const csiNode = world.csiNodes.find((c) => c.metadata.name === change.nodeName);
      if (change.path === "in-tree" && isListed(csiNode)) {
        this.report("C5", `the in-tree code attached ${key}, whose node lists ${plugin} as migrated`);
      }
      return;
    }
    if (by !== undefined && by !== change.path) {
      this.report("C1", `${key} was attached by ${by} and detached by ${change.path}`);
    }
    this.#attachedBy.delete(key);
    const device = world.attachments.find((a) => a.diskId === change.diskId)?.devicePath;
    const mounted = (world.mounts.get(change.nodeName) ?? []).filter((m) => m.source === device);
    if (device !== undefined && mounted.length > 0) {
      this.report("C2", `${key} was detached while mounted at ${mounted[0]?.target}`);
    }
  }

  /** What must hold of the world as it is now. */
  check(world: WorldView): void {
    this.#onePath(world);
    this.#oneWriter(world);
    this.#noLostDisk(world);
  }

  #onePath(world: WorldView): void {
    for (const { diskId, nodeName, devicePath } of world.attachments) {
      const by = this.#attachedBy.get(`${diskId}@${nodeName}`);
      for (const mount of world.mounts.get(nodeName) ?? []) {
        if (mount.source !== devicePath) continue;
        const path = mount.target.includes("/plugins/kubernetes.io/csi/") || mount.target.includes("kubernetes.io~csi")
          ? "csi"
          : "in-tree";
        if (by !== undefined && by !== path) {
          this.report("C1", `${diskId}@${nodeName} was attached by ${by} and is mounted by ${path}`);
        }
        const csiNode = world.csiNodes.find((c) => c.metadata.name === nodeName);
        if (path === "in-tree" && isListed(csiNode)) {
          this.report("C5", `${diskId} is mounted in-tree on ${nodeName}, which lists ${plugin} as migrated`);
        }
      }
    }
  }

  #oneWriter(world: WorldView): void {
    const nodesOf = new Map<string, string>();
    for (const { diskId, nodeName } of world.attachments) {
      const other = nodesOf.get(diskId);
      if (other !== undefined && other !== nodeName) {
        this.report("C2", `${diskId} is attached to ${other} and ${nodeName} at once`);
      }
      nodesOf.set(diskId, nodeName);
    }
  }

  /** No disk of a bound volume is ever deleted. */
  #noLostDisk(world: WorldView): void {
    for (const pv of world.volumes) {
      const id = pv.spec?.awsElasticBlockStore?.volumeID.split("/").at(-1);
      if (id === undefined || pv.status?.phase !== "Bound" || pv.metadata.deletionTimestamp !== undefined) continue;
      if (!world.disks.has(id)) this.report("C3", `the disk ${id} of bound volume ${pv.metadata.name} is gone`);
    }
  }
}

function isListed(csiNode: CSINode | undefined): boolean {
  return (csiNode?.metadata?.annotations?.[migratedPluginsAnnotation] ?? "").split(",").includes(plugin);
}
