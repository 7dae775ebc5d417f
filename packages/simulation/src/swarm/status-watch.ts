/**
 * What a node and the controller say to each other of disks, against the disks: a node mounts only what its posted `volumesInUse`
 * names; the controller lists in `volumesAttached` only what was surely attached, and takes it off before it detaches (docs/contract.md C2).
 */
import type { Node, Stored } from "@longshore/kube";
import { clusterPlugins } from "@longshore/local";
import { type Attacher, type AttachmentCall, diskOf, type WorldView } from "../contract-watch.ts";

/** Longer than a mount takes, in milliseconds. */
const mountMs = 1000;

type Field = "volumesAttached" | "volumesInUse";

/** Looks at one world again and again. */
export class NodeStatusWatch {
  readonly #now: () => number;
  readonly #attacherOf: (diskId: string, nodeName: string) => Attacher | undefined;
  readonly #onBreak: (what: string) => void;
  /** What was ever attached, as `disk@node`. */
  readonly #attached = new Set<string>();
  /** Devices and targets of the mounts of each node, when it was looked at last. */
  readonly #mounted = new Map<string, ReadonlySet<string>>();
  #seen: { readonly world: WorldView; readonly nodes: readonly Stored<Node>[] } | undefined;
  /** Until then a new mount may have begun before the API server was restored. */
  #restoringUntilMs = 0;

  /**
   * @param now the time in milliseconds
   * @param attacherOf who attached a disk to a node
   * @param onBreak called with what is said and is not so, or is so and is not said
   */
  constructor(
    now: () => number,
    attacherOf: (diskId: string, nodeName: string) => Attacher | undefined,
    onBreak: (what: string) => void,
  ) {
    this.#now = now;
    this.#attacherOf = attacherOf;
    this.#onBreak = onBreak;
  }

  /** The Nodes are older than the world: what is being mounted now they named in use before. */
  restored(): void {
    this.#restoringUntilMs = this.#now() + mountMs;
  }

  /** A detach takes effect next. */
  detaches(
    { path, plugin, diskId, nodeName }: AttachmentCall,
    world: WorldView,
    nodes: readonly Stored<Node>[],
  ): void {
    // A failed detach is listed again while the attacher goes on with it: the node mounts nothing whose VolumeAttachment is being deleted.
    if (path === "csi" || !isPublished(plugin)) return;
    const node = nodes.find(({ metadata }) => metadata.name === nodeName);
    if (disksOf(node, "volumesAttached", world).has(diskId))
      this.#onBreak(`${diskId} is detached from ${nodeName} while its Node lists it as attached`);
  }

  /** The world and its Node objects as they are now. */
  check(world: WorldView, nodes: readonly Stored<Node>[]): void {
    if (this.#seen?.world === world && this.#seen.nodes === nodes) return;
    this.#seen = { world, nodes };
    this.#listsWhatWasAttached(world, nodes);
    this.#mountsWhatIsInUse(world, nodes);
  }

  /** A controller that lags lists what is detached by now: that a detach has failed, it may hear after the next one was done. */
  #listsWhatWasAttached(world: WorldView, nodes: readonly Stored<Node>[]): void {
    for (const { diskId, nodeName } of world.attachments) this.#attached.add(`${diskId}@${nodeName}`);
    for (const node of nodes) {
      for (const diskId of disksOf(node, "volumesAttached", world)) {
        if (!this.#attached.has(`${diskId}@${node.metadata.name}`))
          this.#onBreak(`Node ${node.metadata.name} lists ${diskId}, which was never attached to it`);
      }
    }
  }

  /** Of what is mounted that was not there before: a Node that was made again does not know at once what was mounted before. */
  #mountsWhatIsInUse(world: WorldView, nodes: readonly Stored<Node>[]): void {
    for (const [nodeName, mounts] of world.mounts) {
      const before = this.#mounted.get(nodeName);
      this.#mounted.set(nodeName, new Set(mounts.map(({ source, target }) => `${source} ${target}`)));
      const node = nodes.find(({ metadata }) => metadata.name === nodeName);
      if (node === undefined) continue;
      const inUse = disksOf(node, "volumesInUse", world);
      for (const { source, target } of mounts) {
        if (before?.has(`${source} ${target}`) === true || this.#now() < this.#restoringUntilMs) continue;
        const diskId = this.#diskAt(source, nodeName, world);
        if (diskId !== undefined && !inUse.has(diskId))
          this.#onBreak(
            `${diskId} is mounted at ${target}, and Node ${nodeName} does not say that it is in use`,
          );
      }
    }
  }

  /** The disk behind a device, where a controller attaches it: what a node attaches by itself, it does not report. */
  #diskAt(source: string, nodeName: string, { attachments }: WorldView): string | undefined {
    const here = attachments.find((a) => a.nodeName === nodeName && a.devicePath === source);
    const plugin = here && this.#attacherOf(here.diskId, nodeName)?.plugin;
    return isPublished(plugin) ? here?.diskId : undefined;
  }
}

/** Whether a controller attaches the disks of this plugin; of those that nodes attach, the list says what nodes may use. */
function isPublished(plugin: string | undefined): boolean {
  return clusterPlugins.some((each) => each.inTreeName === plugin && each.controllerPublishes);
}

function disksOf(node: Stored<Node> | undefined, field: Field, world: WorldView): ReadonlySet<string> {
  const names =
    field === "volumesInUse"
      ? (node?.status?.volumesInUse ?? [])
      : (node?.status?.volumesAttached ?? []).map(({ name }) => name).filter(isOfController);
  return new Set(names.flatMap((name) => diskOf(handleOf(name), world) ?? []));
}

function isOfController(uniqueName: string): boolean {
  const plugin = clusterPlugins.find(
    ({ inTreeName, driverName }) =>
      uniqueName.startsWith(`${inTreeName}/`) || uniqueName.startsWith(`kubernetes.io/csi/${driverName}^`),
  );
  return isPublished(plugin?.inTreeName);
}

/** The handle in a unique name, e.g. `kubernetes.io/csi/DRIVER^HANDLE` or `kubernetes.io/aws-ebs/HANDLE`. */
function handleOf(uniqueName: string): string {
  const at = uniqueName.indexOf("^");
  return at >= 0 ? uniqueName.slice(at + 1) : uniqueName.split("/").slice(2).join("/");
}
