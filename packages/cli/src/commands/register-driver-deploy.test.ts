import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { allObjects, planDeployment, renderDeployment } from "@longshore/deployment";
import { deployForms } from "@longshore/testing/deployment";
import { Command } from "commander";
import { load, loadAll } from "js-yaml";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { main } from "../main.ts";
import { loadRunCommand } from "./load-run-command.ts";

let said: { out: string; err: string };
let exitCode: typeof process.exitCode;
let kubeconfig: string | undefined;
let dir: string;
beforeEach(() => {
  exitCode = process.exitCode;
  process.exitCode = undefined;
  kubeconfig = process.env.KUBECONFIG;
  delete process.env.KUBECONFIG;
  dir = mkdtempSync(join(tmpdir(), "ls-deploy-"));
  said = { out: "", err: "" };
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    said.out += String(text);
    return true;
  });
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    said.err += String(text);
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  process.exitCode = exitCode;
  if (kubeconfig !== undefined) process.env.KUBECONFIG = kubeconfig;
  rmSync(dir, { recursive: true, force: true });
});

const longshore = (line: string, ...more: readonly string[]) =>
  main(["node", "longshore", ...line.split(" "), ...more]);
const deploy = "driver deploy --name disk.csi.example.com --image registry.example.com/disk:v1";

// biome-ignore lint/suspicious/noExplicitAny: tests look into objects of any kind
type Loose = any;

describe("what is rendered runs", async () => {
  const program = new Command().exitOverride().configureOutput({ writeErr: () => {} });
  (await loadRunCommand())(program);
  const run = program.commands.find((command) => command.name() === "run");

  test.each(Object.entries(deployForms))(
    "%s: longshore takes the flags of each of its containers",
    (_, options) => {
      const plan = planDeployment({ ...options, sidecarArgs: [] });
      const lines = allObjects(renderDeployment(plan)).flatMap(({ object }) =>
        ((object as Loose).spec?.template?.spec.containers ?? [])
          .filter(({ image }: Loose) => image === plan.sidecarImage)
          .map(({ args }: Loose) => args as string[]),
      );
      expect(lines.length).toBeGreaterThan(2);
      for (const [first, verb, ...flags] of lines) {
        expect(first).toBe("run");
        const command = run?.commands.find((one) => one.name() === verb);
        expect(command, `longshore run ${verb}`).toBeDefined();
        // Where its namespace is asked for, the kubelet has put it.
        const given = flags.map((flag: string) => flag.replace("$(POD_NAMESPACE)", "here"));
        expect(command?.parseOptions(given)).toEqual({ operands: [], unknown: [] });
      }
    },
  );
});

test("-o yaml is one stream of objects, and warnings go elsewhere", async () => {
  await longshore(`${deploy} --attach --resize --secrets-cluster-wide --tolerations infra:NoSchedule`);
  const objects = loadAll(said.out) as Loose[];
  expect(objects.map(({ kind }) => kind)).toContain("StatefulSet");
  expect(objects.find(({ kind }) => kind === "CSIDriver").spec.attachRequired).toBe(true);
  expect(objects.find(({ kind }) => kind === "StatefulSet").spec.template.spec.tolerations).toEqual([
    { key: "infra", operator: "Exists", effect: "NoSchedule" },
  ]);
  expect(said.err).toMatch(/^warning: --secrets-cluster-wide: .*\n$/);
  expect(process.exitCode).toBeUndefined();
});

test("every flag of the driver reaches it, also one with dashes", async () => {
  await longshore(`${deploy} --driver-arg=--endpoint=$(CSI_ENDPOINT) --node-arg=--v=5 --no-storage-class`);
  const objects = loadAll(said.out) as Loose[];
  const driver = (kind: string) => objects.find((one) => one.kind === kind).spec.template.spec.containers[0];
  expect(driver("StatefulSet").args).toEqual(["--endpoint=$(CSI_ENDPOINT)"]);
  expect(driver("DaemonSet").args).toEqual(["--endpoint=$(CSI_ENDPOINT)", "--v=5"]);
  expect(objects.map(({ kind }) => kind)).not.toContain("StorageClass");
});

test("-o helm writes a chart once, and again only with the option that allows it", async () => {
  const chart = join(dir, "chart");
  await longshore(`${deploy} -o helm --output-dir ${chart}`);
  expect(said.out).toContain(`helm install disk-csi-example-com ${chart}`);
  expect(readdirSync(chart).sort()).toEqual(["Chart.yaml", "templates", "values.yaml"]);
  writeFileSync(join(chart, "values.yaml"), "mine: true\n");
  said.out = "";
  await longshore(`${deploy} -o helm --output-dir ${chart}`);
  expect(process.exitCode).toBe(2);
  expect(said).toEqual({ out: "", err: expect.stringMatching(/is there already: .*--force\n$/) });
  expect(readFileSync(join(chart, "values.yaml"), "utf8")).toBe("mine: true\n");
  process.exitCode = undefined;
  await longshore(`${deploy} -o helm --output-dir ${chart} --force`);
  expect(process.exitCode).toBeUndefined();
  expect(load(readFileSync(join(chart, "values.yaml"), "utf8"))).toMatchObject({
    image: "registry.example.com/disk:v1",
  });
});

test.each([
  ["no name", "driver deploy --image i", "required option '--name <name>'"],
  ["no image", "driver deploy --name a.b", "required option '--image <image>'"],
  ["a name that is none", "driver deploy --name A_b --image i", '--name: "A_b" is not a DNS name'],
  ["replicas that are none", `${deploy} --replicas many`, '--replicas: "many" is not a whole number'],
  [
    "a controller that is none",
    `${deploy} --controller job`,
    "Allowed choices are statefulset, deployment, daemonset",
  ],
  ["a label that is none", `${deploy} --node-selector infra`, '--node-selector: "infra" is not a pair'],
  ["a taint that is none", `${deploy} --tolerations =x`, '--tolerations: "=x" is not a toleration'],
  ["a class that is none", `${deploy} --storage-class fast:ssd`, '--storage-class: "ssd" is not a pair'],
  ["a chart without a place", `${deploy} -o helm`, "--output-dir: where is the chart"],
  ["a place without a chart", `${deploy} --output-dir /x`, "--output-dir: is for -o helm"],
  ["a format that is none", `${deploy} -o json`, "Allowed choices are yaml, helm"],
  ["no cluster to upgrade", "driver upgrade --name a.b", "--kubeconfig: which cluster?"],
  ["no cluster to remove from", "driver remove --name a.b", "--kubeconfig: which cluster?"],
  ["a name to remove that is none", "driver remove --name A", '--name: "A" is not a DNS name'],
  [
    "a deadline that is none",
    "driver upgrade --name a.b --timeout soon",
    '--timeout: "soon" is not a duration',
  ],
])("%s is wrong usage", async (_, line, words) => {
  await longshore(line);
  expect(said.err).toContain(words);
  expect(said.out).toBe("");
  expect(process.exitCode).toBe(2);
});

test("a kubeconfig that is not there is said", async () => {
  await longshore(`driver upgrade --name a.b --image i --kubeconfig ${dir}/none`);
  expect(said.err).toContain(`${dir}/none`);
  expect(process.exitCode).toBe(1);
});
