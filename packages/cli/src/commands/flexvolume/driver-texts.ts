/** Flexvolume drivers and their checks as text for people. */
import type { FlexVolumeCheck, ListedFlexVolumeDriver } from "@longshore/volumes";
import pc from "picocolors";
import { table } from "../../terminal.ts";

/** The installed drivers, and under them why some do not work. */
export function driversText(drivers: readonly ListedFlexVolumeDriver[], directory: string): string {
  if (drivers.length === 0) return `no Flexvolume drivers in ${directory}\n`;
  const rows = drivers.map(({ driver, capabilities }) => [
    driver,
    capabilities === undefined ? pc.red("broken") : "ready",
    capabilities === undefined ? "-" : enabled(capabilities),
  ]);
  const problems = drivers.filter(({ problem }) => problem !== "").map(({ problem }) => `${problem}\n`);
  const list = table([["DRIVER", "STATE", "CAPABILITIES"], ...rows]);
  return problems.length === 0 ? list : `${list}\n${problems.join("")}`;
}

function enabled(capabilities: object): string {
  const names = Object.entries(capabilities).flatMap(([name, is]) => (is === true ? [name] : []));
  return names.length === 0 ? "none" : names.join(", ");
}

const marks = { passed: pc.green("✓"), failed: pc.red("✗"), skipped: "-" } as const;

/** One check on a line. */
export function checkLine({ check, outcome, message }: FlexVolumeCheck): string {
  return `${marks[outcome]} ${check}${message === "" ? "" : `: ${message}`}\n`;
}

/** How many checks have ended how. */
export function checksSummary(checks: readonly FlexVolumeCheck[]): string {
  const count = (outcome: FlexVolumeCheck["outcome"]) =>
    checks.filter((one) => one.outcome === outcome).length;
  return `${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped\n`;
}
