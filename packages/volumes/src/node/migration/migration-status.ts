/** What a node says of its migration: why it is not Ready, the condition, events. Source: docs/behaviour/node-agent.md 2.4. */
import { apiVersionOf, type EventRecorder, type NodeCondition, resources } from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import { migrationPendingCondition } from "@longshore/storage";
import { migrationCondition, type PluginPath, switchedMessage } from "./migration-condition.ts";

/** What the status works with. */
export interface MigrationStatusEnv {
  readonly clock: Clock;
  readonly nodeName: string;
  readonly events: Pick<EventRecorder, "event">;
  /** Called when error or condition changed. */
  readonly onChange: () => void;
}

/** Error and condition of one node. */
export class MigrationStatus {
  readonly #env: MigrationStatusEnv;
  #error: string | undefined = "CSINode is not yet initialized";
  #condition: NodeCondition;

  constructor(env: MigrationStatusEnv) {
    this.#env = env;
    this.#condition = migrationCondition([], undefined, env.clock.now());
  }

  /** Not undefined: why the node is not Ready. */
  get error(): string | undefined {
    return this.#error;
  }

  get condition(): NodeCondition {
    return this.#condition;
  }

  /** The annotation could not be put in place, for this reason. */
  notInitialised(reason: string): void {
    this.#error = `Failed to initialize CSINode: ${reason}`;
    this.#env.onChange();
  }

  /** The annotation is in place: the node may be Ready. */
  initialised(): void {
    this.#error = undefined;
    this.#env.onChange();
  }

  /** The plugin is on another way now. */
  switched(plugin: Pick<PluginPath, "inTreeName" | "path">): void {
    this.#event("Normal", "VolumeMigrationSwitched", switchedMessage(plugin));
  }

  /** Brings condition and events up to date. */
  report(plugins: readonly PluginPath[]): void {
    const before = this.#condition;
    const condition = migrationCondition(plugins, before, this.#env.clock.now());
    if (condition.status === before.status && condition.message === before.message) return;
    this.#condition = condition;
    if (condition.status === "True" && before.status !== "True") {
      this.#event("Warning", migrationPendingCondition, condition.message ?? "");
    }
    this.#env.onChange();
  }

  #event(type: "Normal" | "Warning", reason: string, message: string): void {
    const { nodeName, events } = this.#env;
    // The UID of a Node in its kubelet's events is its name, as kubectl describe expects.
    const node = {
      apiVersion: apiVersionOf(resources.nodes),
      kind: resources.nodes.kind,
      metadata: { name: nodeName, uid: nodeName },
    };
    events.event(node, type, reason, message);
  }
}
