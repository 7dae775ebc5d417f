/**
 * The pods that use volumes. Each finds on its volume all that was acknowledged there before, and goes on writing; what
 * is not there is a break of C3, whichever node it is read on.
 */
import { type Pod, resources } from "@longshore/kube";
import {
  claimVolume,
  classNameOf,
  clusterPlugin,
  type InProcessCluster,
  type PluginName,
  type Program,
  volumePod,
} from "@longshore/local";
import type { Clock, SimulatedHost } from "@longshore/runtime";

const namespace = "default";
const userProgram = "use";
const longMs = 2 ** 31;

/** A pod with its one volume. */
export interface VolumeUser {
  readonly name: string;
  readonly plugin: PluginName;
  readonly claim: string;
  readonly node: string;
}

interface OpenVolume {
  readonly podName: string;
  readonly host: SimulatedHost;
  readonly path: string;
  readonly claim: string;
}

/** Makes, moves and removes them, and knows what was written. */
export class VolumeUsers {
  readonly #clock: Clock;
  readonly #onLoss: (what: string) => void;
  readonly #signal = new AbortController().signal;
  /** All that was acknowledged, by claim. */
  readonly #written = new Map<string, string>();
  readonly #open = new Map<string, OpenVolume>();

  /** @param onLoss called with what was not as it was written */
  constructor(clock: Clock, onLoss: (what: string) => void) {
    this.#clock = clock;
    this.#onLoss = onLoss;
  }

  /** What the containers run. */
  programs(host: SimulatedHost): Readonly<Record<string, Program>> {
    return {
      [userProgram]: async ({ sandbox, args, signal }) => {
        const [directory = "", claim = ""] = args;
        const volume = { podName: sandbox.podName, host, path: `${directory}/records`, claim };
        await this.#expectAll(volume);
        await this.#write(volume);
        this.#open.set(sandbox.podUID, volume);
        try {
          await this.#clock.sleep(longMs, signal);
        } finally {
          this.#open.delete(sandbox.podUID);
        }
        return 0;
      },
    };
  }

  /** Every pod that runs writes something and reads all. */
  async writeAll(): Promise<void> {
    for (const volume of [...this.#open.values()]) {
      await this.#write(volume);
      await this.#expectAll(volume);
    }
  }

  /** Creates the claim. */
  async createClaim(cluster: InProcessCluster, plugin: PluginName, claim: string): Promise<void> {
    const spec = {
      accessModes: ["ReadWriteOnce"],
      storageClassName: classNameOf(clusterPlugin(plugin)),
      resources: { requests: { storage: "32Mi" } },
    };
    const metadata = { name: claim, namespace };
    await cluster.kube.create(resources.persistentVolumeClaims, { metadata, spec }, { signal: this.#signal });
  }

  /** Creates the pod, which waits for its node. */
  async createPod(cluster: InProcessCluster, { name, claim, node }: VolumeUser): Promise<void> {
    const command = [userProgram, "$(LONGSHORE_MOUNT_DATA)", claim];
    const pod = volumePod({ name, command, volume: claimVolume(claim) });
    const spec = { ...pod.spec, nodeSelector: { "kubernetes.io/hostname": node } } as Pod["spec"];
    await cluster.kube.create(resources.pods, { ...pod, spec } as Pod, { signal: this.#signal });
  }

  /** Asks for the pod's end. */
  async deletePod(cluster: InProcessCluster, name: string): Promise<void> {
    await cluster.kube.delete(resources.pods, { namespace, name }, { signal: this.#signal });
  }

  /** Asks for the claim's end, and with it the volume's. */
  async deleteClaim(cluster: InProcessCluster, claim: string): Promise<void> {
    this.#written.delete(claim);
    const ref = { namespace, name: claim };
    await cluster.kube.delete(resources.persistentVolumeClaims, ref, { signal: this.#signal });
  }

  async #write({ podName, host, path, claim }: OpenVolume): Promise<void> {
    const before = this.#written.get(claim) ?? "";
    const record = `${before.split("\n").length} of ${claim} at ${Math.round(this.#clock.monotonicMs())}\n`;
    try {
      await host.appendFileDurable(path, record);
      this.#written.set(claim, before + record);
    } catch (error) {
      this.#onLoss(`${podName} cannot write to ${claim}: ${error instanceof Error ? error.message : error}`);
    }
  }

  async #expectAll({ podName, host, path, claim }: OpenVolume): Promise<void> {
    const found = (await host.readFile(path).catch(() => undefined)) ?? "";
    const written = this.#written.get(claim) ?? "";
    if (found !== written) {
      this.#onLoss(
        `${podName} reads ${found.length} of the ${written.length} bytes that were written to ${claim}`,
      );
    }
  }
}
