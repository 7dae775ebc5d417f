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
import { type PersistentVolume, resources, type Stored, type Volume } from "@longshore/kube";
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
import { claimVolume, namespace, volumeName } from "../records/volume-pod.ts";
import { isPodReady } from "../workloads/is-pod-ready.ts";
import { claimOf } from "./claim-of.ts";
import { absentInTree, evidenceFor } from "./evidence.ts";
import { parityOfVolumes } from "./parity.ts";
import type { Behaviour, BehaviourResult, QualificationReport, Skippable } from "./qualification-report.ts";
import { comparedFeatures, type FeatureOutcomes, tryFeatures } from "./try-features.ts";
import {
  BehaviourError,
  claimSize,
  type RecordCommands,
  type VolumeMode,
  VolumeWork,
} from "./volume-work.ts";

/** The cluster that a driver is qualified on. Migration is off in it. */
export interface QualificationCluster extends ObservedCluster {
  /** Every call that the driver has answered. */
  driverCalls(): Promise<readonly DriverCall[]>;
  /** Restarts the node's agent and what the driver has there; what is mounted stays. Need not wait until they are up. */
  restartNode(nodeName: string): Promise<void>;
}

/** Options of {@link runQualification}. */
export interface QualificationOptions extends RecordCommands {
  /** e.g. `aws-ebs`. */
  readonly plugin: string;
  /** Longest that one behaviour may take, in milliseconds; default two minutes. */
  readonly behaviourTimeoutMs?: number;
  /** What is not to be tried; the verdict says so. */
  readonly skip?: readonly Skippable[];
  readonly onResult?: (result: BehaviourResult) => void;
  readonly onStatus?: (text: string) => void;
}

const grownSize = "2Gi";

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
  const inTree = await gate.within("an in-tree volume to compare with", (s) =>
    gate.inTreeVolume("Filesystem", s),
  );
  const { skip = [] } = options;
  const inTreeDevice =
    plugin.hasDevices && !skip.includes("block")
      ? await gate.within("an in-tree device to compare with", (s) => gate.inTreeVolume("Block", s))
      : undefined;
  const featuresInTree = await gate.features("in-tree");
  options.onStatus?.("carrying the cluster over to the driver");
  const journalFile = cluster.journalFile(name);
  await runCrossing(
    { ...env, kube: cluster.kube, platform: cluster.platform, host: cluster.host },
    { subject, direction: "migrate", journalFile },
    signal,
  );
  const sinceSeq = (await cluster.cloudCalls(signal)).at(-1)?.seq ?? 0;
  await gate.run();
  const featuresMigrated = await gate.features("migrated");
  const calls = await cluster.cloudCalls(signal);
  const { migrated, migratedDevice } = gate;
  const parity = migrated === undefined ? undefined : parityOfVolumes(plugin, inTree, migrated);
  const ofDevice =
    inTreeDevice === undefined || migratedDevice === undefined
      ? { differences: [], losses: [] }
      : parityOfVolumes(plugin, inTreeDevice, migratedDevice);
  return {
    plugin: subject.shortName,
    driverName: subject.driverName,
    behaviours: gate.results,
    skipped: [...new Set(skip)],
    features: comparedFeatures(featuresInTree, featuresMigrated),
    differences: parity && union(parity.differences, ofDevice.differences),
    losses: union(parity?.losses ?? [], ofDevice.losses),
    inTreeCalls: calls.filter((call) => call.seq > sinceSeq && call.path === "in-tree").length,
    refusedCalls: (await cluster.driverCalls())
      .filter(({ code }) => code !== "OK" && code !== "UNIMPLEMENTED")
      .map(({ place, rpc, code }) => ({ place, rpc, code })),
    elapsedMs: Math.round(env.clock.monotonicMs() - startMs),
  };
}

/** What the two volumes have in common in texts once, then what only the device has. */
function union(ofFiles: readonly string[], ofDevice: readonly string[]): readonly string[] {
  const only = ofDevice.filter((text) => !ofFiles.includes(text)).map((text) => `volumeMode Block: ${text}`);
  return [...ofFiles, ...only];
}

/** A behaviour cannot be tried: an earlier one has failed. */
class NothingToTryError extends Error {
  override readonly name = "NothingToTryError";
}

class Gate {
  readonly results: BehaviourResult[] = [];
  /** The first volume that was provisioned through migration. */
  migrated: Stored<PersistentVolume> | undefined;
  /** The volume of mode Block that was. */
  migratedDevice: Stored<PersistentVolume> | undefined;
  readonly #env: RuntimeEnv;
  readonly #cluster: QualificationCluster;
  readonly #options: QualificationOptions;
  readonly #signal: AbortSignal;
  readonly #plugin: ClusterPlugin;
  readonly #work: VolumeWork;

