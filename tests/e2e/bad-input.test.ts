/**
 * Bad input, with the real command and real processes: each ends in one clear sentence with the remedy
 * and a failing exit code, and leaves nothing behind: no loop device, mount, socket or process.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { machineStateBelow, nothing } from "./support/machine-state.ts";
import { longshoreCommand } from "./support/test-cluster.ts";

const isRoot = process.getuid?.() === 0;
const base = realpathSync(mkdtempSync(join(tmpdir(), "ls-bad-")));

interface Outcome {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs the command to its end. */
function longshore(args: readonly string[], input = ""): Promise<Outcome> {
  const [program = "", ...first] = longshoreCommand;
  const child = spawn(program, [...first, ...args], { stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.end(input);
  return outcomeOf(child);
}

function outcomeOf(child: ChildProcess): Promise<Outcome> {
  let out = "";
  let err = "";
  child.stdout?.setEncoding("utf8").on("data", (text) => {
    out += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text) => {
    err += text;
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, out, err }));
  });
}

/** One line for a person: no stack, no dump, and the words that say what to do. */
function expectOneSentence(outcome: Outcome, code: number, ...words: readonly (string | RegExp)[]): void {
  expect(outcome.err).toMatch(/^[^\n]{10,700}\n$/);
  expect(outcome.err).not.toMatch(/\bat .*:\d+:\d+|\[object |undefined/);
  for (const word of words) expect(outcome.err).toMatch(word);
  expect(outcome.out).toBe("");
  expect(outcome.code).toBe(code);
}

/** What the directory and everything that names it hold. */
function stateOf(dir: string) {
  return { ...machineStateBelow(dir), files: existsSync(dir) ? readdirSync(dir).sort() : [] };
}

afterAll(() => {
  rmSync(base, { recursive: true, force: true });
  expect(machineStateBelow(base)).toEqual(nothing);
});

describe("translate", () => {
  const file = join(base, "manifest.yaml");

  test.each([
    [
      "a manifest that is not YAML",
      "kind: PersistentVolume\n  metadata: {\n",
      /line 2: it is not YAML.*; correct it/,
    ],
    [
      "a manifest that is no JSON",
      '{"kind": "PersistentVolume", ',
      /line 1: a bracket is not closed; correct it/,
    ],
  ] as const)("%s", async (_name, text, words) => {
    writeFileSync(file, text);
    for (const outcome of [
      await longshore(["translate", "-f", file]),
      await longshore(["translate", "-f", "-"], text),
    ]) {
      // What cannot be read is passed through as it is.
      expectOneSentence({ ...outcome, out: "" }, 1, words);
    }
  });

  test("a manifest that is not text", async () => {
    const text = "\u0000\u0001\u0002";
    writeFileSync(file, text);
    expectOneSentence(await longshore(["translate", "-f", file]), 2, /is not text: give YAML or JSON/);
    expectOneSentence(await longshore(["translate", "-f", "-"], text), 2, /standard input is not text/);
  });

  test("a volume that cannot be translated is named; the rest is still written", async () => {
    const pv = (name: string, volumeID: string) => ({
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name },
      spec: { awsElasticBlockStore: { volumeID } },
    });
    writeFileSync(file, [pv("bad", "aws://"), pv("good", "vol-1")].map((o) => JSON.stringify(o)).join("\n"));
    const { code, out, err } = await longshore(["translate", "-f", file]);
    expect(code).toBe(1);
    expect(err).toMatch(/^error: PersistentVolume "bad": .*; write it as .*\n$/);
    expect(out).toContain('"ebs.csi.aws.com"');
  });

  test("a file that is not there", async () => {
    expectOneSentence(await longshore(["translate", "-f", join(base, "none.yaml")]), 2, "none.yaml", /check/);
  });
});

