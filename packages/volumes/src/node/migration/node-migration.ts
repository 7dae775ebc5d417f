/**
 * The migration of this node: what its CSINode annotation says, what its volume manager does, and when both change
 * over to what the gates want. It asks the volume manager, never the other way round: that one reads
 * {@link PathsInForce}, which only this sets.
 *
 * Invariant: until the annotation has been put in place once, the node is not Ready.
 * Source: docs/behaviour/node-agent.md 2.4; docs/contract.md, "C1 over C5".
 */
import {
  type Actions,
  type Controller,
  type Next,
  type NodeCondition,
  type Pass,
  settled,
  startController,
} from "@longshore/kube";
import { backoffMs, type Component, errorChain } from "@longshore/runtime";
import { migratedPluginsOf } from "@longshore/storage";
import type { ManagedVolumes } from "../volume-manager/managed-volumes.ts";
import { ChangingOver } from "./changing-over.ts";
import {
  decideNodeMigrationStep,
  type LookedAt,
  type NodeMigrationStep,
  type ObservedMigration,
  type ObservedPlugin,
  type PluginVerdict,
} from "./decide-node-migration-step.ts";
import { lookAtPlugin } from "./look-at-plugin.ts";
import { MigratingPlugins } from "./migrating-plugins.ts";
import { MigrationStatus } from "./migration-status.ts";
import type { NodeMigrationEnv } from "./node-migration-env.ts";
import { correctLists } from "./restored-lists.ts";

const initialBackoff = { initialMs: 15, maximumMs: 5_000, factor: 6, jitter: 0.1 };
const changeBackoff = { initialMs: 1000, maximumMs: 60_000 };

/** Keeps the node's migration decision until it is stopped. */
export class NodeMigration implements Component {
  readonly #env: NodeMigrationEnv;
  readonly #plugins: MigratingPlugins;
  readonly #status: MigrationStatus;
  readonly #changingOver: ChangingOver;
  readonly #controller: Controller;
  #managed: ManagedVolumes | undefined;
  #unsubscribe: () => void = () => {};
  #isInitialised = false;
  #onInitialised: () => void = () => {};
  /** What the CSINode's annotation lists for certain. */
  #written: readonly string[] | undefined;
  /** What is stored may be older than that. */
  #mayBeOlder = false;
  /** What the Node lists as attached may be older than what is mounted. */
  #mayListOthers = false;
  #failures = 0;
  #retryAtMs = 0;

