/** One run of a crossing: its steps, in order, each of which first looks whether it is done already. */
import { resources } from "@longshore/kube";
import { ContractError, contractSigns, type SignsView } from "./contract-signs.ts";
import type { CrossingEnv, CrossingOptions } from "./crossing-options.ts";
import { batchesOf, nodesInOrder, stepsAfterNodes, stepsBeforeNodes } from "./crossing-steps.ts";
import { gateValuesFor } from "./crossing-subject.ts";
import type { JournalKeeper } from "./journal-keeper.ts";
import { attachmentsOfPlugin, objectsCarryingMarks, volumesOfDriver } from "./marks.ts";
import { crossNode } from "./node-crossing.ts";
import { NodesDone, nodesSeenDone } from "./nodes-done.ts";
import { PlanError } from "./plan-document.ts";
import type { CrossingMark } from "./platform.ts";
import { StepRunner, type Work } from "./step-runner.ts";
import { gatesWait, waitFor } from "./waits.ts";

/** The look for signs takes at most this share of a run's time, as it costs in proportion to the cluster. */
const signsShare = 0.1;

/** Runs the steps of one crossing in order; a step that is done already is skipped. */
export class CrossingRun {
  readonly #env: CrossingEnv;
  readonly #options: CrossingOptions;
  readonly #keeper: JournalKeeper;
  readonly #signal: AbortSignal;
  readonly #runner: StepRunner;
  /** Names of PersistentVolumes that the driver has made, and that cannot go back; known at the end of a rollback. */
  driverVolumes: readonly string[] = [];
  #before: SignsView | undefined;
  #signsDue = 0;
  #done: NodesDone;

  constructor(env: CrossingEnv, options: CrossingOptions, keeper: JournalKeeper, signal: AbortSignal) {
    this.#env = env;
    this.#options = options;
    this.#keeper = keeper;
    this.#done = new NodesDone(keeper.journal);
    this.#signal = signal;
    this.#runner = new StepRunner(env, options, keeper);
  }

  get steps(): readonly { readonly name: string; readonly ms: number }[] {
    return this.#runner.steps;
  }

  /** Fails at once but in a later term, and leaves the journal as it was. */
  preflight(work: Work<void>): Promise<void> {
    const wait = waitFor("API server", "", "to list what is in the cluster");
    return this.#runner.unrecorded({ name: "preflight", wait }, this.#signal, work);
  }