describe("a cluster directory", () => {
  test.each([
    ["an unknown plugin", ["migrate", "--plugin", "aws-efs"], 2, "choose one of aws-ebs, gce-pd"],
    [
      "a directory without a cluster",
      ["migrate", "--plugin", "aws-ebs", "--dir", join(base, "none")],
      1,
      "start one",
    ],
    ["a dashboard of no cluster", ["dashboard", "--dir", join(base, "none")], 1, "start one"],
  ] as const)("%s", async (_name, args, code, words) => {
    expectOneSentence(await longshore(args), code, words);
    expect(stateOf(join(base, "none"))).toEqual({ ...nothing, files: [] });
  });

  test("one that holds other things is left alone", async () => {
    const dir = join(base, "mine");
    mkdirSync(dir);
    writeFileSync(join(dir, "letter.txt"), "dear");
    const before = stateOf(dir);
    expectOneSentence(
      await longshore(["cluster", "up", "--dir", dir]),
      1,
      "not empty",
      "empty or new directory",
    );
    expectOneSentence(await longshore(["cluster", "down", "--dir", dir]), 1, "nothing was removed");
    expect(stateOf(dir)).toEqual(before);
    expect(before).toEqual({ ...nothing, files: ["letter.txt"] });
  });

  test("one whose sockets would have too long a path", async () => {
    const dir = join(base, "d".repeat(90));
    expectOneSentence(await longshore(["cluster", "up", "--dir", dir]), 1, "choose a shorter --dir");
    expect(existsSync(dir)).toBe(false);
  });

  test("a configuration that is damaged", async () => {
    const dir = join(base, "damaged");
    mkdirSync(dir);
    writeFileSync(join(dir, "cluster.json"), "{");
    expectOneSentence(
      await longshore(["cluster", "status", "--dir", dir]),
      1,
      "cluster.json is damaged",
      "remove it",
    );
  });

  test("a port that is taken", async () => {
    const { createServer } = await import("node:net");
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const dir = join(base, "port");
    try {
      const args = ["cluster", "up", "--dir", dir, "--nodes", "1", "--port", String(port)];
      expectOneSentence(await longshore(args), 1, new RegExp(`${port}`), /--port/);
    } finally {
      server.close();
    }
    expect(stateOf(dir)).toEqual({ ...nothing, files: [] });
  });
});

