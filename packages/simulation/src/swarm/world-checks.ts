/** What must hold in a world of the swarm, at every step: the contract, the order of records, sizes, and the number of requests. */
import { resources } from "@longshore/kube";
import type { InProcessCluster } from "@longshore/local";
import type { Clock } from "@longshore/runtime";
import { type AttachmentCall, ContractWatch, type WorldView } from "../contract-watch.ts";
import type { ConversionWorldView } from "../conversion-watch.ts";
import type { SeamCall } from "../cut.ts";
import { worldOf } from "../world.ts";
import { ClaimWatch } from "./claim-watch.ts";
import { EphemeralWatch } from "./ephemeral-watch.ts";
import { KeptVolumes } from "./kept-volumes.ts";
import { OpenDevices } from "./open-devices.ts";
import { leaderOf } from "./operations/leaders.ts";
import type { LostByRestore } from "./operations/operators.ts";
import { RecordHistory } from "./record-history.ts";
import { RequestWatch } from "./request-watch.ts";
import { SizeWatch } from "./size-watch.ts";
import { NodeStatusWatch } from "./status-watch.ts";
import type { SwarmPlan } from "./swarm-plan.ts";
import type { WorldStory } from "./world-story.ts";
import { WriterLocks } from "./writer-locks.ts";

/** No component needs as many requests for an object in a minute, whatever goes wrong. */
const requestsMax = 600;

/** What of the cloud's calls changes something. */
const changesDisks: ReadonlySet<string> = new Set(["attachDisk", "detachDisk", "createDisk", "deleteDisk"]);

/** Looks at one world. */
export class WorldChecks {
  readonly watch: ContractWatch;
  readonly history: RecordHistory;
  readonly devices = new OpenDevices();
  readonly locks = new WriterLocks();
  readonly claims = new ClaimWatch(
    ({ writers }) => {
      for (const writer of writers) this.history.emptied(writer);
    },
    (what) => this.watch.report("C3", what),
  );
  readonly requests: RequestWatch;
  readonly #sizes: SizeWatch | undefined;
  readonly #statuses: NodeStatusWatch;
  readonly #ephemeral: EphemeralWatch | undefined;
  readonly #converts: boolean;
  #kept: KeptVolumes | undefined;

  constructor(clock: Pick<Clock, "monotonicMs">, plan: SwarmPlan, story: WorldStory) {
    this.watch = new ContractWatch(
      ({ op, path, diskId, nodeName }) => story.trace("disk", diskId, `${path} ${op} ${nodeName}`),
      (violation) => story.trace("broken", "the contract is broken:", violation),
    );
    this.history = new RecordHistory((what) => this.watch.report("C3", what));
    const onShrunk = (what: string) => this.watch.report("C3", what);
    this.#sizes = plan.operations.includes("claimGrown") ? new SizeWatch(onShrunk) : undefined;
    this.#statuses = new NodeStatusWatch(
      () => clock.monotonicMs(),
      (diskId, nodeName) => this.watch.attacherOf(diskId, nodeName),
      (what) => this.watch.report("C2", what),
    );
    const hasEphemeral = plan.volumes.includes("csiInline");
    this.#ephemeral = hasEphemeral ? new EphemeralWatch((what) => this.watch.report("C3", what)) : undefined;
    this.#converts = plan.operations.includes("conversion");
    this.requests = new RequestWatch(requestsMax, (what) => this.watch.report("C8", what));
  }

  /** Whatever has changed, the contract holds. */
  look(cluster: InProcessCluster): void {
    this.watch.check(this.#view(cluster));
    this.#statuses.check(worldOf(cluster), cluster.objects(resources.nodes));
    this.#sizes?.check(cluster);
    this.#kept?.check(volumesOf(cluster));
    if (!this.claims.isIdle)
      this.claims.check({ ...volumesOf(cluster), pods: cluster.objects(resources.pods) });
    for (const violation of cluster.disks.violations) this.watch.report("C2", violation);
  }

  /** From now on until {@link volumesMayGo} the volumes of all claims stay, whatever is converted. */
  volumesStay(cluster: InProcessCluster): void {
    if (!this.#converts) return;
    this.#kept = new KeptVolumes(volumesOf(cluster), (rule, what) => this.watch.report(rule, what));
  }

  volumesMayGo(): void {
    this.#kept = undefined;
  }

  /** The objects are older than the world from now on. */
  restored({ returned, csiNodes, pods }: LostByRestore): void {
    this.watch.restored(returned, csiNodes);
    for (const pod of pods) this.history.emptied(pod);
    this.#sizes?.restored();
    this.#statuses.restored();
  }

  /** An attach or detach takes effect now. */
  asked(call: AttachmentCall, cluster: InProcessCluster | undefined): void {
    this.watch.asked(call, cluster && this.#view(cluster));
    if (cluster === undefined || call.op !== "detach") return;
    this.#statuses.detaches(call, worldOf(cluster), cluster.objects(resources.nodes));
  }

  /** It is detached by hand, which is on no other path than the attach was. */
  detachedByHand(diskId: string, nodeName: string, cluster?: InProcessCluster): void {
    const { path, plugin } = this.watch.attacherOf(diskId, nodeName) ?? { path: "in-tree", plugin: "" };
    this.watch.asked({ op: "detach", path, plugin, diskId, nodeName }, cluster && this.#view(cluster));
  }

  /** The disk is attached. */
  attached(call: AttachmentCall, cluster: InProcessCluster): void {
    this.watch.attachAnswered(call, this.#view(cluster));
  }

  /** A controller manager that does not lead asks nothing of the cloud: its successor may have attached what it would detach. */
  onlyLeaderChanges({ component, seam, method }: SeamCall, cluster: InProcessCluster): void {
    if (seam !== "cloud" || !component.startsWith("controller-manager")) return;
    if (!changesDisks.has(method)) return;
    const leader = leaderOf(cluster);
    if (leader === component) return;
    this.watch.report("C2", `${component} asks for ${method}, although ${leader ?? "no other"} leads`);
  }

  /** A device that a program has open is looked at as a mount. */
  #view(cluster: InProcessCluster): WorldView {
    const world = worldOf(cluster);
    const ofDisks = this.#ephemeral?.check(world.mounts) ?? world.mounts;
    const mounts = [...ofDisks].map(
      ([node, mounted]) => [node, [...mounted, ...this.devices.of(node)]] as const,
    );
    return { ...world, mounts: new Map(mounts) };
  }
}

function volumesOf(cluster: InProcessCluster): ConversionWorldView {
  return {
    volumes: cluster.objects(resources.persistentVolumes),
    claims: cluster.objects(resources.persistentVolumeClaims),
    disks: worldOf(cluster).disks,
  };
}
