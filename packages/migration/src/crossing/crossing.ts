/**
 * Carries a cluster over to the CSI driver, or back.
 *
 *   migrate:   preflight → control plane on → each node: cordon, drain, wait, flip, wait, uncordon
 *   rollback:  preflight → each node the same way, off → control plane off → wait for clean objects
 *
 * Invariants
 *  - A node is flipped only when nothing of the plugin is in use or attached there in either form.
 *  - Going over, the control plane is first; going back, it is last.
 *  - Every step first looks whether it is done already: a run may be ended anywhere and begun again.
 *  - An API server that goes away once the run has begun is waited for; only the preflight fails at once.
 *
 * Source: spec migration-controllers.md, part C.
 */
import {
  type KubeClient,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  type Stored,
} from "@longshore/kube";
import { type Host, type RuntimeEnv, withDeadline } from "@longshore/runtime";
import { migratedToAnnotation } from "@longshore/storage";
import { getInTreePluginNameFromSpec, isPVMigratable } from "@longshore/translation";
import type { CrossingMark, Platform } from "../platform.ts";
import { cordon, isCordonedForCrossing, uncordon } from "./cordon.ts";
import type { CrossingListener } from "./crossing-events.ts";
import { drainNode } from "./drain.ts";
import { type CrossingJournal, JournalError, readJournal, writeJournal } from "./journal.ts";
import { csiNodeLacks, volumesLeft } from "./node-state.ts";
import { patiently } from "./patience.ts";
import { type Blocker, type CrossingObservation, findBlockers } from "./preflight.ts";
import { type CrossingDirection, type CrossingSubject, gateValuesFor, sidecarFinalizers } from "./subject.ts";

/** The seams of a crossing. */
export interface CrossingEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  readonly platform: Platform;
  /** Where the journal lies. */
  readonly host: Host;
}

/** What is to be done. */
export interface CrossingOptions {
  readonly subject: CrossingSubject;
  readonly direction: CrossingDirection;
  readonly journalFile: string;
  /** Evicts pods that no controller brings back. */
  readonly force?: boolean;
  readonly onEvent?: CrossingListener;
  /** A step that waits longer than this fails, in milliseconds; default 15 minutes. */
  readonly stepTimeoutMs?: number;
}

/** How it went. */
export interface CrossingResult {
  readonly plugin: string;
  readonly direction: CrossingDirection;
  readonly resumed: boolean;
  readonly steps: readonly { readonly name: string; readonly ms: number }[];
  readonly elapsedMs: number;
}

/** The preflight found what stands in the way; nothing was changed. */
export class PreflightError extends Error {
  override readonly name = "PreflightError";
  readonly blockers: readonly Blocker[];
  constructor(blockers: readonly Blocker[]) {
    const lines = blockers.map((b) => `${b.object}: ${b.reason}; ${b.remedy}`);
    super(`the crossing cannot begin: ${lines.length === 1 ? lines[0] : `\n  ${lines.join("\n  ")}`}`);
    this.blockers = blockers;
  }
}

/** A step did not come to its end in time. The run can be begun again. */
export class StepTimeoutError extends Error {
  override readonly name = "StepTimeoutError";
}

const pollMs = 100;

/** Runs a crossing, or resumes it. */
export async function runCrossing(
  env: CrossingEnv,
  options: CrossingOptions,
  signal: AbortSignal,
): Promise<CrossingResult> {
  const { subject, direction } = options;
  const run = new CrossingRun(env, options, signal);
  const startMs = env.clock.monotonicMs();
  const { journal, resumed } = await openJournal(env, options);
  await run.step("preflight", undefined, () => preflight(env, options, signal), "at once");
  run.journal = journal;
  await run.write({});
  if (direction === "migrate") {
    await run.step("control plane on", undefined, () => run.setControlPlane());
  } else {
    await run.mark({ kind: "clusterReturning", plugin: subject.inTreeName });
  }
  await run.crossAllNodes();
  if (direction === "migrate") {
    await run.mark({ kind: "clusterMigrated", plugin: subject.inTreeName });
  } else {
    await run.step("control plane off", undefined, () => run.setControlPlane());
    await run.step("objects clean", undefined, () => run.objectsClean());
    await run.mark({ kind: "clusterReturned", plugin: subject.inTreeName });
  }
  await run.write({ finishedAt: env.clock.now().toISOString() });
  const elapsedMs = Math.round(env.clock.monotonicMs() - startMs);
  return { plugin: subject.inTreeName, direction, resumed, steps: run.steps, elapsedMs };
}

