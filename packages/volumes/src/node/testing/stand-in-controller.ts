/**
 * A stand-in for the attach/detach controller: attaches by the CSINode annotation, keeps to the
 * safe order of detaching, and notes it as a violation when it would pull a disk from under a mount.
 */
import { resources } from "@longshore/kube";
import { attachmentName } from "@longshore/storage";
import { csiName, driverName, inTreeName, type NodeWorld, nodeName, rootDir } from "./node-world.ts";

/** Runs until the signal of the world's end; one step each 100 ms. */
export class StandInController {
  readonly violations: string[] = [];
  /** How each disk is attached. */
  readonly attached = new Map<string, "csi" | "in-tree">();
  readonly #world: NodeWorld;
  readonly #devices = new Map<string, string>();

  constructor(world: NodeWorld) {
    this.#world = world;
  }

  /** Begins; `signal` ends it. */
  start(signal: AbortSignal): void {
    const run = async () => {
      while (!signal.aborted) {
        await this.#step();
        await this.#world.clock.sleep(100, signal).catch(() => {});
      }
    };
    void run();
  }

  async #step(): Promise<void> {
    const world = this.#world;
    const { items } = await world.kube.list(resources.pods, world);
    const wanted = new Set(
      items
        .filter((pod) => pod.spec?.nodeName === nodeName)
        .flatMap((pod) => pod.spec?.volumes ?? [])
        .map((volume) => volume.persistentVolumeClaim?.claimName.replace("claim-", "") ?? ""),
    );
    for (const [id, path] of [...this.attached]) if (!wanted.has(id)) await this.#detach(id, path);
    const path = (await world.migratedPlugins()) === "kubernetes.io/aws-ebs" ? "csi" : "in-tree";
    for (const id of wanted) {
      if (id === "") continue;
      const current = this.attached.get(id);
      if (current === undefined) await this.#attach(id, path);
      else await this.#report(id, current);
    }
  }

  async #attach(id: string, path: "csi" | "in-tree"): Promise<void> {
    this.attached.set(id, path);
    const device = this.#devices.get(id) ?? (await this.#world.disk(id));
    this.#devices.set(id, device);
    if (path === "csi") await this.#world.attachment(id, device);
    await this.#report(id, path);
  }

  async #report(id: string, path: "csi" | "in-tree"): Promise<void> {
    const name = nameOf(id, path);
    const listed = (await this.#world.node()).status?.volumesAttached ?? [];
    if (listed.some((volume) => volume.name === name)) return;
    await this.#world.reportAttached(name, path === "csi" ? "" : this.#devices.get(id));
  }

  async #detach(id: string, path: "csi" | "in-tree"): Promise<void> {
    const world = this.#world;
    const name = nameOf(id, path);
    await world.reportDetached(name);
    if ((await world.node()).status?.volumesInUse?.includes(name)) return;
    const device = this.#devices.get(id);
    const mounts = await world.host.listMounts(rootDir);
    const mount = mounts.find(({ source }) => source === device);
    if (mount !== undefined) this.violations.push(`${id} detached while mounted at ${mount.target}`);
    if (path === "csi") {
      const attachment = { name: attachmentName(id, driverName, nodeName) };
      await world.kube.delete(resources.volumeAttachments, attachment, world);
    }
    this.attached.delete(id);
  }
}

const nameOf = (id: string, path: "csi" | "in-tree") => (path === "csi" ? csiName(id) : inTreeName(id));
