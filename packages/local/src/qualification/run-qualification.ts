/**
 * The feature-parity gate of the migration: does what in-tree volumes do, through the driver, with migration on.
 *
 *     in-tree volume ──► crossing ──► the same again, served by the driver ──► parity and proof
 *
 * Every behaviour counts only if the driver's own call log shows that it was served by the driver; and from the
 * end of the crossing no in-tree code may have called the provider. Runs on any cluster that is handed to it.
 *
 * Source: in-tree to CSI migration design, testing and feature parity.
 */
import { type PersistentVolume, type Pod, resources, type Stored, type Volume } from "@longshore/kube";
import { crossingSubject, runCrossing } from "@longshore/migration";
import { errorChain, foreignText, type RuntimeEnv, withDeadline } from "@longshore/runtime";
import { snapshotResources } from "@longshore/storage";
import { translateInTreeInlineVolumeToCSI, translateInTreePVToCSI } from "@longshore/translation";
import type { ObservedCluster } from "../cluster/observed-cluster.ts";
import type { DriverCall } from "../layout/driver-calls.ts";
import {
  type ClusterPlugin,
  clusterPlugin,
  inlineVolume,
  inTreeHandle,
  inTreeSource,
  pluginsNamed,
} from "../layout/plugins.ts";
import { acknowledgedRecords, lostRecords } from "../records/records.ts";
import { claimVolume, namespace, type PodWork, volumeName, volumePod } from "../records/volume-pod.ts";
import { isPodReady } from "../workloads/is-pod-ready.ts";
import { claimOf } from "./claim-of.ts";
import { absentInTree, evidenceFor } from "./evidence.ts";
import { parityOfVolumes } from "./parity.ts";
import type { Behaviour, BehaviourResult, QualificationReport } from "./qualification-report.ts";

/** The cluster that a driver is qualified on. Migration is off in it. */
export interface QualificationCluster extends ObservedCluster {
  /** Every call that the driver has answered. */
  driverCalls(): Promise<readonly DriverCall[]>;
  /** Restarts the node's agent and what the driver has there; what is mounted stays. Need not wait until they are up. */
  restartNode(nodeName: string): Promise<void>;
}

/** Options of {@link runQualification}. */
export interface QualificationOptions {
  /** e.g. `aws-ebs`. */
  readonly plugin: string;
  /** Program and arguments of a writer of records, and of a reader that prints them. */
  readonly writerCommand: readonly string[];
  readonly readerCommand: readonly string[];
  /** Longest that one behaviour may take, in milliseconds; default two minutes. */
  readonly behaviourTimeoutMs?: number;
  readonly onResult?: (result: BehaviourResult) => void;
  readonly onStatus?: (text: string) => void;
}

const pollMs = 50;
const size = "1Gi";
const grownSize = "2Gi";

/** Why some behaviours cannot be verified on the local cluster. */
const notYetVerifiable: Partial<Record<Behaviour, string>> = {
  block: "a qualification makes no volume of mode Block yet",
};

/** Runs every behaviour through the driver. Rejects only when the cluster itself fails, or `signal` aborts. */
export async function runQualification(
  env: RuntimeEnv,
  cluster: QualificationCluster,
  options: QualificationOptions,
  signal: AbortSignal,
): Promise<QualificationReport> {
  const startMs = env.clock.monotonicMs();
  const subject = crossingSubject(options.plugin);
  const [name = "aws-ebs"] = pluginsNamed([options.plugin]);
  const plugin = clusterPlugin(name);
  const gate = new Gate(env, cluster, options, plugin, signal);
  const inTree = await gate.within("an in-tree volume to compare with", (s) => gate.inTreeVolume(s));
  options.onStatus?.("carrying the cluster over to the driver");
  const journalFile = cluster.journalFile(name);
  await runCrossing(
    { ...env, kube: cluster.kube, platform: cluster.platform, host: cluster.host },
    { subject, direction: "migrate", journalFile },
    signal,
  );
  const sinceSeq = (await cluster.cloudCalls(signal)).at(-1)?.seq ?? 0;
  await gate.run();
  const calls = await cluster.cloudCalls(signal);
  const { migrated } = gate;
  const parity = migrated === undefined ? undefined : parityOfVolumes(plugin, inTree, migrated);
  return {
    plugin: subject.shortName,
    driverName: subject.driverName,
    behaviours: gate.results,
    differences: parity?.differences,
    losses: parity?.losses ?? [],
    inTreeCalls: calls.filter((call) => call.seq > sinceSeq && call.path === "in-tree").length,
    refusedCalls: (await cluster.driverCalls())
      .filter(({ code }) => code !== "OK" && code !== "UNIMPLEMENTED")
      .map(({ place, rpc, code }) => ({ place, rpc, code })),
    elapsedMs: Math.round(env.clock.monotonicMs() - startMs),
  };
}

