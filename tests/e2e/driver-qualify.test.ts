/** `longshore driver qualify` as the author of a driver uses it: the author's own driver, as a command. */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { machineStateBelow, nothing } from "./support/machine-state.ts";
import { type Outcome, runProgram } from "./support/run-command.ts";
import { longshoreCommand, shortDirectory } from "./support/test-cluster.ts";

const base = shortDirectory();
afterAll(() => rmSync(base, { recursive: true, force: true }));

const topologyKey = "topology.ebs.csi.aws.com/zone";
const zones = ["{zone}", "us-east-1a", "us-east-1b", "us-east-1c"];
/** The reference driver as a user's own driver: it knows nothing of the cluster but what its command says. */
const ownDriver = [
  ...longshoreCommand.map((word) => `"${word}"`),
  "run reference-driver --mode directory --name ebs.csi.aws.com --endpoint {endpoint} --services {services}",
  "--state-dir {state-dir}/state --node-id {node-id}",
  ...zones.map((zone) => `--topology ${topologyKey}=${zone}`),
].join(" ");

/** Directories and links: it is the driver that is put to the test, not what this machine may mount. */
function qualify(...args: readonly string[]): Promise<Outcome> {
  const env = { ...process.env, LONGSHORE_UNPRIVILEGED: "1" };
  return runProgram([...longshoreCommand, "driver", "qualify", "--plugin", "aws-ebs", ...args], { env });
}

test("the user's own driver is tried, and may take over", {
  timeout: 240_000,
}, async () => {
  const file = join(base, "report.json");
  const dir = join(base, "c");
  const { code, out, err } = await qualify("--driver-cmd", ownDriver, "--json", file, "--dir", dir);
  expect(code, err + out).toBe(0);
  expect(out).toContain("ebs.csi.aws.com may take over from aws-ebs");
  const report = JSON.parse(readFileSync(file, "utf8"));
  expect(report).toMatchObject({ promotable: true, reasons: [], inTreeCalls: 0, differences: [] });
  const served = report.behaviours.filter(({ verdict }: { verdict: string }) => verdict === "driver");
  expect(served.map(({ behaviour }: { behaviour: string }) => behaviour)).toEqual([
    "provision",
    "topology",
    "attach",
    "mount",
    "reconstruction",
    "write/read",
    "expand",
    "snapshot",
    "delete",
    "inline",
    "block",
  ]);
  expect(machineStateBelow(dir)).toEqual(nothing);
  expect(existsSync(dir)).toBe(false);
});

test.each<[string, readonly string[], string]>([
  ["a command that does not say where to listen", ["--driver-cmd", "./driver"], "put {endpoint} where"],
  ["a placeholder that is none", ["--driver-cmd", "./driver {socket}"], "{socket} in the driver's command"],
  ["a quote that is not closed", ["--driver-cmd", './driver "{endpoint}'], "is not closed"],
  [
    "a program that is not there",
    ["--driver-cmd", "./none {endpoint}"],
    "cannot be started: there is no file /",
  ],
  [
    "a program of no directory of PATH",
    ["--driver-cmd", "no-such {endpoint}"],
    "no directory of PATH has no-such",
  ],
  [
    "a file that is no program",
    ["--driver-cmd", "/etc/passwd {endpoint}"],
    "not a program that this user may run",
  ],
  ["a form that is none", ["-o", "xml"], "Allowed choices are table, json"],
  ["a time that is none", ["--timeout", "soon"], '--timeout: "soon"'],
  ["a behaviour that is none", ["--skip", "provision"], '--skip: "provision" is not one of topology'],
])("%s is wrong usage, and nothing is started", async (_, args, expected) => {
  const { code, err } = await qualify(...args);
  expect(err).toContain(expected);
  expect(code).toBe(2);
});

test("a driver with another name is said to have it, in the report as well", {
  timeout: 120_000,
}, async () => {
  const other = ownDriver.replace("--name ebs.csi.aws.com", "--name other.example.com");
  const { code, out, err } = await qualify("--driver-cmd", other, "--json");
  const words = "calls itself other.example.com, but this cluster is to have ebs.csi.aws.com";
  expect(err).toContain(words);
  expect(JSON.parse(out)).toMatchObject({
    verdict: "not promotable",
    promotable: false,
    reasons: [expect.stringContaining(words)],
    behaviours: [],
  });
  expect(code).toBe(1);
});