  /** Everything after the preflight. @returns names of the nodes that are left for a later run */
  async carry(): Promise<readonly string[]> {
    const { subject, direction, by } = this.#options;
    await this.#recallNodesDone();
    const startedAt = this.#now();
    await this.#write({ run: { ...(by === undefined ? {} : { by }), startedAt, aliveAt: startedAt } });
    await this.#requireNoSigns();
    for (const step of stepsBeforeNodes(direction)) await this.#setControlPlane(step);
    if (direction === "rollback") await this.#mark({ kind: "clusterReturning", plugin: subject.inTreeName });
    const left = await this.#crossAllNodes();
    if (left.length > 0) {
      this.#keeper.note({ ended: { at: this.#now(), how: "paused" } });
      return left;
    }
    if (direction === "migrate") {
      await this.#mark({ kind: "clusterMigrated", plugin: subject.inTreeName });
    } else {
      for (const step of stepsAfterNodes(direction)) {
        await (step === "objects clean" ? this.#objectsClean() : this.#setControlPlane(step));
      }
      await this.#mark({ kind: "clusterReturned", plugin: subject.inTreeName });
    }
    await this.#write({ finishedAt: this.#now() });
    return [];
  }

  #setControlPlane(name: string): Promise<void> {
    const { subject, direction } = this.#options;
    const values = gateValuesFor(subject, direction);
    return this.#runner.step(
      { name, wait: gatesWait(undefined, values) },
      this.#signal,
      (onWaiting, signal) => this.#env.platform.setControlPlaneGates(values, signal, onWaiting),
    );
  }

  /** Crosses every node, also those that join the cluster meanwhile. @returns those that it leaves */
  async #crossAllNodes(): Promise<readonly string[]> {
    const { plan, maxUnavailable = plan?.maxUnavailable ?? 1, onlyNodes, pauseAfter } = this.#options;
    const seen = new Set<string>();
    const isChosen = (name: string) => onlyNodes === undefined || onlyNodes.includes(name);
    let batches = 0;
    for (;;) {
      const news = (await this.#nodesInOrder()).filter((name) => !seen.has(name));
      const chosen = news.filter(isChosen);
      if (chosen.length === 0) return news.filter((name) => !this.#isDone(name));
      for (const batch of batchesOf(chosen, maxUnavailable)) {
        if (batches === pauseAfter) return news.filter((name) => !seen.has(name) && !this.#isDone(name));
        const stepsBefore = this.steps.length;
        // One that is deleted meanwhile may come back, as it was.
        for (const name of await this.#crossBatch(batch)) seen.add(name);
        // A batch whose nodes had all crossed before is none to pause after.
        if (this.steps.length > stepsBefore) batches++;
        await this.#requireNoSigns();
      }
    }
  }

  /** The nodes of the batch at the same time; where one fails the others are ended, too. @returns those that were not deleted */
  async #crossBatch(names: readonly string[]): Promise<readonly string[]> {
    const failed = new AbortController();
    const signal = AbortSignal.any([this.#signal, failed.signal]);
    const errors: unknown[] = [];
    const crossed: string[] = [];
    await Promise.all(
      names.map(async (name) => {
        try {
          if (await this.#crossOne(name, signal)) crossed.push(name);
        } catch (error) {
          errors.push(error);
          failed.abort(error);
        }
      }),
    );
    if (errors.length > 0) throw errors[0];
    return crossed;
  }

  /** @returns whether it has crossed; false when it was deleted */
  async #crossOne(name: string, signal: AbortSignal): Promise<boolean> {
    if (!this.#isPlanned(name)) {
      throw new PlanError(
        `Node ${name}: it is not in the plan of ${this.#options.plan?.madeAt}: make a plan of the nodes that are left, and go on with that`,
      );
    }
    const hasCrossed = await crossNode(this.#env, this.#options, this.#runner, name, signal);
    if (hasCrossed && !this.#isDone(name)) {
      const place = { name: "journal", nodeName: name, wait: waitFor("journal", "", "to be written") };
      await this.#runner.patiently(place, signal, (_, within) =>
        // Added at the time of the write: the nodes of a batch end in any order.
        this.#keeper.write(this.#done.add(name), within),
      );
    }
    return hasCrossed;
  }

  #isDone(name: string): boolean {
    return this.#done.has(name);
  }

  /** Those that the journal only counts are learned from the nodes. */
  async #recallNodesDone(): Promise<void> {
    const { journal } = this.#keeper;
    if (journal.nodesDoneEarlier === undefined) return;
    const wait = waitFor("API server", "", "to list nodes and CSINodes");
    const seen = await this.#runner.patiently({ name: "look", wait }, this.#signal, async (_, signal) => {
      const [nodes, csiNodes] = await Promise.all([
        this.#env.kube.list(resources.nodes, { signal }),
        this.#env.kube.list(resources.csiNodes, { signal }),
      ]);
      const { subject, direction } = this.#options;
      return nodesSeenDone(subject, direction, nodes.items, csiNodes.items);
    });
    this.#done = new NodesDone(journal, seen);
  }

  /** A platform that replaces its nodes brings new ones, which no plan can name. */
  #isPlanned(name: string): boolean {
    const { plan } = this.#options;
    if (plan === undefined || this.#env.platform.rollsNodes === true || this.#isDone(name)) return true;
    return plan.nodes.some((node) => node.name === name);
  }

  /** See {@link nodesInOrder}. */
  async #nodesInOrder(): Promise<string[]> {
    const wait = waitFor("API server", "", "to list the nodes");
    const { items } = await this.#runner.patiently({ name: "nodes", wait }, this.#signal, (_, signal) =>
      this.#env.kube.list(resources.nodes, { signal }),
    );
    return nodesInOrder(items, this.#options.direction);
  }

  /** @throws ContractError for a sign that a rule of the contract is broken */
  async #requireNoSigns(): Promise<void> {
    const { kube, clock } = this.#env;
    if (clock.monotonicMs() < this.#signsDue) return;
    const startMs = clock.monotonicMs();
    const wait = waitFor("API server", "", "to list volumes, claims, attachments and nodes");
    const now = await this.#runner.patiently({ name: "look", wait }, this.#signal, async (_, signal) => {
      const [nodes, volumes, claims, attachments] = await Promise.all([
        kube.list(resources.nodes, { signal }),
        kube.list(resources.persistentVolumes, { signal }),
        kube.list(resources.persistentVolumeClaims, { signal }),
        kube.list(resources.volumeAttachments, { signal }),
      ]);
      return {
        nodes: nodes.items,
        volumes: volumes.items,
        claims: claims.items,
        attachments: attachments.items,
      };
    });
    this.#before ??= now;
    const endMs = clock.monotonicMs();
    this.#signsDue = endMs + (endMs - startMs) / signsShare;
    const signs = contractSigns(this.#options.subject, this.#before, now);
    if (signs.length > 0) throw new ContractError(signs);
  }

  /** PVs, claims and attachments of the plugin carry nothing any more that the driver and its sidecars put there. */
  #objectsClean(): Promise<void> {
    const { kube } = this.#env;
    const wait = waitFor("PersistentVolumes", "", "to carry no mark of the driver");
    return this.#runner.step({ name: "objects clean", wait }, this.#signal, (onWaiting, signal) =>
      this.#runner.until(onWaiting, signal, async () => {
        const [{ items: volumes }, { items: claims }, { items: attachments }] = await Promise.all([
          kube.list(resources.persistentVolumes, { signal }),
          kube.list(resources.persistentVolumeClaims, { signal }),
          kube.list(resources.volumeAttachments, { signal }),
        ]);
        const { subject } = this.#options;
        this.driverVolumes = volumesOfDriver(subject, volumes);
        const subjects = [
          ...objectsCarryingMarks(subject, volumes, claims),
          ...attachmentsOfPlugin(subject, volumes, attachments),
        ];
        return subjects.length === 0 ? undefined : { subjects };
      }),
    );
  }

  #write(change: Parameters<JournalKeeper["write"]>[0]): Promise<void> {
    const wait = waitFor("journal", "", "to be written");
    return this.#runner.patiently({ name: "journal", wait }, this.#signal, (_, signal) =>
      this.#keeper.write(change, signal),
    );
  }

  #mark(mark: CrossingMark): Promise<void> {
    return this.#env.platform.noteMark?.(mark, this.#signal) ?? Promise.resolve();
  }

  #now(): string {
    return this.#env.clock.now().toISOString();
  }
}
