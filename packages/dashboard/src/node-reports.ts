/**
 * Which nodes have stopped reporting: those whose Lease is not renewed, and where there is none, whose heartbeat is old.
 * Renewals are timed as they are seen, so that clocks which differ make no node look dead.
 * Source: Kubernetes node heartbeats (Leases in kube-node-lease).
 */
import type { Lease, Node, Stored } from "@longshore/kube";
import type { Clock } from "@longshore/runtime";

/** The namespace of the nodes' Leases. */
export const nodeLeases = "kube-node-lease";

/** A Lease that was not renewed for so long, in milliseconds, is no sign of life. Source: node-monitor-grace-period. */
const leaseMs = 40_000;
/** Without a Lease a node posts its status at least every 5 minutes. */
const heartbeatMs = 6 * 60_000;

/** Follows the nodes' signs of life. */
export interface NodeReports {
  /** A Lease was seen. */
  renewed(lease: Stored<Lease>): void;
  /** A Lease is gone. */
  removed(lease: Stored<Lease>): void;
  /** The server was away: what was not heard meanwhile says nothing. */
  forgive(): void;
  /** Since when the node has not reported (RFC 3339); undefined while it does. */
  silentSince(node: Stored<Node>): string | undefined;
}

/** Makes it. */
export function nodeReports(clock: Pick<Clock, "now" | "monotonicMs">): NodeReports {
  const seen = new Map<string, { readonly renewTime: string; sinceMs: number }>();
  const ageMs = (time: string) => Math.max(0, clock.now().getTime() - Date.parse(time));
  return {
    renewed({ metadata, spec }) {
      const renewTime = spec?.renewTime;
      const before = seen.get(metadata.name);
      if (renewTime === undefined || before?.renewTime === renewTime) return;
      // The age of a lease seen for the first time can only be computed from the clocks.
      const sinceMs = clock.monotonicMs() - (before === undefined ? ageMs(renewTime) : 0);
      seen.set(metadata.name, { renewTime, sinceMs });
    },
    removed({ metadata }) {
      seen.delete(metadata.name);
    },
    forgive() {
      for (const report of seen.values()) report.sinceMs = clock.monotonicMs();
    },
    silentSince(node) {
      const report = seen.get(node.metadata.name);
      if (report !== undefined) {
        return clock.monotonicMs() - report.sinceMs >= leaseMs ? report.renewTime : undefined;
      }
      const beat = node.status?.conditions?.find((c) => c.type === "Ready")?.lastHeartbeatTime;
      return beat !== undefined && ageMs(beat) >= heartbeatMs ? beat : undefined;
    },
  };
}
