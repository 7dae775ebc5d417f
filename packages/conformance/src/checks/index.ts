/** All checks of the suite, in the order in which they run. */
import type { Check } from "../check.ts";
import { contentSourceChecks } from "./content-source-checks.ts";
import { controllerCapabilityChecks } from "./controller-capability-checks.ts";
import { controllerPublishChecks, controllerUnpublishChecks } from "./controller-publish-checks.ts";
import { createVolumeAgainChecks } from "./create-volume-again-checks.ts";
import { createVolumeChecks } from "./create-volume-checks.ts";
import { deleteVolumeChecks } from "./delete-volume-checks.ts";
import { expandVolumeChecks, modifyVolumeChecks } from "./expand-volume-checks.ts";
import { getCapacityChecks } from "./get-capacity-checks.ts";
import { groupSnapshotChecks } from "./group-snapshot-checks.ts";
import { identityChecks } from "./identity-checks.ts";
import { listSnapshotsChecks } from "./list-snapshots-checks.ts";
import { getVolumeChecks, listVolumesChecks } from "./list-volumes-checks.ts";
import { nodeDataChecks } from "./node-data-checks.ts";
import { nodeInfoChecks } from "./node-info-checks.ts";
import { nodePublishChecks } from "./node-publish-checks.ts";
import { nodeStageChecks, nodeUnstageChecks } from "./node-stage-checks.ts";
import { nodeExpandChecks, nodeStatsChecks } from "./node-stats-checks.ts";
import { nodeUnpublishChecks } from "./node-unpublish-checks.ts";
import { protocolChecks } from "./protocol-checks.ts";
import { secretChecks } from "./secret-checks.ts";
import { createSnapshotChecks, deleteSnapshotChecks, getSnapshotChecks } from "./snapshot-checks.ts";
import { snapshotMetadataChecks } from "./snapshot-metadata-checks.ts";
import { validateChecks } from "./validate-checks.ts";

const declared: readonly Check[] = [
  ...identityChecks,
  ...controllerCapabilityChecks,
  ...createVolumeChecks,
  ...deleteVolumeChecks,
  ...validateChecks,
  ...listVolumesChecks,
  ...getVolumeChecks,
  ...getCapacityChecks,
  ...controllerPublishChecks,
  ...controllerUnpublishChecks,
  ...createVolumeAgainChecks,
  ...expandVolumeChecks,
  ...modifyVolumeChecks,
  ...listSnapshotsChecks,
  ...createSnapshotChecks,
  ...deleteSnapshotChecks,
  ...getSnapshotChecks,
  ...contentSourceChecks,
  ...secretChecks("controller"),
  ...groupSnapshotChecks,
  ...nodeInfoChecks,
  ...nodeStageChecks,
  ...nodeUnstageChecks,
  ...nodePublishChecks,
  ...nodeUnpublishChecks,
  ...nodeStatsChecks,
  ...nodeExpandChecks,
  ...nodeDataChecks,
  ...secretChecks("node"),
  ...snapshotMetadataChecks,
];

/** What a CO never sends has ended drivers: these come last, so that a driver that dies of one has been looked at in all else. */
const isRisky = ({ id }: Check) => id.includes(".negative-");

/** Every check; one that others build on comes before them, and those that only look at all answers come at the end. */
export const checks: readonly Check[] = inOrder([
  ...declared.filter((check) => !isRisky(check)),
  ...declared.filter(isRisky),
  ...protocolChecks,
]);

/** The same order, but for what must come after others that are declared below it. */
function inOrder(all: readonly Check[]): readonly Check[] {
  const byId = new Map(all.map((check) => [check.id as string, check]));
  const sorted = new Set<Check>();
  const visit = (check: Check, path: readonly string[]) => {
    if (sorted.has(check)) return;
    if (path.includes(check.id))
      throw new Error(`checks wait for each other: ${[...path, check.id].join(" → ")}`);
    for (const id of check.after ?? []) {
      const earlier = byId.get(id);
      if (earlier === undefined) throw new Error(`${check.id} comes after ${id}, which is not a check`);
      visit(earlier, [...path, check.id]);
    }
    sorted.add(check);
  };
  for (const check of all) visit(check, []);
  return [...sorted];
}