describe.skipIf(!isRoot)("a full disk (needs root for a small file system)", () => {
  const small = join(base, "small");
  const mount = (megabytes: number) => {
    mkdirSync(small, { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", small]);
  };

  test("is seen before anything is begun", async () => {
    mount(8);
    try {
      const before = stateOf(small);
      const outcome = await longshore(["cluster", "up", "--dir", join(small, "c"), "--nodes", "1"]);
      expectOneSentence(outcome, 1, "MiB left", "make room there, or choose another --dir");
      expect(stateOf(small)).toEqual(before);
      expect(before.files).toEqual([]);
    } finally {
      execFileSync("umount", [small]);
    }
  });

  test("that fills up while the cluster starts", async () => {
    mount(80);
    const dir = join(small, "c");
    try {
      const [program = "", ...first] = longshoreCommand;
      const child = spawn(program, [...first, "cluster", "up", "--dir", dir, "--nodes", "1"], {
        stdio: ["ignore", "pipe", "pipe"],
      });
      const outcome = outcomeOf(child);
      await expect.poll(() => existsSync(join(dir, "cluster.json")), { timeout: 10_000 }).toBe(true);
      fill(join(small, "ballast"));
      const ended = await outcome;
      expect(ended.code).toBe(1);
      expect(ended.err.trimEnd().split("\n").at(-1)).toMatch(
        /^longshore: .* because the disk that holds .* is full: make room there, or choose another --dir$/,
      );
      rmSync(join(small, "ballast"));
      expect(stateOf(dir)).toEqual({ ...nothing, files: [] });
    } finally {
      execFileSync("umount", [small]);
    }
  });

  test("under the output of translate", async () => {
    mount(1);
    try {
      fill(join(small, "ballast"));
      const [program = "", ...first] = longshoreCommand;
      const command = [program, ...first, "translate", "-f", "-"].map((word) => `'${word}'`).join(" ");
      const child = spawn("sh", ["-c", `${command} > '${small}/out.yaml'`], {
        stdio: ["pipe", "pipe", "pipe"],
      });
      child.stdin.end("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
      expectOneSentence(await outcomeOf(child), 2, "no space left", "where the output goes");
    } finally {
      execFileSync("umount", [small]);
    }
  });
});

describe("a cluster that runs", () => {
  const dir = join(base, "c");
  const migrate = ["migrate", "--plugin", "aws-ebs", "--dir", dir];

  beforeAll(async () => {
    const { code, err } = await longshore(["cluster", "up", "--detach", "--dir", dir, "--nodes", "1"]);
    expect(err).toBe("");
    expect(code).toBe(0);
  });

  afterAll(async () => {
    const { code } = await longshore(["cluster", "down", "--dir", dir]);
    expect(code).toBe(0);
    expect(stateOf(dir)).toEqual({ ...nothing, files: [] });
    const beside = readdirSync(base).filter((name) => name.startsWith("c"));
    expect(beside).toEqual([]);
  });

  test("a second `cluster up` on its directory changes nothing", async () => {
    const before = stateOf(dir);
    for (const flags of [[], ["--detach"]]) {
      const outcome = await longshore(["cluster", "up", "--dir", dir, ...flags]);
      expectOneSentence(outcome, 1, "already runs", `longshore cluster stop --dir ${dir}`);
    }
    expect(stateOf(dir)).toEqual(before);
  });

  test.each([
    ["no YAML", () => "{ nope", /not valid YAML/],
    ["no kubeconfig", () => "a: 1\n", /kubeconfig/],
    [
      "one whose server does not run",
      (text: string) => text.replace(/127\.0\.0\.1:\d+/, "127.0.0.1:1"),
      /refused.*is the API server running/,
    ],
    [
      "one of another cluster",
      (text: string) => text.replace(/("certificate-authority-data": ").*"/, `$1${foreignAuthority()}"`),
      /certificate/,
    ],
  ] as const)("a wrong kubeconfig: %s", async (_name, change, words) => {
    const file = join(dir, "kubeconfig");
    const right = readFileSync(file, "utf8");
    writeFileSync(file, change(right));
    try {
      expectOneSentence(await longshore(["cluster", "status", "--dir", dir]), 1, words);
      expectOneSentence(await longshore(migrate), 1, words);
    } finally {
      writeFileSync(file, right);
    }
  });

  test("a disk cloud that is dead stops a crossing before it begins", async () => {
    await whileStopped("disk-cloud", async () => {
      expectOneSentence(
        await longshore([...migrate, "--dry-run"]),
        1,
        "the disk cloud: it does not answer",
        join(dir, "logs/disk-cloud.log"),
      );
    });
  });

  test("a driver whose socket is missing stops a crossing before it begins", async () => {
    const socket = join(dir, "n/node-1/plugins/ebs.csi.aws.com/csi.sock");
    expect(existsSync(socket)).toBe(true);
    rmSync(socket);
    const outcome = await longshore(migrate);
    const [waiting = "", sentence = ""] = outcome.err.split(/(?<=\n)/);
    // It is given ten seconds to answer.
    expect(waiting).toMatch(
      /preflight waits for the driver ebs\.csi\.aws\.com on node-1 \(it does not answer/,
    );
    expectOneSentence(
      { ...outcome, err: sentence },
      1,
      "the driver ebs.csi.aws.com on node-1: it does not answer",
      /bring it back/,
    );
    expect(existsSync(join(dir, "crossing.json"))).toBe(false);
  });

  test("gates and nodes that are none", async () => {
    const gates = ["cluster", "gates", "--dir", dir];
    expectOneSentence(await longshore([...gates, "node-7"]), 2, "choose one of controller-manager, node-1");
    expectOneSentence(
      await longshore([...gates, "node-1", "CSIMigrationEBS=true"]),
      2,
      "CSIMigrationEBS",
      "CSIMigrationAWS",
    );
    expectOneSentence(
      await longshore([...gates, "node-1", "CSIMigrationAWS=yes"]),
      2,
      "write NAME=true or NAME=false",
    );
    expectOneSentence(
      await longshore(["cluster", "node", "kill", "node-7", "--dir", dir]),
      2,
      "the cluster has node-1",
    );
  });

  /** Runs `work` while one process of the cluster stands still, as if its machine hung. */
  async function whileStopped(name: string, work: () => Promise<void>): Promise<void> {
    const { pid } = JSON.parse(readFileSync(join(dir, "run", `${name}.json`), "utf8")) as { pid: number };
    process.kill(pid, "SIGSTOP");
    try {
      await work();
    } finally {
      process.kill(pid, "SIGCONT");
    }
  }
});

test("a reader that stops reading ends the command without a word", async () => {
  const [program = "", ...first] = longshoreCommand;
  const deploy = ["driver", "deploy", "--name", "d.example.com", "--image", "example.com/d:1"];
  const child = spawn(program, [...first, ...deploy], { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.destroy();
  const { code, err } = await outcomeOf(child);
  expect(err).toBe("");
  expect(code).toBe(0);
});

/** Takes all the room that is left. */
function fill(path: string): void {
  try {
    execFileSync("dd", ["if=/dev/zero", `of=${path}`, "bs=64k"], { stdio: "ignore" });
  } catch {
    // It ends when there is no room any more, and says so.
  }
}

/** A certificate of an authority that no server of ours has, in base64. */
function foreignAuthority(): string {
  const key = join(base, "foreign.key");
  const certificate = join(base, "foreign.crt");
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      "-days",
      "1",
    ].concat(["-subj", "/CN=foreign", "-keyout", key, "-out", certificate]),
    { stdio: "ignore" },
  );
  return readFileSync(certificate).toString("base64");
}
