/**
 * Problems that block or delay a crossing, found before anything is changed: a pure function of what
 * was observed. Each finding names the object, the field and the remedy.
 *
 * A blocker would keep the crossing from its end, or lose something; a warning may pass by itself, or costs time.
 */
import { translateInTreeInlineVolumeToCSI, translateInTreePVToCSI } from "@longshore/translation";
import { attacherFindings, attachmentFindings } from "./attachment-findings.ts";
import { budgetFindings } from "./budget-findings.ts";
import type { CrossingObservation } from "./crossing-observation.ts";
import { nodesToCross } from "./crossing-steps.ts";
import type { CrossingDirection, CrossingSubject } from "./crossing-subject.ts";
import type { Finding, PreflightView } from "./finding.ts";
import { volumesOfDriver } from "./marks.ts";
import { nodeFindings } from "./node-findings.ts";
import { inlineVolumesOf, isVolumeOfPlugin, nameOf, volumeIndex } from "./pod-facts.ts";
import { driverPodFindings, podFindings } from "./pod-findings.ts";

/** All findings, blockers first. */
export function preflightFindings(
  subject: CrossingSubject,
  direction: CrossingDirection,
  seen: CrossingObservation,
  options: { readonly force?: boolean } = {},
): Finding[] {
  const view = { subject, direction, seen, toCross: nodesToCross(subject, direction, seen) };
  const volumes = volumeIndex(seen.claims, seen.volumes);
  const findings = [
    ...nodeFindings(view),
    ...translationFindings(view),
    ...podFindings(view, volumes, options.force === true),
    ...budgetFindings(view),
    ...driverPodFindings(view),
    ...attacherFindings(view),
    ...attachmentFindings(view),
    ...(direction === "rollback" ? stayingFindings(view) : []),
  ];
  const rank = (finding: Finding) => (finding.severity === "blocker" ? 0 : 1);
  // The sort is stable: findings of one severity keep the order of the list above.
  return findings.sort((a, b) => rank(a) - rank(b));
}

/** Volumes that were made meanwhile: they stay with the driver. */
function stayingFindings({ subject, seen }: PreflightView): Finding[] {
  return volumesOfDriver(subject, seen.volumes).map((name) => ({
    severity: "warning",
    object: `PersistentVolume ${name}`,
    field: "spec.csi",
    reason: `the driver ${subject.driverName} has made it, and it cannot go back to the in-tree plugin`,
    remedy:
      "keep the driver as long as it is used, or copy its data to a volume of the in-tree plugin afterwards",
  }));
}

function translationFindings({ subject, seen }: PreflightView): Finding[] {
  const findings: Finding[] = [];
  const attempt = (object: string, translate: () => unknown) => {
    try {
      translate();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const remedy = "correct the volume source, or take the volume out of use";
      findings.push({ severity: "blocker", object, reason, remedy });
    }
  };
  for (const pv of seen.volumes) {
    if (!isVolumeOfPlugin(subject, pv)) continue;
    attempt(`PersistentVolume ${pv.metadata.name}`, () => translateInTreePVToCSI(pv));
  }
  for (const pod of seen.pods) {
    for (const volume of inlineVolumesOf(subject, pod)) {
      attempt(`Pod ${nameOf(pod)}, volume ${volume.name}`, () =>
        translateInTreeInlineVolumeToCSI(volume, pod.metadata.namespace ?? "default"),
      );
    }
  }
  return findings;
}
