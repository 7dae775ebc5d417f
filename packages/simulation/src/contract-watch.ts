/**
 * The contract (C1 to C6), checked at every step of a simulation against the simulated state itself: the disk
 * cloud, the nodes' mounts and the API's objects, never against what a component believes.
 */
import type { CSINode, PersistentVolume, Stored } from "@longshore/kube";
import { clusterPlugins, inTreeHandle } from "@longshore/local";
import type { Mount } from "@longshore/runtime";
import { migratedPluginsOf } from "@longshore/storage";

/** A call to the disk cloud about an attachment. */
export interface AttachmentCall {
  readonly op: "attach" | "detach";
  readonly path: VolumePath;
  /** The in-tree plugin of the disk, e.g. `kubernetes.io/aws-ebs`. */
  readonly plugin: string;
  readonly diskId: string;
  readonly nodeName: string;
}

/** Whose code acts on a volume. */
export type VolumePath = "in-tree" | "csi";

/** What the checks look at. */
export interface WorldView {
  /** Devices of attached disks by disk and node. */
  readonly attachments: readonly {
    readonly diskId: string;
    readonly nodeName: string;
    readonly devicePath: string;
  }[];
  /** Mounts of each node. */
  readonly mounts: ReadonlyMap<string, readonly Mount[]>;
  readonly csiNodes: readonly Stored<CSINode>[];
  readonly volumes: readonly Stored<PersistentVolume>[];
  readonly disks: ReadonlySet<string>;
}

/** Who attached a disk, and of which plugin it is. */
export interface Attacher {
  readonly path: VolumePath;
  readonly plugin: string;
}

/** Follows the simulated state and collects what breaks the contract. */
export class ContractWatch {
  readonly violations: string[] = [];
  /** Who attached what: `disk@node` → path. */
  readonly #attachedBy = new Map<string, Attacher>();
  /** Who last asked for what of a disk on a node: a call may take effect and its answer never be seen. */
  readonly #asked = new Map<string, Attacher>();
  /** `disk@node` of what was attached when the API server was restored: no object may say by which path, so either may go on with it. */
  readonly #unrecorded = new Set<string>();
  /** The sources of volumes by their uids, as they were stored last. */
  readonly #sources = new Map<string, unknown>();
  /** UIDs of volumes that were given up, and are there again. */
  readonly #returned = new Set<string>();
  /** What CSINodes list since a restore of the API server, by name, until their nodes list something else. */
  readonly #older = new Map<string, string>();
  /** The world that was checked last. */
  #checked: WorldView | undefined;
  readonly #onChange: (call: AttachmentCall) => void;
  readonly #onViolation: (violation: string) => void;

  /**
   * @param onChange called for every attach and detach that took effect
   * @param onViolation called once for each kind of violation
   */
  constructor(
    onChange: (call: AttachmentCall) => void = () => {},
    onViolation: (violation: string) => void = () => {},
  ) {
    this.#onChange = onChange;
    this.#onViolation = onViolation;
  }

  report(rule: "C1" | "C2" | "C3" | "C4" | "C5" | "C6" | "C8", what: string): void {
    const text = `${rule}: ${what}`;
    // The state is checked at every step: what stays broken is one violation, not one for each step.
    if (this.violations.includes(text)) return;
    this.violations.push(text);
    this.#onViolation(text);
  }

  /**
   * Must be called for every such call right before it takes effect, with the world as it is then; without one, for a call whose
   * effect is not looked at. A detach of what is mounted breaks the contract, although the simulated provider refuses it: a real
   * one takes the disk away.
   */
  asked(call: AttachmentCall, world?: WorldView): void {
    const { op, path, plugin, diskId, nodeName } = call;
    if (op === "detach" && world !== undefined) this.#notMounted(call, world);
    this.#checked = undefined;
    this.#asked.set(`${op} ${diskId}@${nodeName}`, { path, plugin });
  }

