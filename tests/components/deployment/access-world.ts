/**
 * A component under its own service account: what a cycle of its work needs. Cycles know only this, so that the same
 * ones run on the embedded server under a virtual clock and on a real one.
 */
import type { CsiServices } from "@longshore/csi";
import type { AccessComponent, DeployOptions } from "@longshore/deployment";
import type { KubeClient } from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import type { SidecarEnv } from "@longshore/sidecars";
import type { FakeCloud } from "@longshore/testing/sidecars";

/** Where the deployment under test is, and its secrets. */
export const accessNames = {
  driver: "ebs.csi.aws.com",
  namespace: "driver-system",
  secretNamespace: "driver-secrets",
  secret: "cloud-key",
} as const;

/** What a cycle works with. */
export interface AccessWorld {
  /** The administrator: plays users and the controllers of the control plane. */
  readonly admin: KubeClient;
  readonly cloud: FakeCloud;
  readonly signal: AbortSignal;
  /** The seams of the component, with the client of its own account. */
  readonly env: SidecarEnv;
  /** Starts the component; it is stopped at the end of the cycle, or by the cycle itself. */
  start(component: Component): Component;
  /** Waits for the condition to give something other than undefined or false. Fails at once when anything was refused. */
  eventually<T>(what: string, condition: () => Promise<T | undefined | false>): Promise<T>;
  /** Lets time pass, in milliseconds. */
  pause(ms: number): Promise<void>;
}

/** A whole cycle of a component's work. */
export interface AccessCycle {
  readonly name: string;
  readonly component: AccessComponent;
  readonly deploy: Partial<DeployOptions>;
  /** The driver; default one that makes and attaches volumes. */
  readonly services?: (cloud: FakeCloud) => CsiServices;
  /** The oldest Kubernetes that serves what it needs, by minor version; default all. */
  readonly sinceMinor?: number;
  run(world: AccessWorld): Promise<void>;
}