/** A behaviour that does not show what it should. */
class BehaviourError extends Error {
  override readonly name = "BehaviourError";
}

class Gate {
  readonly results: BehaviourResult[] = [];
  /** The first volume that was provisioned through migration. */
  migrated: Stored<PersistentVolume> | undefined;
  readonly #env: RuntimeEnv;
  readonly #cluster: QualificationCluster;
  readonly #options: QualificationOptions;
  readonly #signal: AbortSignal;
  readonly #plugin: ClusterPlugin;

  constructor(
    env: RuntimeEnv,
    cluster: QualificationCluster,
    options: QualificationOptions,
    plugin: ClusterPlugin,
    signal: AbortSignal,
  ) {
    this.#plugin = plugin;
    this.#env = env;
    this.#cluster = cluster;
    this.#options = options;
    this.#signal = signal;
  }

  /** Provisions with the in-tree code, and takes it away again. */
  async inTreeVolume(signal: AbortSignal): Promise<Stored<PersistentVolume>> {
    const pv = await this.#provision("in-tree", this.#firstZone, signal);
    await this.#removePod("in-tree", signal);
    await this.#removeClaim("in-tree", pv.metadata.name, signal);
    return pv;
  }

  /** Every behaviour, one after the other on one volume; what one needs of an earlier one that failed fails too. */
  async run(): Promise<void> {
    const name = "qualified";
    await this.#behaviour("provision", async (signal) => {
      this.migrated = await this.#provision(name, this.#firstZone, signal);
      const { spec, metadata } = this.migrated;
      if (inTreeSource(this.#plugin, spec) === undefined || spec?.csi !== undefined) {
        throw new BehaviourError(`PersistentVolume ${metadata.name} is not an in-tree one`);
      }
      return [`PersistentVolume ${metadata.name}, ${inTreeHandle(spec)}`, idOf(this.migrated)];
    });
    await this.#behaviour("topology", async (signal) => {
      const zone = this.#cluster.config.nodes.at(-1)?.zone ?? "";
      const pv = await this.#provision("placed", zone, signal);
      const zones = zonesOf(pv);
      if (!zones.includes(zone)) {
        throw new BehaviourError(
          `its pod must run in ${zone}, but PersistentVolume ${pv.metadata.name} is bound to ${zones.join(", ") || "no zone"}`,
        );
      }
      await this.#removePod("placed", signal);
      await this.#removeClaim("placed", pv.metadata.name, signal);
      return [`a volume for a pod in ${zone} is made there`, idOf(pv)];
    });
    await this.#behaviour("attach", async (signal) => {
      const pv = this.#volume();
      const attachments = await this.#cluster.kube.list(resources.volumeAttachments, { signal });
      const own = attachments.items.find(({ spec }) => spec.source.persistentVolumeName === pv.metadata.name);
      if (own?.status?.attached !== true || own.spec.attacher !== this.#plugin.driverName) {
        throw new BehaviourError(
          `PersistentVolume ${pv.metadata.name} has no VolumeAttachment of the driver`,
        );
      }
      return [`VolumeAttachment to ${own.spec.nodeName}`, idOf(pv)];
    });
    await this.#behaviour("mount", async (signal) => {
      const pv = this.#volume();
      const pod = await this.#cluster.kube.get(resources.pods, { namespace, name }, { signal });
      if (pod === undefined || !isPodReady(pod)) throw new BehaviourError(`pod ${name} is not ready`);
      return [`pod ${name} on ${pod.spec?.nodeName}`, idOf(pv)];
    });
    await this.#behaviour("reconstruction", async (signal) => {
      const pv = this.#volume();
      const pod = await this.#cluster.kube.get(resources.pods, { namespace, name }, { signal });
      const nodeName = pod?.spec?.nodeName ?? "";
      const before = (await this.#acknowledged(name)).size;
      const callsBefore = (await this.#cluster.driverCalls()).length;
      await this.#cluster.restartNode(nodeName);
      await this.#until(async () => (await this.#acknowledged(name)).size > before, signal);
      await this.#removePod(name, signal);
      return [`${nodeName} knew its volumes after a restart`, idOf(pv), callsBefore];
    });
    await this.#behaviour("write/read", async (signal) => {
      const pv = this.#volume();
      await this.#removePod(name, signal);
      const read = await this.#readBack(name, "reader", claimVolume(name), signal);
      return [`${read} acknowledged records were read back`, idOf(pv)];
    });
    await this.#behaviour("expand", async (signal) => {
      const pv = this.#volume();
      const ref = { namespace, name };
      const body = { spec: { resources: { requests: { storage: grownSize } } } };
      await this.#cluster.kube.patch(
        resources.persistentVolumeClaims,
        ref,
        { type: "merge", body },
        { signal },
      );
      await this.#until(async () => {
        const grown = await this.#cluster.kube.get(
          resources.persistentVolumes,
          { name: pv.metadata.name },
          { signal },
        );
        return grown?.spec?.capacity?.storage === grownSize;
      }, signal);
      // The file system grows when the volume is next used.
      await this.#readBack(name, "reader-of-grown", claimVolume(name), signal);
      await this.#until(async () => {
        const claim = await this.#cluster.kube.get(resources.persistentVolumeClaims, ref, { signal });
        return claim?.status?.capacity?.storage === grownSize;
      }, signal);
      return [`from ${size} to ${grownSize}`, idOf(pv)];
    });
    await this.#behaviour("snapshot", (signal) => this.#snapshot(name, signal));
    await this.#behaviour("delete", async (signal) => {
      const pv = this.#volume();
      await this.#removePod(name, signal);
      await this.#removeClaim(name, pv.metadata.name, signal);
      return ["the claim's deletion removed volume and attachment", idOf(pv)];
    });
    await this.#behaviour("inline", (signal) => this.#inline(signal));
    for (const [behaviour, detail] of Object.entries(notYetVerifiable) as [Behaviour, string][]) {
      const absent = absentInTree(this.#plugin)[behaviour];
      const verdict = absent === undefined ? "not yet verifiable" : "not in-tree";
      this.#note({ behaviour, verdict, calls: [], detail: absent ?? detail, ms: 0 });
    }
  }

  /** Runs `work` with a deadline. */
  async within<T>(what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.#options.onStatus?.(what);
    const timeoutMs = this.#options.behaviourTimeoutMs ?? 120_000;
    return withDeadline(this.#env.clock, timeoutMs, this.#signal, work);
  }

  async #behaviour(
    behaviour: Behaviour,
    work: (signal: AbortSignal) => Promise<readonly [detail: string, volumeId: string, callsBefore?: number]>,
  ): Promise<void> {
    const absent = absentInTree(this.#plugin)[behaviour];
    if (absent !== undefined) {
      return this.#note({ behaviour, verdict: "not in-tree", calls: [], detail: absent, ms: 0 });
    }
    const startMs = this.#env.clock.monotonicMs();
    const elapsed = () => Math.round(this.#env.clock.monotonicMs() - startMs);
    try {
      const [detail, volumeId, callsBefore = 0] = await this.within(behaviour, work);
      const answered = (await this.#cluster.driverCalls()).slice(callsBefore);
      const { calls, missing } = evidenceFor(behaviour, volumeId, answered, this.#plugin);
      const isProven = missing.length === 0;
      this.#note({
        behaviour,
        verdict: isProven ? "driver" : "failed",
        calls,
        detail: isProven ? detail : `the driver's call log has no ${missing.join(", ")} for ${volumeId}`,
        ms: elapsed(),
      });
    } catch (error) {
      this.#signal.throwIfAborted();
      const why = await this.#lastWarning();
      const detail = why === undefined ? errorChain(error) : `${errorChain(error)}; last warning: ${why}`;
      this.#note({ behaviour, verdict: "failed", calls: [], detail, ms: elapsed() });
    }
  }

  #note(result: BehaviourResult): void {
    this.results.push(result);
    this.#options.onResult?.(result);
  }

  /** Where volumes are made that are to be compared. */
  get #firstZone(): string | undefined {
    return this.#cluster.config.nodes[0]?.zone;
  }

  #volume(): Stored<PersistentVolume> {
    if (this.migrated === undefined) throw new BehaviourError("no volume was provisioned to try it on");
    return this.migrated;
  }

  /** A claim and a writer on it; the volume once records are acknowledged. */
  async #provision(
    name: string,
    zone: string | undefined,
    signal: AbortSignal,
  ): Promise<Stored<PersistentVolume>> {
    const { kube } = this.#cluster;
    await kube.create(resources.persistentVolumeClaims, claimOf(this.#plugin, name, size), { signal });
    await this.#write(
      { name, command: this.#options.writerCommand, volume: claimVolume(name), zone },
      signal,
    );
    const claim = await kube.get(resources.persistentVolumeClaims, { namespace, name }, { signal });
    const pv = await kube.get(
      resources.persistentVolumes,
      { name: claim?.spec?.volumeName ?? "" },
      { signal },
    );
    if (pv === undefined) throw new BehaviourError(`claim ${name} has no PersistentVolume`);
    return pv;
  }

  /** Starts a writer and waits until it has acknowledged records. */
  async #write(work: PodWork, signal: AbortSignal): Promise<Stored<Pod>> {
    const { kube } = this.#cluster;
    await kube.create(resources.pods, volumePod(work), { signal });
    let ready: Stored<Pod> | undefined;
    await this.#until(async () => {
      ready = await kube.get(resources.pods, { namespace, name: work.name }, { signal });
      return ready !== undefined && isPodReady(ready);
    }, signal);
    await this.#until(async () => (await this.#acknowledged(work.name)).size >= 3, signal);
    return ready as Stored<Pod>;
  }

  /** What the writer of this name has acknowledged. */
  async #acknowledged(writer: string): Promise<ReturnType<typeof acknowledgedRecords>> {
    return acknowledgedRecords(await this.#cluster.podLogs(writer));
  }

  /** Reads through a new pod what the writer of this name acknowledged; returns the number of records. */
  async #readBack(
    writer: string,
    name: string,
    volume: PodWork["volume"],
    signal: AbortSignal,
  ): Promise<number> {
    const { kube } = this.#cluster;
    await kube.create(resources.pods, volumePod({ name, command: this.#options.readerCommand, volume }), {
      signal,
    });
    await this.#until(async () => {
      const pod = await kube.get(resources.pods, { namespace, name }, { signal });
      if (pod?.status?.phase === "Failed") throw new BehaviourError(`pod ${name} could not read the volume`);
      return pod?.status?.phase === "Succeeded";
    }, signal);
    const text = (await this.#cluster.podLogs(name)).join("");
    await this.#removePod(name, signal);
    const acknowledged = await this.#acknowledged(writer);
    const lost = lostRecords(writer, text, acknowledged);
    if (lost.length > 0) {
      throw new BehaviourError(
        `${lost.length} of ${acknowledged.size} acknowledged records are not on the volume`,
      );
    }
    return acknowledged.size;
  }

  /** A snapshot of the volume, and what a volume made from it holds. */
  async #snapshot(claimName: string, signal: AbortSignal): Promise<readonly [string, string]> {
    const { kube } = this.#cluster;
    const pv = this.#volume();
    const { volumeSnapshots } = snapshotResources;
    const ref = { namespace, name: claimName };
    const source = { persistentVolumeClaimName: claimName };
    await kube.create(volumeSnapshots, { metadata: ref, spec: { source } }, { signal });
    await this.#until(
      async () => (await kube.get(volumeSnapshots, ref, { signal }))?.status?.readyToUse === true,
      signal,
    );
    const restored = "restored";
    const claim = claimOf(this.#plugin, restored, grownSize, {
      apiGroup: "snapshot.storage.k8s.io",
      kind: "VolumeSnapshot",
      name: claimName,
    });
    await kube.create(resources.persistentVolumeClaims, claim, { signal });
    const read = await this.#readBack(claimName, "reader-of-restored", claimVolume(restored), signal);
    const made = await kube.get(resources.persistentVolumeClaims, { namespace, name: restored }, { signal });
    await kube.delete(volumeSnapshots, ref, { signal });
    await this.#until(async () => (await kube.get(volumeSnapshots, ref, { signal })) === undefined, signal);
    await this.#removeClaim(restored, made?.spec?.volumeName ?? "", signal);
    return [`a volume made from a snapshot holds ${read} acknowledged records`, idOf(pv)];
  }

  /** A pod that names the disk itself. The disk is one that was provisioned and kept. */
  async #inline(signal: AbortSignal): Promise<readonly [string, string]> {
    const { kube } = this.#cluster;
    const pv = await this.#provision("kept", undefined, signal);
    const { name: pvName } = pv.metadata;
    const ref = { name: pvName };
    const keep = { spec: { persistentVolumeReclaimPolicy: "Retain" } };
    await kube.patch(resources.persistentVolumes, ref, { type: "merge", body: keep }, { signal });
    await this.#removePod("kept", signal);
    await kube.delete(resources.persistentVolumeClaims, { namespace, name: "kept" }, { signal });
    await this.#until(
      async () =>
        (await kube.get(resources.persistentVolumes, ref, { signal }))?.status?.phase === "Released",
      signal,
    );
    await kube.delete(resources.persistentVolumes, ref, { signal });
    await this.#until(
      async () => (await kube.get(resources.persistentVolumes, ref, { signal })) === undefined,
      signal,
    );

    const [zone] = zonesOf(pv);
    const volume = inlineVolume(this.#plugin, pv.spec);
    if (volume === undefined) throw new BehaviourError(`PersistentVolume ${pvName} is not an in-tree one`);
    const pod = await this.#write(
      { name: "inline", command: this.#options.writerCommand, volume, zone },
      signal,
    );
    const attachments = await kube.list(resources.volumeAttachments, { signal });
    const own = attachments.items.find(({ spec }) => spec.source.inlineVolumeSpec !== undefined);
    if (own === undefined && this.#plugin.csiDriver.attachRequired !== false) {
      throw new BehaviourError("its VolumeAttachment carries no inlineVolumeSpec");
    }
    await this.#removePod("inline", signal);
    await this.#adoptAndDelete(pv, signal);
    return [`pod inline on ${pod.spec?.nodeName} names ${inTreeHandle(pv.spec)}`, inlineIdOf(volume)];
  }

  /** Makes a volume of the disk once more, released and to be deleted, so that nothing is left behind. */
  async #adoptAndDelete(pv: Stored<PersistentVolume>, signal: AbortSignal): Promise<void> {
    const { kube } = this.#cluster;
    const { name, annotations } = pv.metadata;
    const claimRef = { ...pv.spec?.claimRef };
    delete claimRef.resourceVersion;
    const adopted: PersistentVolume = {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name, ...(annotations === undefined ? {} : { annotations }) },
      spec: { ...pv.spec, claimRef, persistentVolumeReclaimPolicy: "Delete" },
    };
    await kube.create(resources.persistentVolumes, adopted, { signal });
    await this.#until(
      async () => (await kube.get(resources.persistentVolumes, { name }, { signal })) === undefined,
      signal,
    );
  }

  /** Fine when it is gone. */
  async #removePod(name: string, signal: AbortSignal): Promise<void> {
    const { kube } = this.#cluster;
    if ((await kube.get(resources.pods, { namespace, name }, { signal })) === undefined) return;
    await kube.delete(resources.pods, { namespace, name }, { signal });
    await this.#until(
      async () => (await kube.get(resources.pods, { namespace, name }, { signal })) === undefined,
      signal,
    );
  }

  async #removeClaim(name: string, pvName: string, signal: AbortSignal): Promise<void> {
    const { kube } = this.#cluster;
    await kube.delete(resources.persistentVolumeClaims, { namespace, name }, { signal });
    await this.#until(
      async () => (await kube.get(resources.persistentVolumes, { name: pvName }, { signal })) === undefined,
      signal,
    );
  }

  async #until(holds: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
    while (!(await holds())) await this.#env.clock.sleep(pollMs, signal);
  }

  /** What the cluster last complained of: a failure's cause is rarely where it shows. */
  async #lastWarning(): Promise<string | undefined> {
    const events = await this.#cluster.kube
      .list(resources.events, { namespace, signal: this.#signal })
      .catch(() => undefined);
    const warnings = events?.items.filter(({ type }) => type === "Warning") ?? [];
    const last = warnings.sort((a, b) => timeOf(a).localeCompare(timeOf(b))).at(-1);
    return last === undefined
      ? undefined
      : foreignText(`${last.involvedObject.kind} ${last.involvedObject.name}: ${last.message}`);
  }
}

function timeOf(event: { readonly lastTimestamp?: string; readonly eventTime?: string }): string {
  return event.lastTimestamp ?? event.eventTime ?? "";
}

/** The id that the driver knows the volume by. */
function idOf(pv: PersistentVolume): string {
  return (translateInTreePVToCSI(pv) as PersistentVolume).spec?.csi?.volumeHandle ?? "";
}

/** The id by which the driver knows a volume that a pod names itself. */
function inlineIdOf(volume: Omit<Volume, "name">): string {
  const { spec } = translateInTreeInlineVolumeToCSI({ name: volumeName, ...volume }, namespace);
  return spec?.csi?.volumeHandle ?? "";
}

/** The zones in which a pod can use the volume; none: all. */
function zonesOf({ spec }: PersistentVolume): readonly string[] {
  const [term] = spec?.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const ofZones = term?.matchExpressions?.filter(({ key }) => key.endsWith("/zone")) ?? [];
  return ofZones.flatMap(({ values }) => values ?? []);
}
