/**
 * A cluster that uses four plugins at once, of each way in which volumes come to a node: attached by the controller with a
 * number (Azure Disk), opened as a share by several pods (Azure File), attached by the node (Portworx), mapped by the node with
 * a key (RBD). One after the other is carried to CSI and back; what writers have acknowledged is there.
 */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type DemoReport, isProof } from "@longshore/local";
import { afterAll, expect, test } from "vitest";
import { machineStateBelow, nothing } from "./support/machine-state.ts";
import { longshore } from "./support/run-command.ts";
import { shortDirectory } from "./support/test-cluster.ts";

const plugins = ["azure-disk", "azure-file", "portworx-volume", "rbd"];
const dir = shortDirectory();
afterAll(() => rmSync(dir, { recursive: true, force: true }));

test("four plugins cross and come back, and nothing is lost nor left", { timeout: 400_000 }, async () => {
  const file = join(dir, "report.json");
  const cluster = join(dir, "c");
  const flags = plugins.flatMap((plugin) => ["--plugin", plugin]);
  const outcome = await longshore("demo", ...flags, "--dir", cluster, "--json", file);
  expect(outcome).toMatchObject({ code: 0 });
  const report = JSON.parse(readFileSync(file, "utf8")) as DemoReport;
  expect(isProof(report), JSON.stringify(report)).toBe(true);
  expect(report.plugins.map(({ plugin }) => plugin)).toEqual(plugins);
  const shares = report.volumes.filter(({ plugin }) => plugin === "azure-file");
  expect(new Set(shares.map(({ pv }) => pv)).size).toBe(1);
  expect(shares.length).toBeGreaterThan(1);
  expect(machineStateBelow(cluster)).toEqual(nothing);
});
