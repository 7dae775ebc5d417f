/** Snapshots: whose driver is gone, and those of in-tree volumes, which no driver takes before the crossing. */
import type { AssessView } from "../assess-view.ts";
import { stateOf } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";
import { subjectOf } from "../inventory.ts";

/** Findings about VolumeSnapshots and VolumeSnapshotContents. */
export function snapshotRules(view: AssessView): RuleFinding[] {
  return [...withoutDriver(view), ...ofInTreeVolumes(view)];
}

function withoutDriver(view: AssessView): RuleFinding[] {
  if (view.inventory.unread.has("CSINode")) return [];
  return view.inventory.snapshotContents.flatMap((content) => {
    const { driver } = content.spec;
    if (typeof driver !== "string" || view.registered.has(driver)) return [];
    return [
      found("LS1403", {
        object: subjectOf("VolumeSnapshotContent", content),
        field: "spec.driver",
        evidence: `its driver is ${driver}, and no node has that driver`,
      }),
    ];
  });
}

function ofInTreeVolumes(view: AssessView): RuleFinding[] {
  const { snapshots, claims } = view.inventory;
  if (snapshots.length === 0) return [];
  const volumeOfClaim = new Map(
    claims.map(({ metadata, spec }) => [`${metadata.namespace}/${metadata.name}`, spec?.volumeName]),
  );
  return snapshots.flatMap((snapshot) => {
    const claim = snapshot.spec.source?.persistentVolumeClaimName;
    const volume = volumeOfClaim.get(`${snapshot.metadata.namespace}/${claim}`) ?? "";
    const gates = view.translated.get(volume)?.gates;
    if (gates === undefined || stateOf(view, gates) !== "in-tree") return [];
    if (snapshot.status?.readyToUse === true) return [];
    return [
      found("LS1404", {
        object: subjectOf("VolumeSnapshot", snapshot),
        field: "spec.source.persistentVolumeClaimName",
        evidence: `PersistentVolume ${volume} is served by ${gates.inTreeName}, which takes no snapshots`,
      }),
    ];
  });
}
