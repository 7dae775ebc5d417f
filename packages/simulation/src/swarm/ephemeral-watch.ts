/** The volumes that drivers make on nodes for single pods, as they are on the machines: no two pods have one, and none is left. */
import { ephemeralVolumesDir, type InProcessCluster } from "@longshore/local";
import type { Mount } from "@longshore/runtime";
import type { WorldView } from "../contract-watch.ts";

const madeBelow = ephemeralVolumesDir("", "");
const ofPod = /^\/n\/[^/]+\/pods\/([^/]+)\/volumes\//;

/** Looks at one world again and again. */
export class EphemeralWatch {
  readonly #onBreak: (what: string) => void;
  #seen: WorldView["mounts"] = new Map();
  #others: WorldView["mounts"] = this.#seen;

  /** @param onBreak called with a volume that two pods have */
  constructor(onBreak: (what: string) => void) {
    this.#onBreak = onBreak;
  }

  /** Checks the mounts of the nodes as they are now. @returns those that are of other volumes: these alone have disks of the cloud */
  check(mounts: WorldView["mounts"]): WorldView["mounts"] {
    if (mounts === this.#seen) return this.#others;
    this.#seen = mounts;
    const others = [...mounts].map(([node, of]) => {
      const made = new Set(of.filter(({ target }) => target.includes(madeBelow)).map(({ source }) => source));
      this.#requireOnePod(of.filter(({ source }) => made.has(source)));
      return [node, of.filter(({ source }) => !made.has(source))] as const;
    });
    this.#others = new Map(others);
    return this.#others;
  }

  #requireOnePod(mounts: readonly Mount[]): void {
    const podOf = new Map<string, string>();
    for (const { source, target } of mounts) {
      const pod = ofPod.exec(target)?.[1];
      if (pod === undefined) continue;
      const other = podOf.get(source) ?? pod;
      if (other !== pod) this.#onBreak(`pods ${other} and ${pod} have one ephemeral volume, ${source}`);
      podOf.set(source, pod);
    }
  }
}

/** The directories of ephemeral volumes that are on the nodes, whatever pods there are. */
export async function ephemeralVolumesLeft(cluster: InProcessCluster): Promise<readonly string[]> {
  const { nodes } = cluster.config;
  const lists = nodes.map(async ({ name }) => {
    const host = cluster.hostOf(name);
    const root = `${cluster.rootDirOf(name)}${madeBelow}`;
    const drivers = (await host.readDirectory(root)) ?? [];
    const made = await Promise.all(
      drivers.map(async (driver) => (await host.readDirectory(`${root}${driver}`)) ?? []),
    );
    return made.flat().map((volume) => `${name}: ${volume}`);
  });
  return (await Promise.all(lists)).flat();
}