/** Finds what stands in the way. @throws PreflightError */
export async function preflight(
  env: Pick<CrossingEnv, "kube"> & Partial<Pick<CrossingEnv, "platform">>,
  options: Pick<CrossingOptions, "subject" | "direction" | "force">,
  signal: AbortSignal,
): Promise<void> {
  const seen = await observe(env.kube, signal);
  const blockers = [
    ...((await env.platform?.blockers?.(signal)) ?? []),
    ...findBlockers(options.subject, options.direction, seen, options),
  ];
  if (blockers.length > 0) throw new PreflightError(blockers);
}

class CrossingRun {
  readonly steps: { name: string; ms: number }[] = [];
  journal: CrossingJournal | undefined;
  readonly #env: CrossingEnv;
  readonly #options: CrossingOptions;
  readonly #signal: AbortSignal;
  readonly #stepTimeoutMs: number;

  constructor(env: CrossingEnv, options: CrossingOptions, signal: AbortSignal) {
    this.#env = env;
    this.#options = options;
    this.#signal = signal;
    this.#stepTimeoutMs = options.stepTimeoutMs ?? 15 * 60_000;
  }

  async step(
    name: string,
    nodeName: string | undefined,
    work: () => Promise<void>,
    fails: "patiently" | "at once" = "patiently",
  ): Promise<void> {
    this.#signal.throwIfAborted();
    const node = nodeName === undefined ? {} : { nodeName };
    const startMs = this.#env.clock.monotonicMs();
    this.#options.onEvent?.({ kind: "stepStarted", step: name, ...node });
    await (fails === "at once" ? work() : this.#patiently(name, nodeName, work));
    const ms = Math.round(this.#env.clock.monotonicMs() - startMs);
    this.steps.push({ name: nodeName === undefined ? name : `${nodeName}: ${name}`, ms });
    this.#options.onEvent?.({ kind: "stepDone", step: name, ...node, ms });
  }

  mark(mark: CrossingMark): Promise<void> {
    return this.#env.platform.noteMark?.(mark, this.#signal) ?? Promise.resolve();
  }

  setControlPlane(): Promise<void> {
    const { subject, direction } = this.#options;
    return this.#env.platform.setControlPlaneGates(gateValuesFor(subject, direction), this.#signal);
  }

  /** Nodes by name; going back, the other way round. */
  async nodesInOrder(): Promise<string[]> {
    const { items } = await this.#patiently("nodes", undefined, () =>
      this.#env.kube.list(resources.nodes, { signal: this.#signal }),
    );
    const names = items.map((node) => node.metadata.name).sort();
    return this.#options.direction === "migrate" ? names : names.reverse();
  }

  /** Crosses every node, also those that join the cluster meanwhile. */
  async crossAllNodes(): Promise<void> {
    const seen = new Set<string>();
    for (;;) {
      const news = (await this.nodesInOrder()).filter((name) => !seen.has(name));
      if (news.length === 0) return;
      for (const nodeName of news) {
        await this.crossNode(nodeName);
        seen.add(nodeName);
      }
    }
  }

  async crossNode(nodeName: string): Promise<void> {
    const { kube, platform } = this.#env;
    const { subject, direction } = this.#options;
    if (await this.#patiently("look", nodeName, () => this.#hasCrossed(nodeName))) return;
    await this.step("cordon", nodeName, () => cordon(kube, nodeName, subject.shortName, this.#signal));
    await this.step("drain", nodeName, () => this.#drain("drain", nodeName));
    await this.step("volumes gone", nodeName, () =>
      this.#until("volumes gone", nodeName, async () => {
        await this.#drain("volumes gone", nodeName);
        return this.#volumesLeft(nodeName);
      }),
    );
    if (direction === "rollback") {
      await this.mark({ kind: "nodeReturning", plugin: subject.inTreeName, nodeName });
    }
    await this.step("flip", nodeName, () =>
      platform.setNodeGates(nodeName, gateValuesFor(subject, direction), this.#signal),
    );
    await this.step("CSINode agrees", nodeName, () =>
      this.#until("CSINode agrees", nodeName, async () => {
        const csiNode = await kube.get(resources.csiNodes, { name: nodeName }, { signal: this.#signal });
        const lack = csiNodeLacks(subject, direction, csiNode);
        if (lack !== undefined) await this.#drain("CSINode agrees", nodeName);
        return lack;
      }),
    );
    if (direction === "migrate") {
      await this.mark({ kind: "nodeMigrated", plugin: subject.inTreeName, nodeName });
    }
    await this.step("uncordon", nodeName, () => uncordon(kube, nodeName, this.#signal));
    await this.write({ nodesDone: [...(this.journal?.nodesDone ?? []), nodeName] });
  }

  /**
   * Empties the node. Done again for as long as something is waited for there: a scheduler that has
   * not yet heard of the cordon may still bind pods to the node, whose volumes would never go.
   */
  async #drain(step: string, nodeName: string): Promise<void> {
    const { clock } = this.#env;
    const startMs = clock.monotonicMs();
    let waitsFor = "its pods to end";
    const onWaiting = (what: string) => {
      waitsFor = what;
      this.#waiting(step, nodeName, what);
    };
    try {
      await withDeadline(clock, this.#stepTimeoutMs, this.#signal, (signal) =>
        drainNode(this.#env, nodeName, onWaiting, signal),
      );
    } catch (error) {
      if (this.#signal.aborted || clock.monotonicMs() - startMs < this.#stepTimeoutMs) throw error;
      throw new StepTimeoutError(`"${step}" on node ${nodeName} still waits for: ${waitsFor}`, {
        cause: error,
      });
    }
  }

  /** PVs and claims of the plugin carry nothing any more that the driver's sidecars put there. */
  objectsClean(): Promise<void> {
    const { subject } = this.#options;
    return this.#until("objects clean", undefined, async () => {
      const { volumes, claims } = await observe(this.#env.kube, this.#signal);
      const marked = objectsCarryingMarks(subject, volumes, claims);
      return marked.length === 0 ? undefined : `marks of the driver to leave ${marked.join(", ")}`;
    });
  }

  async write(change: Partial<CrossingJournal>): Promise<void> {
    if (this.journal === undefined) return;
    this.journal = { ...this.journal, ...change };
    await writeJournal(this.#env.host, this.#options.journalFile, this.journal);
  }

  async #hasCrossed(nodeName: string): Promise<boolean> {
    const { kube, platform } = this.#env;
    const { subject, direction } = this.#options;
    const node = await kube.get(resources.nodes, { name: nodeName }, { signal: this.#signal });
    if (node === undefined) return true; // Deleted since the list was made: nothing to carry.
    if (isCordonedForCrossing(node)) return false;
    const gates = await platform.nodeGates(nodeName, this.#signal);
    const wanted = Object.entries(gateValuesFor(subject, direction));
    if (gates === undefined || !wanted.every(([name, value]) => gates[name] === value)) return false;
    const csiNode = await kube.get(resources.csiNodes, { name: nodeName }, { signal: this.#signal });
    return csiNodeLacks(subject, direction, csiNode) === undefined;
  }

  async #volumesLeft(nodeName: string): Promise<string | undefined> {
    const { kube } = this.#env;
    const node = await kube.get(resources.nodes, { name: nodeName }, { signal: this.#signal });
    if (node === undefined) return undefined;
    const { items } = await kube.list(resources.volumeAttachments, { signal: this.#signal });
    const left = volumesLeft(this.#options.subject, node, items);
    return left.length === 0 ? undefined : left.join(", ");
  }

  #patiently<T>(step: string, nodeName: string | undefined, work: () => Promise<T>): Promise<T> {
    const patience = {
      withinMs: this.#stepTimeoutMs,
      onWaiting: (what: string) => this.#waiting(step, nodeName, what),
    };
    return patiently(this.#env.clock, patience, this.#signal, work);
  }

  /** Polls until `obstacle` finds none. */
  async #until(
    step: string,
    nodeName: string | undefined,
    obstacle: () => Promise<string | undefined>,
  ): Promise<void> {
    const { clock } = this.#env;
    const untilMs = clock.monotonicMs() + this.#stepTimeoutMs;
    for (;;) {
      const what = await obstacle();
      if (what === undefined) return;
      this.#waiting(step, nodeName, what);
      if (clock.monotonicMs() > untilMs) {
        const where = nodeName === undefined ? "" : ` on node ${nodeName}`;
        throw new StepTimeoutError(`"${step}"${where} still waits for: ${what}`);
      }
      await clock.sleep(pollMs, this.#signal);
    }
  }

  #waiting(step: string, nodeName: string | undefined, what: string): void {
    const node = nodeName === undefined ? {} : { nodeName };
    this.#options.onEvent?.({ kind: "waiting", step, ...node, for: what });
  }
}

/** PVs and claims of the plugin that carry `migrated-to` or a finalizer of the driver's sidecars. */
export function objectsCarryingMarks(
  subject: CrossingSubject,
  volumes: readonly Stored<PersistentVolume>[],
  claims: readonly Stored<PersistentVolumeClaim>[],
): string[] {
  const finalizers = sidecarFinalizers(subject);
  const isHanded = (object: Stored<PersistentVolume> | Stored<PersistentVolumeClaim>) =>
    object.metadata.annotations?.[migratedToAnnotation] === subject.driverName;
  const carries = (object: Stored<PersistentVolume> | Stored<PersistentVolumeClaim>) =>
    isHanded(object) || object.metadata.finalizers?.some((f) => finalizers.includes(f)) === true;
  const ours = volumes.filter(
    (pv) => isPVMigratable(pv) && getInTreePluginNameFromSpec(pv, null) === subject.inTreeName,
  );
  const names = new Set(ours.map((pv) => pv.metadata.name));
  return [
    ...ours.filter(carries).map((pv) => `PersistentVolume ${pv.metadata.name}`),
    ...claims
      // A claim that is not bound yet is known as the plugin's by the driver that it was handed to.
      .filter((claim) => carries(claim) && (names.has(claim.spec?.volumeName ?? "") || isHanded(claim)))
      .map((claim) => `claim ${claim.metadata.namespace}/${claim.metadata.name}`),
  ];
}

async function openJournal(
  env: CrossingEnv,
  options: CrossingOptions,
): Promise<{ readonly journal: CrossingJournal; readonly resumed: boolean }> {
  const { subject, direction, journalFile } = options;
  const found = await readJournal(env.host, journalFile);
  const open = found !== undefined && found.finishedAt === undefined;
  if (open && (found.plugin !== subject.inTreeName || found.platform !== env.platform.name)) {
    throw new JournalError(
      `an unfinished crossing of ${found.plugin} on ${found.platform} is in ${journalFile}: finish it or roll it back first`,
    );
  }
  if (open && found.direction === direction) return { journal: found, resumed: true };
  const journal: CrossingJournal = {
    version: 1,
    platform: env.platform.name,
    plugin: subject.inTreeName,
    direction,
    startedAt: env.clock.now().toISOString(),
    nodesDone: [],
  };
  return { journal, resumed: false };
}

async function observe(kube: KubeClient, signal: AbortSignal): Promise<CrossingObservation> {
  const [nodes, csiNodes, pods, volumes, claims] = await Promise.all([
    kube.list(resources.nodes, { signal }),
    kube.list(resources.csiNodes, { signal }),
    kube.list(resources.pods, { signal }),
    kube.list(resources.persistentVolumes, { signal }),
    kube.list(resources.persistentVolumeClaims, { signal }),
  ]);
  return {
    nodes: nodes.items,
    csiNodes: csiNodes.items,
    pods: pods.items,
    volumes: volumes.items,
    claims: claims.items,
  } satisfies CrossingObservation & { nodes: readonly Stored<Node>[] };
}
