/** A cluster on the virtual clock whose PersistentVolumes are converted, with the contract checked after every call of anybody. */
import { createHash } from "node:crypto";
import { type KubeClient, type KubeObject, resources, type StatefulSet } from "@longshore/kube";
import {
  acknowledgedRecords,
  classNameOf,
  clusterConfig,
  clusterPlugin,
  createInProcessCluster,
  type InProcessCluster,
  lostRecords,
  type PluginName,
  recordPrograms,
  rewrittenRecords,
  writerProgram,
  writerSet,
} from "@longshore/local";
import {
  type ConversionDirection,
  type ConversionEvent,
  type ConversionPlan,
  type ConversionPlanOptions,
  type ConversionResult,
  carryReplacements,
  type InlineJournal,
  joinedResults,
  openReplacements,
  planConversion,
  planUndoReplacements,
  type ReplacementJournal,
  readClusterId,
  readReplacementJournals,
  startedReplacements,
  type UndoPlan,
  type VolumeJournal,
} from "@longshore/migration";
import {
  type Host,
  noMeter,
  type Random,
  type RuntimeEnv,
  SeededRandom,
  SimulatedHost,
  silentLogger,
  VirtualClock,
} from "@longshore/runtime";
import { convertVolumes, journalsOf, undoVolumes } from "./carry-volumes.ts";
import { type AttachmentCall, ContractWatch } from "./contract-watch.ts";
import { ConversionWatch } from "./conversion-watch.ts";
import { type CallGate, Life } from "./cut.ts";
import { FaultDraws } from "./fault-draws.ts";
import { FaultyCloud } from "./faulty-cloud.ts";
import { convertInline, inlineJournals, undoInline } from "./inline-conversion.ts";
import { attachmentCalls, worldOf } from "./world.ts";

/** A new one for each wait: those of dead processes never end, and leave their listeners on it. */
const never = (): AbortSignal => new AbortController().signal;
const namespace = "default";
/** Where an operator's machine has its journals and backups. */
const journalDir = "/conversions";
const backupDir = "/backup";
const withinMs = 3_600_000;

/** What the world begins with. */
export interface ConversionWorldOptions {
  readonly plugins: readonly PluginName[];
  /** Default: one for each writer of a plugin. */
  readonly nodes?: number;
  /** Writers of each plugin, which one StatefulSet has; of a shared file system one. Default 1. */
  readonly replicas?: number;
  /** The writer's template describes its disk itself: of EBS alone, and one writer. */
  readonly inline?: boolean;
  readonly seed?: number;
  /** CustomResourceDefinitions of snapshots; with them, snapshots are made. */
  readonly snapshotDefinitions?: readonly KubeObject[];
  /** Stands before every call of the cluster's components. */
  readonly gate?: CallGate;
  /** Called for every attach and detach that took effect. */
  readonly onDisk?: (call: AttachmentCall) => void;
  /** Called once for each kind of violation. */
  readonly onViolation?: (violation: string) => void;
}

/** From where conversions are run: a machine, and how it reaches the API server. */
export interface Operator {
  readonly host: Host;
  readonly kube: KubeClient;
}

/** What a conversion is asked for. */
export type CarryOptions = ConversionPlanOptions & {
  readonly parallel?: number;
  readonly onEvent?: (event: ConversionEvent) => void;
};

/** A call of the driver that was answered. */
export interface DriverCall {
  readonly rpc: string;
  readonly volumeId: string | undefined;
}

type Backing = ReturnType<InProcessCluster["disks"]["loops"]>[number]["backing"];

/** The cluster, its writers, and who converts. */
export class ConversionWorld {
  readonly clock: VirtualClock;
  readonly cluster: InProcessCluster;
  readonly driverCalls: readonly DriverCall[];
  readonly #env: RuntimeEnv;
  readonly #plugins: readonly PluginName[];
  readonly #replicas: number;
  readonly #isInline: boolean;
  readonly #watch: ContractWatch;
  readonly #lives: ReadonlyMap<string, Life>;
  readonly #machines = new Map<string, SimulatedHost>();
  readonly #backings = new Map<string, Backing>();
  #conversionWatch: ConversionWatch | undefined;

