/**
 * The migration decision of this node: what its CSINode annotation says, what its volume manager
 * does, and when both change over to what the gates want.
 *
 * Invariants
 *  - The annotation and the volume manager agree: volumes of a plugin are not taken on while its
 *    annotation is being changed, and go the new way only once it is stored.
 *  - A plugin changes over only when none of its volumes is attached or mounted here on the old way, and, to CSI,
 *    only after the Node has announced it: the controller begins no in-tree attach from then on.
 *  - Until the annotation has been put in place once, the node is not Ready.
 * Source: docs/behaviour/node-agent.md 2.4; docs/contract.md, "C1 over C5".
 */
import {
  apiVersionOf,
  type EventRecorder,
  type KubeClient,
  type Node,
  type NodeCondition,
  resources,
  type Stored,
} from "@longshore/kube";
import { backoffMs, errorChain, type FeatureGates, type Host, type RuntimeEnv } from "@longshore/runtime";
import { changingOverAnnotation, migratedPluginsOf, pluginsChangingOver } from "@longshore/storage";
import { migrationGates } from "@longshore/translation";
import {
  createMigratedPluginManager,
  type MigratedPluginManager,
} from "../../csimigration/migrated-plugin-manager.ts";
import { type CsiNodeWriter, NodeMissingError } from "../csi-node/csi-node-writer.ts";
import { Wakeup } from "../wakeup.ts";
import { decideMigration, type MigrationStep, type VolumePath } from "./migration-step.ts";
import { observeVolumesLeft } from "./volumes-left.ts";

/** Condition of the Node: some plugin's volumes are not yet on the way that the gates want. */
export const migrationPendingCondition = "VolumeMigrationPending";

/** What is asked of the volume manager. */
export interface VolumesInHand {
  /**
   * True when nothing of the plugin (in-tree name and driver) is, may be or is about to be mounted
   * by the volume manager on the given way. Volumes that pods merely wait for do not count.
   */
  nothingMounted(
    path: VolumePath,
    plugin: { readonly inTreeName: string; readonly driverName: string },
  ): boolean;
  /** Unique names of the plugin's volumes that are desired, or are or may be mounted. */
  namesOf(inTreeName: string): readonly string[];
  /** The plugin's path changed (or is about to): volumes that are wanted but not present must be decided again. */
  redecide(): void;
}

type Env = RuntimeEnv & { readonly kube: KubeClient; readonly host: Host };

interface PluginState {
  readonly inTreeName: string;
  readonly driverName: string;
  readonly gate: string;
  readonly wanted: VolumePath;
  path: VolumePath;
  /** The annotation is being changed; nothing of the plugin may be taken on. */
  changing: boolean;
  heldBy: readonly string[];
  readonly heardOf: Set<string>;
}

const initialBackoff = { initialMs: 15, maximumMs: 5_000, factor: 6, jitter: 0.1 };
const changeBackoff = { initialMs: 1000, maximumMs: 60_000 };
/** How often a held plugin is looked at again although nothing seems to have happened. */
const recheckMs = 2_000;

/** The node's migration decision; `run` keeps it. */
export class NodeMigration {
  /** Decides and translates by the ways that are in force, not by those wanted. */
  readonly manager: MigratedPluginManager;
  readonly #env: Env;
  readonly #options: { readonly nodeName: string; readonly rootDir: string };
  readonly #csiNode: CsiNodeWriter;
  readonly #events: EventRecorder;
  readonly #onChange: () => void;
  readonly #plugins: readonly PluginState[];
  /** Plugins that the Node is, or may be, announced to hand over to CSI. */
  readonly #announced = new Set<string>();
  #inHand: VolumesInHand | undefined;
  #initialised = false;
  #error: string | undefined = "CSINode is not yet initialized";
  #condition: NodeCondition;
  readonly #wakeup = new Wakeup();

