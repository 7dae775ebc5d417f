/**
 * Writes the tables of flags in docs/guides/sidecars.md from those that the command reads.
 *
 *   tsx scripts/sidecar-flags.ts && biome format --write docs/guides
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as common from "../packages/cli/src/commands/sidecars/common-flags.ts";
import type { Flag, FlagTable } from "../packages/cli/src/commands/sidecars/flag-table.ts";
import { clusterDriverRegistrarFlags } from "../packages/cli/src/commands/sidecars/register-cluster-driver-registrar.ts";
import { livenessProbeFlags } from "../packages/cli/src/commands/sidecars/register-liveness-probe.ts";
import { nodeDriverRegistrarFlags } from "../packages/cli/src/commands/sidecars/register-node-driver-registrar.ts";
import { snapshotControllerFlags } from "../packages/cli/src/commands/sidecars/register-snapshot-controller.ts";
import {
  controllerSidecarNames,
  controllerSidecars,
  togetherFlags,
} from "../packages/cli/src/commands/sidecars/together-options.ts";

/** The guide. */
export const guide = fileURLToPath(new URL("../docs/guides/sidecars.md", import.meta.url));

const groups: readonly (readonly [string, FlagTable])[] = [
  ["All", common.processFlags],
  ["Those that talk to a driver", common.driverFlags],
  ["Those that talk to Kubernetes", common.kubeFlags],
  ["Those that elect a leader", common.leaderElectionFlags],
  ["Those with queues", common.retryFlags],
  ["Those with metrics", common.httpFlags],
];
const inGroups: FlagTable = Object.assign({}, ...groups.map(([, table]) => table));

/** What of a table is not in a group above. */
function own(table: FlagTable): FlagTable {
  return Object.fromEntries(Object.entries(table).filter(([name, flag]) => inGroups[name] !== flag));
}

/** The tables, as Markdown. */
export function flagTables(): string {
  const alone = controllerSidecarNames.flatMap((name) => Object.keys(controllerSidecars[name].flags));
  const onlyTogether = Object.entries(own(togetherFlags)).filter(([name]) => !alone.includes(name));
  const sections: (readonly [string, FlagTable])[] = [
    ...groups,
    ...controllerSidecarNames.map((name) => [`\`${name}\``, controllerSidecars[name].flags] as const),
    ["`sidecars`, beside those of each that it runs", Object.fromEntries(onlyTogether)],
    ["`snapshot-controller`", own(snapshotControllerFlags)],
    ["`node-driver-registrar`", own(nodeDriverRegistrarFlags)],
    ["`cluster-driver-registrar`", own(clusterDriverRegistrarFlags)],
    ["`liveness-probe`", own(livenessProbeFlags)],
  ];
  return sections.map(([title, table]) => `### ${title}\n\n${tableOf(table)}`).join("\n");
}

function tableOf(table: FlagTable): string {
  const entries = Object.entries(table);
  const rows = entries
    .filter(([, flag]) => flag.deprecated === undefined)
    .map(([name, flag]) => `| \`--${name}\` | ${defaultOf(flag)} | ${flag.help.replaceAll("|", "\\|")} |`);
  const obsolete = entries
    .filter(([, flag]) => flag.deprecated !== undefined)
    .map(([name]) => `\`--${name}\``);
  return [
    ...(rows.length === 0 ? [] : ["| flag | default | meaning |", "| --- | --- | --- |", ...rows, ""]),
    ...(obsolete.length === 0
      ? []
      : [`Taken, without effect and with a warning: ${obsolete.join(", ")}.`, ""]),
  ].join("\n");
}

function defaultOf(flag: Flag<unknown>): string {
  const text = flag.defaultText === "" ? "" : `\`${flag.defaultText}\``;
  return flag.referenceDefault === undefined
    ? text
    : `${text}; with \`--compat=reference\` ${flag.referenceDefault}`;
}

const [begin, end] = ["<!-- flags: tsx scripts/sidecar-flags.ts -->\n\n", "\n<!-- end of flags -->"];

/** The text with its tables as narrow as can be: how wide their columns are is the formatter's matter. */
export function narrow(text: string): string {
  return text.replace(/^\|.*\|$/gm, (row) =>
    row
      .replace(/ +\|/g, " |")
      .replace(/\| +/g, "| ")
      .replace(/\| -+(?= \|)/g, "| ---"),
  );
}

/** The guide's text with the tables of now in their place. */
export function withTables(text: string): string {
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from)
    throw new Error(`${guide} has no place for the tables: ${begin.trim()} … ${end.trim()}`);
  return text.slice(0, from) + begin + flagTables() + text.slice(to);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(guide, withTables(readFileSync(guide, "utf8")));
}