  private constructor(
    env: RuntimeEnv,
    clock: VirtualClock,
    cluster: InProcessCluster,
    watch: ContractWatch,
    lives: ReadonlyMap<string, Life>,
    driverCalls: readonly DriverCall[],
    plugins: readonly PluginName[],
    replicas: number,
    isInline: boolean,
  ) {
    this.#env = env;
    this.clock = clock;
    this.cluster = cluster;
    this.#watch = watch;
    this.#lives = lives;
    this.driverCalls = driverCalls;
    this.#plugins = plugins;
    this.#replicas = replicas;
    this.#isInline = isInline;
  }

  /** Plays a script from the moment in which a writer of each plugin has written, and ends the world. */
  static async play(
    options: ConversionWorldOptions,
    script: (world: ConversionWorld) => Promise<void>,
  ): Promise<void> {
    const clock = new VirtualClock();
    await clock.run(
      (async () => {
        const world = await ConversionWorld.#create(clock, options);
        try {
          await script(world);
        } finally {
          await world.cluster.stop();
        }
      })(),
      { limitMs: 24 * withinMs },
    );
  }

  static async #create(clock: VirtualClock, options: ConversionWorldOptions): Promise<ConversionWorld> {
    const { plugins, replicas = 1, nodes = replicas, inline: isInline = false } = options;
    const { seed = 1, gate, onDisk, onViolation, snapshotDefinitions = [] } = options;
    const random: Random = new SeededRandom(seed);
    const env: RuntimeEnv = { clock, random, logger: silentLogger, meter: noMeter };
    const config = clusterConfig(nodes, "unprivileged", { plugins });
    const watch = new ContractWatch(onDisk, onViolation);
    const lives = new Map<string, Life>();
    const driverCalls: DriverCall[] = [];
    let world: ConversionWorld | undefined;
    const watched: CallGate = async (call, proceed) => {
      try {
        return await (gate === undefined ? proceed() : gate(call, proceed));
      } finally {
        world?.check();
      }
    };
    const cloud = new FaultyCloud({
      clock,
      draws: new FaultDraws(random),
      rates: () => undefined,
      onFault: () => {},
      onEffect: (call) => watch.asked(call, world && worldOf(world.cluster)),
      onAttached: (call) => world && watch.attachAnswered(call, worldOf(world.cluster)),
    });
    const cluster = await createInProcessCluster(env, {
      config,
      programs: (host) => recordPrograms(clock, host),
      snapshotDefinitions,
      // As a machine does: a registrar that the kubelet refuses ends.
      restartsEnded: true,
      onDriverCall: (_place, { rpc, volumeId }) => driverCalls.push({ rpc, volumeId }),
      isolate: (name, seams) => {
        const life = new Life(name, watched);
        lives.set(name, life);
        return life.seams({
          ...seams,
          cloudFor: (caller) => cloud.around(seams.cloudFor(caller), attachmentCalls(config, caller)),
        });
      },
    });
    world = new ConversionWorld(env, clock, cluster, watch, lives, driverCalls, plugins, replicas, isInline);
    await world.#begin();
    return world;
  }

  /** What broke the contract, one sentence each. */
  get violations(): readonly string[] {
    return [...this.#watch.violations, ...this.cluster.disks.violations];
  }

  async #begin(): Promise<void> {
    const { kube } = this.cluster;
    const command = [writerProgram, "$(LONGSHORE_MOUNT_DATA)", "$(POD_NAME)", "700"];
    for (const plugin of this.#plugins) {
      const { isShared } = clusterPlugin(plugin);
      const set = writerSet({ replicas: this.#replicas, command, plugin });
      const claimName = set.spec?.template.spec?.volumes?.[0]?.persistentVolumeClaim?.claimName;
      if (isShared && claimName !== undefined) {
        const spec = {
          accessModes: ["ReadWriteMany"],
          storageClassName: classNameOf(clusterPlugin(plugin)),
          resources: { requests: { storage: "32Mi" } },
        };
        const claim = { metadata: { namespace, name: claimName }, spec };
        await kube.create(resources.persistentVolumeClaims, claim, { signal: never() });
      }
      await kube.create(resources.statefulSets, this.#isInline ? await this.#inlineSet(set) : set, {
        signal: never(),
      });
    }
    await this.writersRun();
    for (const { backing, backingPath } of this.cluster.disks.loops())
      this.#backings.set(backingPath, backing);
    this.#conversionWatch = new ConversionWatch(this.#view(), (rule, what) => this.#watch.report(rule, what));
  }

  /** The set with a disk of its template's own in place of the claims. */
  async #inlineSet({ spec, ...set }: StatefulSet): Promise<StatefulSet> {
    const cloud = this.cluster.cloud.forCaller({
      provider: "aws-ebs",
      path: "csi",
      component: "administrator",
    });
    const { signal } = new AbortController();
    const [zone = ""] = await cloud.listZones(signal);
    const request = { name: "inline", zone, sizeBytes: 32n * 1024n * 1024n, type: "gp2", tags: {} };
    const { id } = await cloud.createDisk(request, signal);
    const volumes = [{ name: "data", awsElasticBlockStore: { volumeID: id, fsType: "ext4" } }];
    const { volumeClaimTemplates: _, template, ...rest } = spec ?? {};
    const inner = { ...template, spec: { ...template?.spec, volumes } };
    return { ...set, spec: { ...rest, template: inner } } as StatefulSet;
  }

  #view() {
    return {
      volumes: this.cluster.objects(resources.persistentVolumes),
      claims: this.cluster.objects(resources.persistentVolumeClaims),
      disks: new Set(this.cluster.cloud.disks().map(({ id }) => id)),
    };
  }

  /** Holds the state as it is now against the contract. */
  check(): void {
    this.#watch.check(worldOf(this.cluster));
    this.#conversionWatch?.check(this.#view());
  }

  /** Crashes a component of the cluster. */
  crash(component: string): void {
    this.cluster.drop(component);
    for (const endpoint of this.#lives.get(component)?.cut() ?? []) this.cluster.csi.crash(endpoint);
  }

  /** A machine by its name; each has journals of its own. */
  machine(name: string): SimulatedHost {
    const host = this.#machines.get(name) ?? new SimulatedHost({ name });
    this.#machines.set(name, host);
    return host;
  }

  /** Who converts, from this machine; the contract is checked after each request. */
  operator(machine: string): Operator {
    const { kube } = this.cluster;
    const check = () => this.check();
    const watched = new Proxy(kube, {
      get(target, key) {
        const member = target[key as keyof KubeClient] as unknown;
        if (typeof member !== "function" || key === "watch") return member;
        return async (...args: unknown[]) => {
          try {
            return await Reflect.apply(member, target, args);
          } finally {
            check();
          }
        };
      },
    });
    return { host: this.machine(machine), kube: watched };
  }

  /** The plan of a conversion that an operator would see. */
  async plan(operator: Operator, options: ConversionPlanOptions): Promise<ConversionPlan> {
    return planConversion({ ...this.#env, ...operator }, options, never());
  }

  /** Goes on with what is unfinished, and converts what else is there. */
  async convert(operator: Operator, options: CarryOptions = {}): Promise<ConversionResult> {
    const env = { ...this.#env, ...operator };
    if (this.#isInline) return convertInline(env, runOptions(options), options, never());
    const resumed = await this.#resumeReplacements(operator, "convert", options);
    if (resumed.failed.length > 0) return resumed;
    const { plan, ...result } = await convertVolumes(env, { ...options, ...runOptions(options) }, never());
    if (result.failed.length > 0) return result;
    const known = await this.replacements(operator);
    const { replacements = [], clusterId } = plan;
    const objects = startedReplacements(replacements, known, clusterId, "convert");
    return joinedResults([
      resumed,
      result,
      await carryReplacements(env, objects, runOptions(options), never()),
    ]);
  }

  /** Goes on with unfinished ways back, and carries back what has been converted, wholly or in part. */
  async undo(operator: Operator, options: CarryOptions = {}): Promise<ConversionResult & Partial<UndoPlan>> {
    const env = { ...this.#env, ...operator };
    if (this.#isInline) return undoInline(env, runOptions(options), options, never());
    const resumed = await this.#resumeReplacements(operator, "undo", options);
    if (resumed.failed.length > 0) return resumed;
    const result = await undoVolumes(env, { ...options, ...runOptions(options) }, never());
    if (result.failed.length > 0) return result;
    const clusterId = await readClusterId(operator.kube, never());
    const known = await this.replacements(operator);
    const done = [...known.values()].filter(({ direction }) => direction === "convert");
    const back = await planUndoReplacements(operator.kube, done, never());
    const objects = startedReplacements(back.replacements, known, clusterId, "undo");
    const carried = await carryReplacements(env, objects, runOptions(options), never());
    return {
      ...joinedResults([resumed, result, carried]),
      refused: [...(result.refused ?? []), ...back.refused],
    };
  }

  /** The journals of workloads whose templates name disks themselves, by their keys. */
  templates(operator: Operator): Promise<ReadonlyMap<string, InlineJournal>> {
    return inlineJournals({ ...this.#env, ...operator }, { journalDir }, never());
  }

  /** Classes and StatefulSets that an earlier run has left half-done come first: one of them may be away. */
  async #resumeReplacements(
    operator: Operator,
    direction: ConversionDirection,
    options: CarryOptions,
  ): Promise<ConversionResult> {
    const known = await this.replacements(operator);
    const open = await openReplacements(operator.kube, known, direction, never());
    return carryReplacements({ ...this.#env, ...operator }, open, runOptions(options), never());
  }

  /** The journals of classes and StatefulSets. */
  async replacements(operator: Operator): Promise<ReadonlyMap<string, ReplacementJournal>> {
    const clusterId = await readClusterId(operator.kube, never());
    return readReplacementJournals({ ...operator, dir: journalDir }, clusterId, never());
  }

  journals(operator: Operator): Promise<ReadonlyMap<string, VolumeJournal>> {
    return journalsOf(operator, { journalDir }, never());
  }

  /** Sums over every file of every disk and share, by their paths. */
  fingerprints(): ReadonlyMap<string, string> {
    const sums = new Map<string, string>();
    const roots = [...this.#backings].map(([path, { disk }]) => ({
      path,
      raw: disk.raw,
      root: disk.fileSystem?.root,
    }));
    for (const { path, raw, root } of [
      ...roots,
      { path: "shares", raw: "", root: this.cluster.disks.shares.root },
    ]) {
      const sum = createHash("sha256").update(raw);
      for (const [file, data] of root === undefined ? [] : filesBelow(root, ""))
        sum.update(`${file}\0${data}\0`);
      sums.set(path, sum.digest("hex"));
    }
    return sums;
  }

  /** Writers that lost an acknowledged record, or wrote one again, by the disks themselves. */
  async lostWrites(): Promise<readonly string[]> {
    const texts = [...this.#backings.values()].flatMap(({ disk }) =>
      disk.fileSystem === undefined ? [] : filesBelow(disk.fileSystem.root, ""),
    );
    const shares = filesBelow(this.cluster.disks.shares.root, "");
    const all = [...texts, ...shares].filter(([path]) => path.endsWith("/records"));
    const lost: string[] = [];
    for (const writer of this.#writers()) {
      const logs = await this.cluster.podLogs(writer);
      const acknowledged = acknowledgedRecords(logs);
      const best = Math.min(...all.map(([, text]) => lostRecords(writer, text, acknowledged).length));
      const again = rewrittenRecords(logs).length;
      if (best > 0 || again > 0) lost.push(`${writer} lost ${best} records and wrote ${again} again`);
    }
    return lost;
  }

  /** Writers' pods have written something new. */
  async writersRun(): Promise<void> {
    const counts = async () =>
      Promise.all(
        this.#writers().map(async (name) => acknowledgedRecords(await this.cluster.podLogs(name)).size),
      );
    const before = await counts();
    await this.until("every writer writes", async () =>
      (await counts()).every((count, at) => count > (before[at] ?? 0)),
    );
  }

  /** Scales the writers. To none: until nothing is attached. */
  async scaleWriters(replicas: 0 | 1): Promise<void> {
    const { kube } = this.cluster;
    for (const set of this.#sets()) {
      const body = { spec: { replicas } };
      await kube.patch(
        resources.statefulSets,
        { namespace, name: set },
        { type: "merge", body },
        { signal: never() },
      );
    }
    if (replicas === 1) return this.writersRun();
    await this.until("nothing is attached", () => {
      const attached = worldOf(this.cluster).attachments.length;
      const held = this.cluster
        .objects(resources.nodes)
        .flatMap(({ status }) => [...(status?.volumesAttached ?? []), ...(status?.volumesInUse ?? [])]);
      const attachments = this.cluster.objects(resources.volumeAttachments).length;
      return attached + held.length + attachments + this.cluster.objects(resources.pods).length === 0;
    });
  }

  /** Waits until it holds, for an hour at most. */
  async until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    const untilMs = this.clock.monotonicMs() + withinMs;
    while (!(await holds())) {
      if (this.clock.monotonicMs() > untilMs) throw new Error(`not within an hour: ${what}`);
      await this.clock.sleep(100, never());
    }
  }

  #sets(): readonly string[] {
    return this.#plugins.map((plugin) => (plugin === "aws-ebs" ? "writer" : `writer-${plugin}`));
  }

  #writers(): readonly string[] {
    const ordinals = Array.from({ length: this.#replicas }, (_, ordinal) => ordinal);
    return this.#sets().flatMap((set) => ordinals.map((ordinal) => `${set}-${ordinal}`));
  }

  /** What is not as it is to be after a conversion, or after the way back. */
  leftovers(form: "csi" | "in-tree", names: ReadonlySet<string>): readonly string[] {
    const wrong: string[] = [];
    const volumes = this.cluster.objects(resources.persistentVolumes);
    const claims = this.cluster.objects(resources.persistentVolumeClaims);
    const isGone = this.#isInline && form === "in-tree";
    const count = isGone ? 0 : this.#plugins.length * this.#replicas;
    if (volumes.length !== count) wrong.push(`${volumes.length} volumes are there`);
    if (claims.length !== count) wrong.push(`${claims.length} claims are there`);
    for (const { metadata, spec, status } of volumes) {
      const { name } = metadata;
      if ((spec?.csi !== undefined) !== (form === "csi")) wrong.push(`${name} is not ${form}`);
      if (form === "in-tree" && !names.has(name)) wrong.push(`${name} has another name than before`);
      if (status?.phase !== "Bound") wrong.push(`${name} is ${status?.phase}`);
      if (spec?.persistentVolumeReclaimPolicy !== (this.#isInline ? "Retain" : "Delete"))
        wrong.push(`${name} keeps policy ${spec?.persistentVolumeReclaimPolicy}`);
      const claim = claims.find(({ metadata: { uid } }) => uid === spec?.claimRef?.uid);
      if (claim?.spec?.volumeName !== name || claim.status?.phase !== "Bound")
        wrong.push(`${name} and its claim are not bound`);
    }
    for (const { spec } of this.#isInline ? this.cluster.objects(resources.statefulSets) : []) {
      const hasDisk = spec?.template.spec?.volumes?.some((volume) => volume.awsElasticBlockStore != null);
      if (hasDisk !== (form === "in-tree")) wrong.push(`the template is not of the form ${form}`);
    }
    for (const { metadata, spec } of this.cluster.objects(resources.statefulSets))
      if (spec?.replicas !== this.#replicas)
        wrong.push(`StatefulSet ${metadata.name} has ${spec?.replicas} replicas`);
    return wrong;
  }
}

function runOptions({ parallel = 1, onEvent }: CarryOptions) {
  return { journalDir, backupDir, parallel, ...(onEvent === undefined ? {} : { onEvent }) };
}

type Directory = InProcessCluster["disks"]["shares"]["root"];

function filesBelow(directory: Directory, path: string): [string, string][] {
  return [...directory.entries]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, node]): [string, string][] => {
      if (node.kind === "directory") return filesBelow(node, `${path}/${name}`);
      return node.kind === "file" ? [[`${path}/${name}`, node.data]] : [];
    });
}