  constructor(env: NodeMigrationEnv) {
    this.#env = env;
    this.#plugins = new MigratingPlugins(env.paths);
    this.#status = new MigrationStatus(env);
    this.#changingOver = new ChangingOver(env.kube, env.nodeName);
    this.#controller = startController<ObservedMigration, NodeMigrationStep>(env, {
      name: "node_migration",
      sources: [],
      stepsMax: 100,
      observe: (_key, { signal }) => this.#observe(signal),
      decide: decideNodeMigrationStep,
      actions: this.#actions(),
    });
    this.wake();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.#controller.stop();
  }

  /** The volume manager, once it is there. */
  follow(managed: ManagedVolumes): void {
    this.#managed = managed;
    this.#unsubscribe = managed.onVolumeChange((change) => {
      if (!this.#isInitialised) return;
      this.#plugins.hear(change);
      this.wake();
    });
  }

  /** The CSINode's annotation has been put in place once. */
  get isInitialised(): boolean {
    return this.#isInitialised;
  }

  /** Calls it once that is so; at once where it is so already. */
  onInitialised(listener: () => void): void {
    if (this.#isInitialised) listener();
    else this.#onInitialised = listener;
  }

  /** Not undefined: why the node is not Ready. */
  get error(): string | undefined {
    return this.#status.error;
  }

  get condition(): NodeCondition {
    return this.#status.condition;
  }

  /** Something was unmounted or detached: looks again whether a held plugin can change over. */
  wake(): void {
    if (!this.#isInitialised || this.#plugins.areHeld) this.#controller.wake(this.#env.nodeName);
  }

  /**
   * The API server may be one that was restored from a backup, whose CSINode, and what the Node announces, are older than this agent
   * (docs/playbooks/control-plane-restored-mid-crossing.md): looks at both, and puts them right. So too what the Node lists as attached.
   */
  mayBeRestored(): void {
    if (!this.#isInitialised) return;
    this.#mayBeOlder = true;
    this.#mayListOthers = true;
    this.#changingOver.doubt();
    this.#controller.wake(this.#env.nodeName);
  }

  // Observe

  async #observe(signal: AbortSignal): Promise<ObservedMigration> {
    const plugins = this.#plugins.observe(this.#managed);
    const nowMs = this.#env.clock.monotonicMs();
    const observed = { nowMs, ...this.#progress(), plugins, failure: undefined };
    // Only at the start: afterwards the ways in force are what this agent has written.
    if (this.#isInitialised || observed.retryAtMs > nowMs) return observed;
    try {
      const csiNode = await this.#env.csiNode.read(signal);
      const listed = migratedPluginsOf(csiNode);
      const annotated = (name: string) => csiNode && (listed.has(name) ? "csi" : "in-tree");
      return { ...observed, plugins: this.#plugins.observe(this.#managed, annotated) };
    } catch (error) {
      signal.throwIfAborted();
      return { ...observed, failure: { error } };
    }
  }

  #progress() {
    return {
      retryAtMs: this.#retryAtMs,
      isInitialised: this.#isInitialised,
      written: this.#mayBeOlder ? undefined : this.#written,
      mayListOthers: this.#mayListOthers,
      mayBeAnnounced: this.#changingOver.mayBeThere,
    };
  }

  /** What this pass knows, with what may have changed since, and with what it has found `left` of a plugin. */
  #again(
    observed: ObservedMigration,
    looked?: { readonly inTreeName: string; readonly left: LookedAt },
  ): { readonly observed: ObservedMigration } {
    const now = this.#plugins.observe(this.#managed);
    const plugins = observed.plugins.map((seen, index): ObservedPlugin => {
      const { isFree, isSuspended } = now[index] ?? seen;
      const left = seen.inTreeName === looked?.inTreeName ? looked.left : seen.left;
      return { ...seen, isFree, isSuspended, left };
    });
    return { observed: { ...observed, ...this.#progress(), plugins } };
  }

  // Act

  #actions(): Actions<ObservedMigration, NodeMigrationStep> {
    const { paths } = this.#env;
    return {
      recordFailure: ({ error }) => this.#recordFailure(error),
      wait: ({ ms }) => ({ requeueAfterMs: ms }),
      correctLists: (_step, observed, pass) =>
        this.#attempted(observed, pass, () => this.#correctLists(observed, pass.signal)),
      suspend: ({ inTreeName }, observed) => {
        paths.suspend(inTreeName);
        return this.#again(observed);
      },
      look: ({ inTreeName }, observed, pass) => this.#look(inTreeName, undefined, observed, pass),
      announce: ({ inTreeName }, observed, pass) =>
        this.#look(inTreeName, this.#changingOver, observed, pass),
      writeAnnotation: ({ migrated }, observed, pass) =>
        this.#attempted(observed, pass, () => this.#writeAnnotation(migrated, observed, pass.signal)),
      endAnnouncement: (_step, observed, pass) =>
        this.#attempted(observed, pass, async () => {
          await this.#changingOver.end(pass.signal);
          return this.#again(observed);
        }),
      apply: ({ verdicts, recheckMs }) => this.#apply(verdicts, recheckMs),
    };
  }

  async #attempted(
    observed: ObservedMigration,
    { signal }: Pass,
    work: () => Promise<{ readonly observed: ObservedMigration }>,
  ): Promise<Next<ObservedMigration>> {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      return { observed: { ...observed, failure: { error } } };
    }
  }

  async #correctLists(observed: ObservedMigration, signal: AbortSignal) {
    const { kube, nodeName } = this.#env;
    this.#mayListOthers = false;
    try {
      await correctLists(kube, nodeName, this.#managed?.mountedDisks() ?? [], signal);
    } catch (error) {
      this.#mayListOthers = true;
      throw error;
    }
    return this.#again(observed);
  }

  /** Looks at what is left of the plugin, with the announcement or before it. */
  #look(
    inTreeName: string,
    announcement: ChangingOver | undefined,
    observed: ObservedMigration,
    pass: Pass,
  ): Promise<Next<ObservedMigration>> {
    return this.#attempted(observed, pass, async () => {
      const plugin = this.#plugins.get(inTreeName);
      if (plugin === undefined) return this.#again(observed);
      const isMerelyWanted = (name: string) => this.#managed?.isMerelyWanted(name) ?? false;
      const left = await lookAtPlugin({ ...this.#env, isMerelyWanted }, plugin, announcement, pass.signal);
      return this.#again(observed, { inTreeName, left });
    });
  }

  async #writeAnnotation(migrated: readonly string[], observed: ObservedMigration, signal: AbortSignal) {
    // Until the answer is there, it is not certain what the annotation lists.
    this.#written = undefined;
    this.#mayBeOlder = false;
    await this.#env.csiNode.setMigratedPlugins(new Set(migrated), signal);
    this.#written = migrated;
    return this.#again(observed);
  }

  #recordFailure(error: unknown): Next<ObservedMigration> {
    const { clock, random, logger } = this.#env;
    this.#failures++;
    const reason = errorChain(error);
    const waitMs = this.#isInitialised
      ? backoffMs(changeBackoff, this.#failures)
      : backoffMs(initialBackoff, this.#failures, random);
    this.#retryAtMs = clock.monotonicMs() + waitMs;
    if (this.#isInitialised) {
      logger.warn("bringing the CSINode up to date failed", { error: reason });
      this.#resumeUnchanged();
    } else {
      logger.warn("CSINode not initialised yet", { error: reason });
      this.#status.notInitialised(reason);
    }
    return { requeueAfterMs: waitMs };
  }

  /** A write whose outcome is unknown keeps the plugins' volumes waiting until it is repeated; otherwise they go on. */
  #resumeUnchanged(): void {
    if (this.#written?.join() !== this.#plugins.onCsi().join()) return;
    this.#plugins.resume();
    this.#managed?.pathsChanged();
  }

  #apply(verdicts: readonly PluginVerdict[], recheckMs: number | undefined): Next<ObservedMigration> {
    const isFirst = !this.#isInitialised;
    const taken = verdicts.map((verdict) => ({ verdict, ...this.#plugins.take(verdict) }));
    this.#failures = 0;
    this.#retryAtMs = 0;
    this.#isInitialised = true;
    if (isFirst) {
      this.#env.paths.markDecided();
      this.#status.initialised();
      this.#onInitialised();
    } else {
      for (const { verdict, isSwitched } of taken) if (isSwitched) this.#status.switched(verdict);
    }
    this.#status.report(this.#plugins.report());
    if (isFirst || taken.some(({ wasSuspended }) => wasSuspended)) this.#managed?.pathsChanged();
    return recheckMs === undefined ? settled : { requeueAfterMs: recheckMs };
  }
}