  constructor(
    env: Env,
    options: { readonly nodeName: string; readonly rootDir: string; readonly gates: FeatureGates },
    parts: { readonly csiNode: CsiNodeWriter; readonly events: EventRecorder; readonly onChange: () => void },
  ) {
    this.#env = env;
    this.#options = options;
    this.#csiNode = parts.csiNode;
    this.#events = parts.events;
    this.#onChange = parts.onChange;
    const { gates } = options;
    const wanted = createMigratedPluginManager(gates);
    this.#plugins = migrationGates.map(({ inTreeName, driverName, gate }) => {
      const path = wanted.isMigrationEnabledForPlugin(inTreeName) ? "csi" : "in-tree";
      return {
        inTreeName,
        driverName,
        gate,
        wanted: path,
        path,
        changing: false,
        heldBy: [],
        heardOf: new Set(),
      };
    });
    this.manager = createMigratedPluginManager(gatesInForce(gates, this.#plugins));
    this.#condition = this.#conditionNow(undefined);
  }

  /** The volume manager, once it is there. */
  attach(inHand: VolumesInHand): void {
    this.#inHand = inHand;
  }

  /** True once the annotation is in place; before that no volume can be decided on. */
  get initialised(): boolean {
    return this.#initialised;
  }

  /** Not undefined: why the node is not Ready. */
  get error(): string | undefined {
    return this.#error;
  }

  get condition(): NodeCondition {
    return this.#condition;
  }

  /** False while the plugin is changing over: its volumes must wait. */
  isDecided(inTreeName: string | undefined): boolean {
    return this.#plugins.every((plugin) => plugin.inTreeName !== inTreeName || !plugin.changing);
  }

  /** Something was unmounted or detached: look again whether a held plugin can change over. */
  volumesChanged(): void {
    const held = this.#plugins.filter(({ path, wanted }) => path !== wanted);
    for (const { inTreeName, heardOf } of held) {
      for (const name of this.#inHand?.namesOf(inTreeName) ?? []) heardOf.add(name);
    }
    if (held.length > 0) this.#wakeup.wake();
  }

  /** Initialises, then changes held plugins over as they become free; ends when none is left. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#initialise(signal);
    let failures = 0;
    while (this.#plugins.some((plugin) => plugin.path !== plugin.wanted)) {
      await this.#wakeup.wait(this.#env.clock, recheckMs, signal);
      try {
        for (const plugin of this.#plugins) {
          if (plugin.path !== plugin.wanted) await this.#tryChangeOver(plugin, signal);
        }
        failures = 0;
      } catch (error) {
        signal.throwIfAborted();
        failures++;
        this.#env.logger.warn("changing a plugin over failed", { error: errorChain(error) });
        await this.#env.clock.sleep(backoffMs(changeBackoff, failures), signal);
      }
    }
  }

  async #initialise(signal: AbortSignal): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#initialiseOnce(signal);
        break;
      } catch (error) {
        signal.throwIfAborted();
        this.#error = `Failed to initialize CSINode: ${errorChain(error)}`;
        this.#onChange();
        this.#env.logger.warn("CSINode not initialised yet", { error: errorChain(error) });
        await this.#env.clock.sleep(backoffMs(initialBackoff, attempt, this.#env.random), signal);
      }
    }
    this.#initialised = true;
    this.#error = undefined;
    this.#report();
    this.#onChange();
    this.#inHand?.redecide();
  }

  async #initialiseOnce(signal: AbortSignal): Promise<void> {
    const csiNode = await this.#csiNode.read(signal);
    const listed = migratedPluginsOf(csiNode);
    for (const plugin of this.#plugins) {
      const annotated = csiNode && (listed.has(plugin.inTreeName) ? "csi" : "in-tree");
      this.#take(plugin, await this.#decide(plugin, annotated, signal));
    }
    await this.#csiNode.setMigratedPlugins(this.#migratedNow(), signal);
    await this.#endAnnouncement(signal);
  }

  async #decide(
    plugin: PluginState,
    annotated: VolumePath | undefined,
    signal: AbortSignal,
  ): Promise<MigrationStep> {
    if (annotated === plugin.wanted) return { kind: "settled", path: plugin.wanted };
    const name = this.#options.nodeName;
    const node = await this.#env.kube.get(resources.nodes, { name }, { signal });
    if (node === undefined) throw new NodeMissingError(`Node ${name} does not exist: register it first`);
    const stepFor = async (seen: Stored<Node>) => {
      const env = { ...this.#env, ...this.#options };
      const left = await observeVolumesLeft(env, plugin, seen, plugin.heardOf, signal);
      return decideMigration({ wanted: plugin.wanted, annotated, left });
    };
    const step = await stepFor(node);
    if (step.kind === "held" || plugin.wanted === "in-tree") return step;
    // From the announcement on the controller begins no in-tree attach: what is looked at then stays true.
    this.#announced.add(plugin.inTreeName);
    return stepFor(await this.#announce([...this.#announced].sort().join(","), signal));
  }

  /** Announces to the controller which plugins are about to change over to CSI. @returns the updated node */
  #announce(value: string | null, signal: AbortSignal): Promise<Stored<Node>> {
    const name = this.#options.nodeName;
    const body = { metadata: { annotations: { [changingOverAnnotation]: value } } };
    return this.#env.kube.patch(resources.nodes, { name }, { type: "merge", body }, { signal });
  }

  /** The CSINode says it now, or it is not to be; also takes away what an agent that died has announced. */
  async #endAnnouncement(signal: AbortSignal): Promise<void> {
    const name = this.#options.nodeName;
    const node = await this.#env.kube.get(resources.nodes, { name }, { signal });
    if (pluginsChangingOver(node).length > 0) await this.#announce(null, signal);
    this.#announced.clear();
  }

  #take(plugin: PluginState, step: MigrationStep): void {
    plugin.path = step.path;
    plugin.heldBy = step.kind === "held" ? step.volumes : [];
  }

  async #tryChangeOver(plugin: PluginState, signal: AbortSignal): Promise<void> {
    const from = plugin.path;
    const free = () => this.#inHand?.nothingMounted(from, plugin) ?? false;
    if (!free()) {
      if (this.#announced.size > 0) await this.#endAnnouncement(signal);
      return;
    }
    // From here on nothing of the plugin is taken on, so what is observed next stays true.
    plugin.changing = true;
    let written = false;
    try {
      const step = await this.#decide(plugin, from, signal);
      if (step.kind === "held" || !free()) {
        if (step.kind === "held") plugin.heldBy = step.volumes;
        if (this.#announced.size > 0) await this.#endAnnouncement(signal);
        return;
      }
      written = true;
      const migrated = this.#migratedNow();
      if (plugin.wanted === "csi") migrated.add(plugin.inTreeName);
      else migrated.delete(plugin.inTreeName);
      await this.#csiNode.setMigratedPlugins(migrated, signal);
      await this.#endAnnouncement(signal);
      this.#take(plugin, step);
      written = false;
      this.#event("Normal", "VolumeMigrationSwitched", switchedMessage(plugin));
    } finally {
      // A write whose outcome is unknown keeps the plugin's volumes waiting until it is repeated.
      plugin.changing = written;
      this.#report();
      this.#inHand?.redecide();
    }
  }

  #migratedNow(): Set<string> {
    return new Set(this.#plugins.filter(({ path }) => path === "csi").map(({ inTreeName }) => inTreeName));
  }

  /** Brings condition and events up to date. */
  #report(): void {
    const before = this.#condition;
    const condition = this.#conditionNow(before);
    if (condition.status === before.status && condition.message === before.message) return;
    this.#condition = condition;
    if (this.#condition.status === "True" && before.status !== "True") {
      this.#event("Warning", migrationPendingCondition, this.#condition.message ?? "");
    }
    this.#onChange();
  }

  #conditionNow(before: NodeCondition | undefined): NodeCondition {
    const held = this.#plugins.filter(({ path, wanted }) => path !== wanted);
    const status = held.length > 0 ? "True" : "False";
    const now = `${this.#env.clock.now().toISOString().slice(0, 19)}Z`;
    return {
      type: migrationPendingCondition,
      status,
      reason: held.length > 0 ? "VolumesOnOldPath" : "NothingPending",
      message:
        held.length > 0
          ? held.map(heldMessage).join("; ")
          : "every plugin is on the path that the gates want",
      lastHeartbeatTime: now,
      lastTransitionTime: before?.status === status ? (before.lastTransitionTime ?? now) : now,
    };
  }

  #event(type: "Normal" | "Warning", reason: string, message: string): void {
    const { nodeName } = this.#options;
    // The UID of a Node in its kubelet's events is its name, as kubectl describe expects.
    const node = {
      apiVersion: apiVersionOf(resources.nodes),
      kind: resources.nodes.kind,
      metadata: { name: nodeName, uid: nodeName },
    };
    this.#events.event(node, type, reason, message);
  }
}

/** The gates with each plugin's own gate as its way in force demands. */
function gatesInForce(gates: FeatureGates, plugins: readonly PluginState[]): FeatureGates {
  const byGate = new Map(plugins.map((plugin) => [plugin.gate, plugin]));
  return {
    enabled(name) {
      if (name === "CSIMigration") return true;
      const plugin = byGate.get(name);
      return plugin === undefined ? gates.enabled(name) : plugin.path === "csi";
    },
  };
}

function heldMessage({ inTreeName, path, wanted, heldBy }: PluginState): string {
  const shown = heldBy.slice(0, 3).join(", ");
  const more = heldBy.length > 3 ? ` and ${heldBy.length - 3} more` : "";
  return `${inTreeName} stays on ${path} although the gates want ${wanted}, until these volumes are unmounted and detached (drain the node): ${shown}${more}`;
}

function switchedMessage({ inTreeName, path }: PluginState): string {
  return `${inTreeName} changed over to ${path}: none of its volumes was left on the other path`;
}