  #notMounted({ path, diskId, nodeName }: AttachmentCall, world: WorldView): void {
    const attachment = world.attachments.find((a) => a.diskId === diskId && a.nodeName === nodeName);
    const mounts = world.mounts.get(nodeName) ?? [];
    const mount = mounts.find(({ source }) => source !== "" && source === attachment?.devicePath);
    if (mount === undefined) return;
    this.report("C2", `${path} asks to detach ${diskId}@${nodeName}, which is mounted at ${mount.target}`);
  }

  /** Who attached the disk to the node; undefined where it is not attached. */
  attacherOf(diskId: string, nodeName: string): Attacher | undefined {
    return this.#attachedBy.get(`${diskId}@${nodeName}`);
  }

  /** Must be called for every attach that was answered with success. */
  attachAnswered(call: AttachmentCall, world: WorldView): void {
    // Notes the attachment if it is new, so that `by` is the path that attached it first.
    this.check(world);
    const key = `${call.diskId}@${call.nodeName}`;
    const by = this.#attachedBy.get(key)?.path;
    if (by === undefined || by === call.path) return;
    if (this.#unrecorded.delete(key)) this.#attachedBy.set(key, { path: call.path, plugin: call.plugin });
    else this.report("C1", `${key} is attached by ${by} and was attached again by ${call.path}`);
  }

  /**
   * The API server is restored: what its CSINodes list is older than what their nodes do, until these write them again.
   * @param volumes UIDs of volumes that had been given up, and are there again: no data are lost with their disks
   */
  restored(volumes: readonly string[], csiNodes: readonly Stored<CSINode>[]): void {
    for (const uid of volumes) this.#returned.add(uid);
    for (const csiNode of csiNodes) this.#older.set(csiNode.metadata.name, listedIn(csiNode));
    for (const key of this.#attachedBy.keys()) this.#unrecorded.add(key);
    // An attach that was asked for before the restore may take effect after it.
    for (const asked of this.#asked.keys())
      if (asked.startsWith("attach ")) this.#unrecorded.add(asked.slice("attach ".length));
  }

  /** Finds what has been attached and detached since the last look, and who asked for it. */
  #followAttachments(world: WorldView): void {
    const now = new Map(world.attachments.map((a) => [`${a.diskId}@${a.nodeName}`, a]));
    for (const [key, by] of this.#attachedBy) {
      if (now.has(key)) continue;
      this.#attachedBy.delete(key);
      const { path, plugin } = this.#asked.get(`detach ${key}`) ?? by;
      this.#onChange({ op: "detach", path, plugin, ...parsed(key) });
      const isUnrecorded = this.#unrecorded.delete(key);
      if (path !== by.path && !isUnrecorded)
        this.report("C1", `${key} was attached by ${by.path} and detached by ${path}`);
    }
    for (const [key, { nodeName }] of now) {
      if (this.#attachedBy.has(key)) continue;
      const by = this.#asked.get(`attach ${key}`);
      if (by === undefined) continue;
      const { path, plugin } = by;
      this.#attachedBy.set(key, by);
      this.#onChange({ op: "attach", path, plugin, ...parsed(key) });
      if (path === "in-tree" && this.#isListed(world, nodeName, plugin)) {
        this.report("C5", `the in-tree code attached ${key}, whose node lists ${plugin} as migrated`);
      }
    }
  }

  /** What must hold of the state as it is now. */
  check(world: WorldView): void {
    // What has held of this very world holds of it still, unless another call is the cause of it.
    if (world === this.#checked) return;
    this.#checked = world;
    for (const csiNode of this.#older.size === 0 ? [] : world.csiNodes) {
      const { name } = csiNode.metadata;
      if (listedIn(csiNode) !== this.#older.get(name)) this.#older.delete(name);
    }
    this.#followAttachments(world);
    this.#notDetachedUnderMounts(world);
    this.#onePath(world);
    this.#oneWriter(world);
    this.#noLostDisk(world);
    this.#sameSources(world);
  }

  #onePath(world: WorldView): void {
    for (const { diskId, nodeName, devicePath } of world.attachments) {
      const key = `${diskId}@${nodeName}`;
      const by = this.#attachedBy.get(key);
      for (const mount of world.mounts.get(nodeName) ?? []) {
        if (mount.source !== devicePath) continue;
        const path = pathOfMount(mount);
        if (by !== undefined && by.path !== path && !this.#unrecorded.has(key)) {
          this.report("C1", `${key} was attached by ${by.path} and is mounted by ${path}`);
        }
        if (by !== undefined && path === "in-tree" && this.#isListed(world, nodeName, by.plugin)) {
          this.report(
            "C5",
            `${diskId} is mounted in-tree on ${nodeName}, which lists ${by.plugin} as migrated`,
          );
        }
      }
    }
  }

  /** Whether the node itself lists the plugin as migrated. */
  #isListed(world: WorldView, nodeName: string, plugin: string): boolean {
    const csiNode = world.csiNodes.find(({ metadata }) => metadata.name === nodeName);
    return !this.#older.has(nodeName) && migratedPluginsOf(csiNode).has(plugin);
  }

  /** Every mounted device belongs to a disk that is attached there. */
  #notDetachedUnderMounts(world: WorldView): void {
    for (const [nodeName, mounts] of world.mounts) {
      for (const mount of mounts) {
        // The cloud's disks are loop devices; no other mount has a source that a provider could detach.
        if (!mount.source.startsWith("/dev/loop")) continue;
        const attached = world.attachments.some(
          (a) => a.nodeName === nodeName && a.devicePath === mount.source,
        );
        if (!attached)
          this.report("C2", `${mount.source} was detached while mounted on ${nodeName} at ${mount.target}`);
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

  /** Who a volume belongs to does not change: no translation of it is ever stored. */
  #sameSources(world: WorldView): void {
    for (const { metadata, spec } of world.volumes) {
      const source = sourceOf(spec);
      const known = this.#sources.get(metadata.uid);
      this.#sources.set(metadata.uid, source);
      // Versions of an object share what has not changed.
      if (known === undefined || known === source || JSON.stringify(known) === JSON.stringify(source))
        continue;
      this.report("C6", `the source of volume ${metadata.name} was changed`);
    }
  }

  /** No disk of a bound volume is ever deleted. */
  #noLostDisk(world: WorldView): void {
    for (const pv of world.volumes) {
      const handle = inTreeHandle(pv.spec);
      if (handle === undefined || pv.status?.phase !== "Bound" || pv.metadata.deletionTimestamp !== undefined)
        continue;
      if (diskOf(handle, world) === undefined && !this.#returned.has(pv.metadata.uid))
        this.report("C3", `the disk ${handle} of bound volume ${pv.metadata.name} is gone`);
    }
  }
}

function listedIn(csiNode: Stored<CSINode>): string {
  return [...migratedPluginsOf(csiNode)].sort().join();
}

function parsed(key: string): { readonly diskId: string; readonly nodeName: string } {
  const [diskId = "", nodeName = ""] = key.split("@");
  return { diskId, nodeName };
}

/** What a volume is made of, by CSI, by a Flexvolume driver or by the plugin that it names. */
function sourceOf(spec: PersistentVolume["spec"]): unknown {
  if (spec?.csi !== undefined) return spec.csi;
  if (spec?.flexVolume !== undefined) return spec.flexVolume;
  const member = clusterPlugins.find(({ source }) => spec?.[source] !== undefined)?.source;
  return member === undefined ? undefined : spec?.[member];
}

/** Whose code has made the mount: each has directories of its own (docs/behaviour/node-agent.md). */
export function pathOfMount({ target }: Pick<Mount, "target">): VolumePath {
  return target.includes("/plugins/kubernetes.io/csi/") || target.includes("kubernetes.io~csi")
    ? "csi"
    : "in-tree";
}

/** The image, with its pool, that a translated handle of Ceph RBD names; undefined: it is another handle. */
function migratedImage(volumeHandle: string): string | undefined {
  const [, uuid, pool = ""] = /^mig_mons-[^_]+_image-(.+)_([0-9a-f]+)$/.exec(volumeHandle) ?? [];
  return uuid && `${Buffer.from(pool, "hex").toString()}/kubernetes-dynamic-pvc-${uuid}`;
}

/**
 * The disk that a volume names; undefined where there is none. An in-tree volume and the disk may have more in front than the other: a zone,
 * a pool, an account. The handle of a share has more behind (docs/behaviour/volume-plugins.md 8.3, translation of Azure File), and that of one
 * that a pod names itself has no resource group in front.
 */
export function diskOf(volumeHandle: string, { disks }: Pick<WorldView, "disks">): string | undefined {
  const handle = migratedImage(volumeHandle) ?? volumeHandle;
  const id = [handle, handle.split("/").at(-1) ?? ""].find((each) => disks.has(each));
  const isOf = (disk: string) =>
    disk.endsWith(`/${handle}`) ||
    disk.endsWith(`#${handle}`) ||
    handle.startsWith(`${disk}#`) ||
    handle.startsWith(`${withoutGroup(disk)}#`);
  return id ?? [...disks].find(isOf);
}

/** What a share is called where no resource group is known. */
function withoutGroup(disk: string): string {
  const at = disk.indexOf("#");
  return at === -1 ? disk : disk.slice(at);
}
