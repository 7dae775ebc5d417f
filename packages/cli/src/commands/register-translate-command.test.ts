import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { Command, CommanderError } from "commander";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { registerTranslateCommand } from "./register-translate-command.ts";

let exitCodeBefore: typeof process.exitCode;
beforeEach(() => {
  exitCodeBefore = process.exitCode;
});
afterEach(() => {
  process.exitCode = exitCodeBefore;
});

function collector(): { readonly stream: Writable; text(): string } {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk));
      done();
    },
  });
  return { stream, text: () => chunks.join("") };
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

async function translate(args: readonly string[], stdin = "") {
  const [out, err] = [collector(), collector()];
  const program = new Command("longshore").configureOutput({ writeErr: (text) => err.stream.write(text) });
  registerTranslateCommand(program, { stdin: bytesOf(stdin), stdout: out.stream, stderr: err.stream });
  for (const command of program.commands)
    command.configureOutput({ writeErr: (text) => err.stream.write(text) });
  let thrown: unknown;
  await program.parseAsync(["node", "longshore", "translate", ...args]).catch((error: unknown) => {
    thrown = error;
  });
  return { code: process.exitCode, stdout: out.text(), stderr: err.text(), thrown };
}

const volume = "kind: PersistentVolume\nmetadata: {name: pv}\nspec: {cinder: {volumeID: v}}\n";

describe("longshore translate", () => {
  test("0: translates standard input in the form it came in", async () => {
    const { code, stdout, stderr } = await translate(["-f", "-"], volume);
    expect(stdout).toContain("driver: cinder.csi.openstack.org");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });

  test("reads a file, writes the form asked for and explains on standard error", async () => {
    const directory = mkdtempSync(join(tmpdir(), "translate-"));
    try {
      const file = join(directory, "in.yaml");
      writeFileSync(file, volume);
      const { stdout, stderr } = await translate(["-f", file, "-o", "jsonl", "--explain"]);
      expect(JSON.parse(stdout).spec.csi.volumeHandle).toBe("v");
      expect(stderr).toContain('PersistentVolume "pv": spec.cinder.volumeID -> spec.csi.volumeHandle = "v"');
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  test("--json is the form json, one List", async () => {
    const { code, stdout } = await translate(["-f", "-", "--json"], volume);
    expect([code, JSON.parse(stdout).kind]).toEqual([0, "List"]);
  });

  test("1: names what cannot be translated and writes the rest", async () => {
    const bad =
      "---\nkind: PersistentVolume\nmetadata: {name: bad}\nspec: {awsElasticBlockStore: {volumeID: aws://z/x}}\n";
    const { code, stdout, stderr } = await translate(["-f", "-"], volume + bad);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: PersistentVolume "bad": spec\.awsElasticBlockStore\.volumeID: /);
    expect(stdout).toContain("cinder.csi.openstack.org");
    expect(stdout).toContain("aws://z/x");
  });

  test.each([
    [["--to", "sideways", "-f", "-"]],
    [["-f", "-", "-o", "xml"]],
    [["-f", "-", "--inline=maybe"]],
    [["-f", "-", "--claim-size=much"]],
    [["-f", "-", "--claim-size=data=-1Gi"]],
    [[]],
  ])("2: wrong usage %j", async (args) => {
    const { code, stdout, stderr, thrown } = await translate(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^error: /);
    expect(thrown).toBeInstanceOf(CommanderError);
  });

  test("2: a file that is not there, in one sentence", async () => {
    const { code, stderr } = await translate(["-f", "/nowhere/in.yaml"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: cannot read \/nowhere\/in\.yaml, check the file: ENOENT.*\n$/);
  });

  test("reads every file and directory that is named, in that order", async () => {
    const directory = mkdtempSync(join(tmpdir(), "translate-"));
    try {
      const one = join(directory, "one.txt");
      writeFileSync(one, '{"kind":"A"}\n');
      writeFileSync(join(directory, "b.yaml"), "kind: C\n");
      writeFileSync(join(directory, "a.json"), '{"kind":"B"}\n');
      const named = ["-f", one, "-f", directory, "-f", "-", "-o", "jsonl"];
      const { stdout, code } = await translate(named, volume);
      expect(
        stdout
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line).kind),
      ).toEqual(["A", "B", "C", "PersistentVolume"]);
      expect(code).toBe(0);
      mkdirSync(join(directory, "empty"));
      const empty = await translate(["-f", join(directory, "empty")]);
      expect({ code: empty.code, stdout: empty.stdout }).toEqual({ code: 2, stdout: "" });
      expect(empty.stderr).toContain("holds no .yaml, .yml or .json file");
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  test("1: without a size no claim is made up; --claim-size gives it, for all or for one", async () => {
    const pod =
      "kind: Pod\nmetadata: {name: p}\nspec:\n  volumes:\n  - {name: a, cinder: {volumeID: v}}\n  - {name: b, cinder: {volumeID: w}}\n";
    const none = await translate(["-f", "-", "--inline=claim"], pod);
    expect({ code: none.code, stdout: none.stdout }).toEqual({ code: 1, stdout: pod });
    expect(none.stderr).toMatch(/^error: Pod "p": spec\.volumes\[0\]: /);
    const sized = ["-f", "-", "--inline=claim", "--claim-size", "5Gi", "--claim-size=b=7Gi"];
    const { code, stdout } = await translate([...sized, "-o", "jsonl"], pod);
    expect(code).toBe(0);
    const sizes = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).spec.capacity?.storage);
    expect(sizes.filter((size) => size !== undefined)).toEqual(["5Gi", "7Gi"]);
  });

  test("names what is not kept as a warning", async () => {
    const { code, stderr } = await translate(["-f", "-"], `# why\n${volume}`);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: 'warning: PersistentVolume "pv": the comments of its document are not kept\n',
    });
  });
});
