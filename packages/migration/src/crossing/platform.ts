/**
 * The port through which a crossing changes how a cluster's own components run. Everything else a
 * crossing does (cordon, drain, wait, check) it does through the Kubernetes API, alike everywhere.
 */

import type { CrossingDirection } from "./crossing-subject.ts";
import type { Finding } from "./finding.ts";
import type { Wait } from "./wait.ts";

/** Values of feature gates by name; a gate left out has its default. */
export type GateValues = Readonly<Record<string, boolean>>;

/**
 * Sets feature gates and restarts what reads them. Every method may be called again after a crash
 * of the caller: asking for what is already so changes nothing. How long to wait is the caller's to say, by its signal.
 */
export interface Platform {
  /** `embedded`, `manual`, `kubeadm`, …; part of the journal, so that a run is resumed on the right platform. */
  readonly name: string;
  /** Gates that the control plane (attach-detach, persistent-volume, expand, scheduler) runs with now; undefined while it is down. */
  controlPlaneGates(signal: AbortSignal): Promise<GateValues | undefined>;
  /** Makes these values (over the others) the control plane's and restarts it; resolves once they are in effect. */
  setControlPlaneGates(
    values: GateValues,
    signal: AbortSignal,
    onWaiting?: (wait: Wait) => void,
  ): Promise<void>;
  /** Gates that the node's agent runs with now; undefined while it is down or unknown. */
  nodeGates(nodeName: string, signal: AbortSignal): Promise<GateValues | undefined>;
  /** Makes these values (over the others) the node's and restarts its agent; resolves once they are in effect. */
  setNodeGates(
    nodeName: string,
    values: GateValues,
    signal: AbortSignal,
    onWaiting?: (wait: Wait) => void,
  ): Promise<void>;
  /** True when the platform itself cordons, drains and restarts or replaces the nodes, one after the other: a crossing then only waits for each. */
  readonly rollsNodes?: boolean;
  /** Gates that the node's agent will run with once it is next started; those it runs with where this is left out. */
  configuredNodeGates?(nodeName: string, signal: AbortSignal): Promise<GateValues | undefined>;
  /**
   * Problems of the platform itself that block a crossing in the direction, found in the preflight; `onWaiting` receives what it
   * waits for meanwhile. Optional.
   */
  findings?(
    signal: AbortSignal,
    onWaiting?: (wait: Wait) => void,
    direction?: CrossingDirection,
  ): Promise<readonly Finding[]>;
  /**
   * Called when a crossing begins or ends the part for which a node (or the cluster) must show no in-tree calls.
   * Optional.
   */
  noteMark?(mark: CrossingMark, signal: AbortSignal): Promise<void>;
}

/** A moment of a crossing, for records of it (the disk cloud's call log, a dashboard). */
export type CrossingMark =
  | { readonly kind: "nodeMigrated" | "nodeReturning"; readonly plugin: string; readonly nodeName: string }
  | { readonly kind: "clusterMigrated" | "clusterReturning" | "clusterReturned"; readonly plugin: string };
