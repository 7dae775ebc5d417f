/** What `longshore status` prints for people. */
import type { ClusterStatus, CrossingsRead, VolumeStatus, VolumeStory } from "@longshore/migration";
import { textTable } from "../text-table.ts";
import { crossingRows } from "./crossing-rows.ts";

const listed = (words: readonly string[]): string => (words.length === 0 ? "-" : words.join(", "));

/** The cluster as tables: its crossings, nodes, volumes, and who holds which disk. */
export function clusterTables(
  { nodes, volumes, strays, gaps }: ClusterStatus,
  { crossings, gap }: CrossingsRead = { crossings: [] },
): string {
  const nodeRows = nodes.map(({ name, ready, cordoned, migratedPlugins, drivers }) => [
    name,
    ready ? "yes" : "no",
    cordoned === undefined ? "-" : cordoned === "crossing" ? "by a crossing" : "by someone else",
    listed(migratedPlugins),
    listed(drivers),
  ]);
  const pendingRows = nodes.flatMap(({ name, migrationPending }) =>
    migrationPending === undefined ? [] : [[name, migrationPending]],
  );
  const volumeRows = volumes.map((volume) => [
    volume.name,
    volume.phase ?? "-",
    volume.claim ?? "-",
    volume.plugin ?? volume.driver ?? "other",
    listed(pathsOf(volume)),
  ]);
  const crossed = crossings.flatMap((crossing) => crossingRows(crossing, nodes.length));
  const strayRows = strays.map(({ disk, holder }) => [`no volume: ${disk}`, ...holderCells(holder)]);
  const parts = [
    ...(crossed.length === 0 ? [] : [textTable(crossed)]),
    textTable([["NODE", "READY", "CORDONED", "MIGRATED", "DRIVERS"], ...nodeRows]),
    ...(pendingRows.length === 0 ? [] : [textTable([["NODE", "NOT AS ITS GATES WANT"], ...pendingRows])]),
    textTable([["VOLUME", "PHASE", "CLAIM", "PLUGIN", "USED BY"], ...volumeRows]),
    textTable([
      ["DISK OF", "HELD ON", "BY", "SINCE", "ATTACHED", "BECAUSE"],
      ...volumes.flatMap(holderRows),
      ...strayRows,
    ]),
    ...[...gaps, ...(gap === undefined ? [] : [gap])].map((gap) => textTable([[`not read: ${gap}`]])),
  ];
  return parts.join("\n");
}

function pathsOf({ uses }: VolumeStatus): string[] {
  return uses.map(({ pod, nodeName, path }) => `${pod} on ${nodeName} (${path})`);
}

function holderRows({ name, holders }: VolumeStatus): string[][] {
  return holders.map((holder) => [name, ...holderCells(holder)]);
}

function holderCells({ nodeName, by, since, attached, because }: VolumeStatus["holders"][number]): string[] {
  return [
    nodeName,
    by,
    since ?? "-",
    attached ? "yes" : "no",
    because.length === 0 ? "-" : because.join("; "),
  ];
}

/** The story of one volume, for people. */
export function storyText(story: VolumeStory): string {
  const { objects, events, gaps } = story;
  const facts = [
    ["Volume", story.name],
    ["Phase", story.phase ?? "-"],
    ["Claim", story.claim ?? "-"],
    ["Plugin", story.plugin ?? "-"],
    ["Driver", story.driver ?? "-"],
    ["Handle", story.handle ?? "-"],
    ["Used by", listed(pathsOf(story))],
  ];
  const objectRows = objects.map(({ object, finalizers, deletingSince }) => [
    object,
    deletingSince ?? "-",
    listed(finalizers),
  ]);
  const eventRows = events.map(({ at, type, object, reason, message, count }) => [
    at,
    type,
    object,
    reason,
    `${message}${count > 1 ? ` (${count} times)` : ""}`,
  ]);
  return [
    textTable(facts),
    textTable([["DISK OF", "HELD ON", "BY", "SINCE", "ATTACHED", "BECAUSE"], ...holderRows(story)]),
    textTable([["OBJECT", "DELETED SINCE", "FINALIZERS"], ...objectRows]),
    textTable([["AT", "TYPE", "OBJECT", "REASON", "MESSAGE"], ...eventRows]),
    ...gaps.map((gap) => textTable([[`not read: ${gap}`]])),
  ].join("\n");
}