  constructor(
    env: RuntimeEnv,
    cluster: QualificationCluster,
    options: QualificationOptions,
    plugin: ClusterPlugin,
    signal: AbortSignal,
  ) {
    this.#plugin = plugin;
    this.#work = new VolumeWork({ clock: env.clock, cluster, plugin, commands: options });
    this.#env = env;
    this.#cluster = cluster;
    this.#options = options;
    this.#signal = signal;
  }

  /** Provisions with the in-tree code, and takes it away again. */
  async inTreeVolume(volumeMode: VolumeMode, signal: AbortSignal): Promise<Stored<PersistentVolume>> {
    const name = volumeMode === "Block" ? "in-tree-device" : "in-tree";
    const pv = await this.#work.provision({ name, zone: this.#firstZone, volumeMode }, signal);
    await this.#work.removePod(name, signal);
    await this.#work.removeClaim(name, pv.metadata.name, signal);
    return pv;
  }

  /** Every behaviour, one after the other on one volume; what one needs of an earlier one that failed fails too. */
  async run(): Promise<void> {
    const name = "qualified";
    await this.#behaviour("provision", async (signal) => {
      this.migrated = await this.#work.provision({ name, zone: this.#firstZone }, signal);
      const { spec, metadata } = this.migrated;
      if (inTreeSource(this.#plugin, spec) === undefined || spec?.csi !== undefined) {
        throw new BehaviourError(`PersistentVolume ${metadata.name} is not an in-tree one`);
      }
      return [`PersistentVolume ${metadata.name}, ${inTreeHandle(spec)}`, idOf(this.migrated)];
    });
    await this.#behaviour("topology", async (signal) => {
      const zone = this.#cluster.config.nodes.at(-1)?.zone ?? "";
      const pv = await this.#work.provision({ name: "placed", zone }, signal);
      const zones = zonesOf(pv);
      if (!zones.includes(zone)) {
        throw new BehaviourError(
          `its pod must run in ${zone}, but PersistentVolume ${pv.metadata.name} is bound to ${zones.join(", ") || "no zone"}`,
        );
      }
      await this.#work.removePod("placed", signal);
      await this.#work.removeClaim("placed", pv.metadata.name, signal);
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
      const before = (await this.#work.acknowledged(name)).size;
      const callsBefore = (await this.#cluster.driverCalls()).length;
      await this.#cluster.restartNode(nodeName);
      await this.#work.until(async () => (await this.#work.acknowledged(name)).size > before, signal);
      await this.#work.removePod(name, signal);
      return [`${nodeName} knew its volumes after a restart`, idOf(pv), callsBefore];
    });
    await this.#behaviour("write/read", async (signal) => {
      const pv = this.#volume();
      await this.#work.removePod(name, signal);
      const read = await this.#work.readBack(name, { name: "reader", volume: claimVolume(name) }, signal);
      return [`${read} acknowledged records were read back`, idOf(pv)];
    });
    await this.#behaviour("expand", async (signal) => {
      const pv = this.#volume();
      await this.#work.removePod(name, signal);
      const ref = { namespace, name };
      const body = { spec: { resources: { requests: { storage: grownSize } } } };
      await this.#cluster.kube.patch(
        resources.persistentVolumeClaims,
        ref,
        { type: "merge", body },
        { signal },
      );
      await this.#work.until(async () => {
        const grown = await this.#cluster.kube.get(
          resources.persistentVolumes,
          { name: pv.metadata.name },
          { signal },
        );
        return grown?.spec?.capacity?.storage === grownSize;
      }, signal);
      // The file system grows when the volume is next used.
      await this.#work.readBack(name, { name: "reader-of-grown", volume: claimVolume(name) }, signal);
      await this.#work.until(async () => {
        const claim = await this.#cluster.kube.get(resources.persistentVolumeClaims, ref, { signal });
        return claim?.status?.capacity?.storage === grownSize;
      }, signal);
      return [`from ${claimSize} to ${grownSize}`, idOf(pv)];
    });
    await this.#behaviour("snapshot", (signal) => this.#snapshot(name, signal));
    await this.#behaviour("delete", async (signal) => {
      const pv = this.#volume();
      await this.#work.removePod(name, signal);
      await this.#work.removeClaim(name, pv.metadata.name, signal);
      return ["the claim's deletion removed volume and attachment", idOf(pv)];
    });
    await this.#behaviour("inline", (signal) => this.#inline(signal));
    await this.#behaviour("block", (signal) => this.#block(signal));
  }

  /** What comes of the features that some volumes refuse. */
  async features(phase: "in-tree" | "migrated"): Promise<FeatureOutcomes> {
    const env = {
      clock: this.#env.clock,
      kube: this.#cluster.kube,
      plugin: this.#plugin,
      work: this.#work,
      commands: this.#options,
    };
    return this.within(`what volumes refuse, ${phase}`, (signal) =>
      tryFeatures(env, phase, signal, this.#options.skip),
    );
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
    if (this.#options.skip?.some((name) => name === behaviour)) {
      return this.#note({ behaviour, verdict: "skipped", calls: [], detail: "not to be tried", ms: 0 });
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
      if (error instanceof NothingToTryError) {
        const { message: detail } = error;
        return this.#note({ behaviour, verdict: "not verified", calls: [], detail, ms: elapsed() });
      }
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
    if (this.migrated === undefined) throw new NothingToTryError("no volume was provisioned to try it on");
    return this.migrated;
  }

  /** A snapshot of the volume, and what a volume made from it holds. */
  async #snapshot(claimName: string, signal: AbortSignal): Promise<readonly [string, string]> {
    const { kube } = this.#cluster;
    const pv = this.#volume();
    const { volumeSnapshots } = snapshotResources;
    const ref = { namespace, name: claimName };
    const source = { persistentVolumeClaimName: claimName };
    await kube.create(volumeSnapshots, { metadata: ref, spec: { source } }, { signal });
    await this.#work.until(
      async () => (await kube.get(volumeSnapshots, ref, { signal }))?.status?.readyToUse === true,
      signal,
    );
    const restored = "restored";
    const claim = claimOf(this.#plugin, restored, grownSize, {
      dataSource: { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: claimName },
    });
    await kube.create(resources.persistentVolumeClaims, claim, { signal });
    const read = await this.#work.readBack(
      claimName,
      { name: "reader-of-restored", volume: claimVolume(restored) },
      signal,
    );
    const made = await kube.get(resources.persistentVolumeClaims, { namespace, name: restored }, { signal });
    await kube.delete(volumeSnapshots, ref, { signal });
    await this.#work.until(
      async () => (await kube.get(volumeSnapshots, ref, { signal })) === undefined,
      signal,
    );
    await this.#work.removeClaim(restored, made?.spec?.volumeName ?? "", signal);
    return [`a volume made from a snapshot holds ${read} acknowledged records`, idOf(pv)];
  }

  /** A volume that pods get as a device: written through one pod, read back through another. */
  async #block(signal: AbortSignal): Promise<readonly [string, string]> {
    const name = "device";
    const volumeMode = "Block";
    const pv = await this.#work.provision({ name, zone: this.#firstZone, volumeMode }, signal);
    this.migratedDevice = pv;
    await this.#work.removePod(name, signal);
    const reader = { name: "device-reader", volume: claimVolume(name), volumeMode } as const;
    const read = await this.#work.readBack(name, reader, signal);
    await this.#work.removeClaim(name, pv.metadata.name, signal);
    return [`${read} acknowledged records were read back from a device`, idOf(pv)];
  }

  /** A pod that names the disk itself. The disk is one that was provisioned and kept. */
  async #inline(signal: AbortSignal): Promise<readonly [string, string]> {
    const { kube } = this.#cluster;
    const pv = await this.#work.provision({ name: "kept" }, signal);
    const { name: pvName } = pv.metadata;
    const ref = { name: pvName };
    const keep = { spec: { persistentVolumeReclaimPolicy: "Retain" } };
    await kube.patch(resources.persistentVolumes, ref, { type: "merge", body: keep }, { signal });
    await this.#work.removePod("kept", signal);
    await kube.delete(resources.persistentVolumeClaims, { namespace, name: "kept" }, { signal });
    await this.#work.until(
      async () =>
        (await kube.get(resources.persistentVolumes, ref, { signal }))?.status?.phase === "Released",
      signal,
    );
    await kube.delete(resources.persistentVolumes, ref, { signal });
    await this.#work.until(
      async () => (await kube.get(resources.persistentVolumes, ref, { signal })) === undefined,
      signal,
    );

    const [zone] = zonesOf(pv);
    const volume = inlineVolume(this.#plugin, pv.spec);
    if (volume === undefined) throw new BehaviourError(`PersistentVolume ${pvName} is not an in-tree one`);
    const pod = await this.#work.write({ name: "inline", volume, zone }, signal);
    const attachments = await kube.list(resources.volumeAttachments, { signal });
    const own = attachments.items.find(({ spec }) => spec.source.inlineVolumeSpec !== undefined);
    if (own === undefined && this.#plugin.csiDriver.attachRequired !== false) {
      throw new BehaviourError("its VolumeAttachment carries no inlineVolumeSpec");
    }
    await this.#work.removePod("inline", signal);
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
    await this.#work.until(
      async () => (await kube.get(resources.persistentVolumes, { name }, { signal })) === undefined,
      signal,
    );
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
