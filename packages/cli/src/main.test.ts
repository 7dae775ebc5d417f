import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { main } from "./main.ts";

let said: { out: string; err: string };
let exitCode: typeof process.exitCode;
beforeEach(() => {
  exitCode = process.exitCode;
  process.exitCode = undefined;
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
});

const longshore = (...args: readonly string[]) => main(["node", "longshore", ...args]);

test.each([
  ["an unknown verb", ["clutser"], "Did you mean cluster?"],
  ["an unknown verb below one", ["cluster", "stauts"], "Did you mean status?"],
  ["an unknown option", ["cluster", "up", "--prot", "1"], "Did you mean --port?"],
  ["a missing option", ["apiserver", "backup", "--out", "f"], "required option '--data-dir <dir>'"],
  ["neither option nor argument", ["migrate"], "--plugin: which plugin?"],
  ["a missing argument", ["cluster", "node", "restart"], "missing required argument 'node'"],
  ["an argument too many", ["dashboard", "here"], "too many arguments"],
  ["an unknown plugin", ["migrate", "--plugin", "ebs"], "choose one of aws-ebs, gce-pd"],
  ["a number that is none", ["cluster", "up", "--nodes", "many"], '--nodes: "many" is not a whole number'],
  ["a port that is none", ["dashboard", "--port", "65536"], "is not a whole number from 0 to 65535"],
  ["a seed that is none", ["sim", "--seed", "1.5"], '--seed: "1.5" is not a whole number'],
  ["steps without a trace", ["sim", "--until", "9"], "--until: without --trace nothing would be printed"],
  ["a timeline of many", ["sim", "--seeds", "2", "--timeline", "x"], "--timeline: it is about one run"],
  ["nodes too many", ["sim", "skew", "--nodes", "9"], '--nodes: "9" is not a whole number from 1 to 3'],
  ["an order that is none", ["sim", "skew", "--orders", "700..721"], "is not a whole number from 700 to 720"],
  ["a part that is none", ["sim", "skew", "--part", "all"], "combinations, orders, versions"],
  ["gates too many", ["sim", "skew", "--plugin", "all", "--part", "orders"], "take fewer"],
  ["an unknown shell", ["completion", "ksh"], "bash, zsh, fish"],
  ["an unknown form", ["translate", "-f", "-", "--to", "intree"], "csi, in-tree"],
  ["a component's missing option", ["run", "apiserver"], "--data-dir is required"],
  ["a sidecar's unknown flag", ["run", "attacher", "-timeot=5s"], "Did you mean --timeout?"],
  [
    "a flag's value that cannot be",
    ["run", "sidecars", "--attacher-timeout=5"],
    "write a duration such as 15s",
  ],
  [
    "a flag without its value",
    ["run", "liveness-probe", "--csi-address"],
    "flag --csi-address needs a value",
  ],
  [
    "two places for metrics",
    ["run", "node-driver-registrar", "--health-port=1", "--http-endpoint=:2"],
    "only one of",
  ],
  ["a word among flags", ["run", "attacher", "--leader-election", "true"], "too many arguments"],
  ["no verb", [], "Usage: longshore"],
] as const)("%s is wrong usage", async (_name, args, words) => {
  await longshore(...args);
  expect(said.err).toContain(words);
  expect(said.out).toBe("");
  expect(process.exitCode).toBe(2);
});

test.each([
  "cluster status",
  "cluster kubeconfig",
  "cluster gates",
  "cluster node restart node-1",
  "migrate --plugin aws-ebs",
  "rollback --plugin aws-ebs",
  "dashboard",
])("where there is no cluster, %s fails with the remedy", async (line) => {
  await longshore(...line.split(" "), "--dir", "/nowhere/at/all");
  expect(said.err).toBe(
    'longshore: no cluster in /nowhere/at/all: start one with "longshore cluster up --dir /nowhere/at/all"\n',
  );
  expect(process.exitCode).toBe(1);
});

test("the version and every help page are no failure", async () => {
  await longshore("--version");
  expect(said.out).toMatch(/^\d+\.\d+\.\d+\n$/);
  for (const path of [[], ["cluster"], ["cluster", "up"], ["migrate"], ["run", "apiserver"], ["sim"]]) {
    said.out = "";
    await longshore(...path, "--help");
    expect(said.out).toContain(`Usage: longshore ${path.join(" ")}`.trim());
    expect(process.exitCode).toBe(0);
  }
});

test("every option and verb says what it is", async () => {
  const { createProgram } = await import("./main.ts");
  const silent: string[] = [];
  const look = (command: Awaited<ReturnType<typeof createProgram>>, path: string) => {
    if (command.description() === "") silent.push(path);
    for (const option of command.options) {
      if (option.description === "" && !option.hidden) silent.push(`${path} ${option.flags}`);
    }
    for (const verb of command.commands) look(verb, `${path} ${verb.name()}`);
  };
  look(await createProgram(), "longshore");
  expect(silent).toEqual([]);
});

test("one verb alone is loaded as it is among all", async () => {
  const { createProgram } = await import("./main.ts");
  const all = await createProgram();
  for (const verb of all.commands) {
    const alone = await createProgram(verb.name());
    expect(alone.commands.map((command) => command.name())).toContain(verb.name());
  }
  expect((await createProgram("sim")).commands).toHaveLength(1);
});

test("every process of a cluster can be run", async () => {
  const { processKinds } = await import("@longshore/local/processes");
  const { clusterProcesses } = await import("./commands/register-components.ts");
  expect(["apiserver", ...clusterProcesses]).toEqual(processKinds);
});

test.each([["help"], ["--help"]])(
  "run %s lists components, sidecars and those of distributions",
  async (word) => {
    await longshore("run", word);
    for (const verb of ["apiserver", "reference-driver", "attacher", "sidecars", "migration-controller"]) {
      expect(said.out).toMatch(new RegExp(`^  ${verb} `, "m"));
    }
  },
);

test.each([["--json"], ["-o", "json"]])("gates %s gives JSON on standard output", async (...form) => {
  await longshore("gates", "--kubernetes", "1.22", "--plugin", "cinder", ...form);
  expect(JSON.parse(said.out)).toMatchObject({ kubernetes: "1.22" });
});

test("a Node that is too old is named, with the one that is needed", () => {
  const old = `data:text/javascript,Object.defineProperty(process.versions,"node",{value:"18.20.1"})`;
  const bin = fileURLToPath(new URL("../bin/longshore.js", import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, ["--import", old, bin, "--version"], {
    encoding: "utf8",
  });
  expect(stderr).toBe("longshore needs Node 20.19 or newer; this is Node 18.20.1\n");
  expect(status).toBe(2);
});

test("-o is a form in every verb, and --json is there where that form is", async () => {
  const { createProgram } = await import("./main.ts");
  const seen: string[] = [];
  const walk = (command: Command, path: string) => {
    const option = (long: string) => command.options.find((each) => each.long === long);
    const output = option("--output");
    // The plan is a file that other verbs read.
    if (output !== undefined && path !== "longshore plan") {
      seen.push(path);
      expect(output.flags, path).toMatch(/^-o, --output <form(\[=file\])?>$/);
      const forms = output.argChoices ?? output.description;
      expect([path, option("--json") !== undefined]).toEqual([path, forms.includes("json")]);
    }
    for (const verb of command.commands) walk(verb, `${path} ${verb.name()}`);
  };
  walk(await createProgram(), "longshore");
  expect(seen.length).toBeGreaterThan(12);
});
