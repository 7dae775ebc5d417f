/** Preflight of the driver's VolumeAttachments and of the attacher that serves them. Pure. */
import type { Lease, Stored, VolumeAttachment } from "@longshore/kube";
import type { Finding, PreflightView } from "./finding.ts";
import { stuckAfterMs } from "./pod-findings.ts";

/** Attachments of the driver that fail, or do not go. */
export function attachmentFindings({ subject, seen, toCross }: PreflightView): Finding[] {
  return seen.attachments
    .filter((va) => va.spec.attacher === subject.driverName && toCross.has(va.spec.nodeName))
    .flatMap((va) => problemOf(va, seen.now) ?? []);
}

function problemOf(va: Stored<VolumeAttachment>, now: Date): Finding | undefined {
  const object = `VolumeAttachment ${va.metadata.name}`;
  const where = `on node ${va.spec.nodeName}`;
  const since = va.metadata.deletionTimestamp;
  const detachError = va.status?.detachError?.message;
  if (since !== undefined) {
    const isStuck = now.getTime() - Date.parse(since) >= stuckAfterMs;
    return {
      severity: isStuck ? "blocker" : "warning",
      object,
      field: detachError === undefined ? "metadata.deletionTimestamp" : "status.detachError",
      reason: `it is being detached ${where} since ${since}${detachError === undefined ? "" : `: ${detachError}`}`,
      remedy: "see the logs of the driver's controller and of its attacher, and wait until it is gone",
    };
  }
  const attachError = va.status?.attached === true ? undefined : va.status?.attachError?.message;
  if (attachError === undefined) return undefined;
  return {
    severity: "warning",
    object,
    field: "status.attachError",
    reason: `the driver fails to attach the volume ${where}: ${attachError}`,
    remedy: "see the logs of the driver's controller; volumes that are carried over would fare alike",
  };
}

/** An attacher that was elected and no longer renews its Lease. Source: CSI sidecars, leader election. */
export function attacherFindings({ subject, seen }: PreflightView): Finding[] {
  const name = `external-attacher-leader-${subject.driverName.replaceAll(/[^a-zA-Z0-9-]/g, "-")}`;
  return seen.leases
    .filter((lease) => lease.metadata.name === name && hasLapsed(lease, seen.now))
    .map(({ metadata, spec }) => ({
      severity: "blocker",
      object: `Lease ${metadata.namespace ?? "default"}/${metadata.name}`,
      field: "spec.renewTime",
      reason: `no attacher of ${subject.driverName} has renewed it since ${spec?.renewTime}: nothing would be attached`,
      remedy: "bring the driver's controller back, or delete the Lease if another attacher serves the driver",
    }));
}

/** A holder that stopped in good order leaves no holderIdentity. */
function hasLapsed(lease: Lease, now: Date): boolean {
  const { renewTime, leaseDurationSeconds = 15, holderIdentity = "" } = lease.spec ?? {};
  if (renewTime === undefined || holderIdentity === "") return false;
  return now.getTime() - Date.parse(renewTime) > leaseDurationSeconds * 1000 + stuckAfterMs;
}
