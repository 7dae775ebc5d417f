/** The example drivers keep the protocol, and the installer installs one. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { kernelHost, systemClock, unprivilegedHost } from "@longshore/runtime";
import { checkFlexVolumeDriver, type FlexVolumeCheck, type FlexVolumeExpansion } from "@longshore/volumes";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const here = fileURLToPath(new URL(".", import.meta.url));
const directoryDriver = join(here, "directory", "directory");
const installer = fileURLToPath(new URL("../../deploy/flexvolume/deploy.sh", import.meta.url));
const isRoot = process.getuid?.() === 0 && process.platform === "linux";
const signal = new AbortController().signal;

let dir: string;
beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), "longshore-flex-")));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const failures = (checks: readonly FlexVolumeCheck[]) => checks.filter(({ outcome }) => outcome === "failed");

function checked(
  executable: string,
  options: Readonly<Record<string, string>>,
  expansion?: FlexVolumeExpansion,
) {
  const scratchDir = join(dir, "scratch");
  mkdirSync(scratchDir);
  const driver = { pluginName: `longshore.example/${basename(executable)}`, executable, problem: undefined };
  const env = { clock: systemClock, host: isRoot ? kernelHost() : unprivilegedHost() };
  return checkFlexVolumeDriver(
    env,
    { ...driver, scratchDir, nodeName: "node-1", options, expansion },
    signal,
  );
}

describe("the example drivers", () => {
  it("directory keeps the protocol, also where it may not mount", async () => {
    mkdirSync(join(dir, "data"));
    const checks = await checked(directoryDriver, { path: join(dir, "data") });
    expect(failures(checks)).toEqual([]);
    expect(checks.filter(({ outcome }) => outcome === "passed").map(({ check }) => check)).toContain(
      "mount succeeds",
    );
  });

  it("directory refuses a path that is relative, missing, or goes up", async () => {
    for (const path of ["data", `${dir}/../etc`, `${dir}/missing`]) {
      const checks = await checked(directoryDriver, { path });
      expect(failures(checks)).toMatchObject([{ check: "mount succeeds" }]);
      rmSync(join(dir, "scratch"), { recursive: true });
    }
  });

  it.skipIf(!isRoot)("loop keeps the protocol with a real loop device", async () => {
    const state = join(dir, "state");
    // A driver has PATH alone in its environment.
    const program = join(dir, "loop");
    writeFileSync(
      program,
      `#!/bin/sh\nLONGSHORE_LOOP_STATE=${state} exec ${join(here, "loop", "loop")} "$@"\n`,
      {
        mode: 0o755,
      },
    );
    const expansion = { oldSizeBytes: 1_048_576n, newSizeBytes: 2_097_152n };
    const checks = await checked(program, { size: "1048576" }, expansion);
    expect(failures(checks)).toEqual([]);
    expect(checks).toContainEqual({ check: "expandvolume grows the volume", outcome: "passed", message: "" });
    expect(statSync(join(state, "longshore-check")).size).toBe(2_097_152);
    expect(checks.map(({ check }) => check)).toContain("isattached says false after detach");
    expect(readdirSync(state)).toEqual(["longshore-check"]);
  });
});

describe("the installer", () => {
  /** Runs the script until it has installed, or has failed. */
  async function deploy(env: Readonly<Record<string, string>>) {
    const child: ChildProcess = spawn("/bin/sh", [installer], {
      env: {
        PATH: process.env.PATH ?? "",
        IMAGE_ROOT: join(dir, "image"),
        FLEXMNT: join(dir, "flexmnt"),
        ...env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    const installed = new Promise<void>((resolve) => {
      child.stdout?.on("data", (text) => {
        said += text;
        if (said.includes("installed ")) resolve();
      });
    });
    child.stderr?.on("data", (text) => {
      said += text;
    });
    const ended = once(child, "exit");
    const outcome = await Promise.race([
      installed.then(() => "sleeps"),
      ended.then(([code]) => code as number),
    ]);
    child.kill("SIGTERM");
    await ended;
    return { outcome, said };
  }

  const image = () => {
    mkdirSync(join(dir, "image"));
    writeFileSync(join(dir, "image", "d"), "one", { mode: 0o644 });
  };
  const files = (path: string) => readdirSync(join(dir, "flexmnt", path));

  it("puts the driver into its vendor's directory, executable, and sleeps", async () => {
    image();
    expect(await deploy({ VENDOR: "v.io", DRIVER: "d" })).toEqual({
      outcome: "sleeps",
      said: "installed v.io~d/d\n",
    });
    expect(files("v.io~d")).toEqual(["d"]);
    expect(statSync(join(dir, "flexmnt/v.io~d/d")).mode & 0o777).toBe(0o755);
  });

  it("replaces a driver by renaming, and what an interrupted run has left", async () => {
    image();
    await deploy({ DRIVER: "d" });
    const before = statSync(join(dir, "flexmnt/d/d")).ino;
    symlinkSync("/etc/passwd", join(dir, "flexmnt/d/.d"));
    writeFileSync(join(dir, "image", "d"), "two");
    expect((await deploy({ DRIVER: "d" })).outcome).toBe("sleeps");
    expect(files("d")).toEqual(["d"]);
    expect(readFileSync(join(dir, "flexmnt/d/d"), "utf8")).toBe("two");
    expect(statSync(join(dir, "flexmnt/d/d")).ino).not.toBe(before);
  });

  it.each([
    ["without a driver's name", {}],
    ["without the driver's file", { DRIVER: "missing" }],
    ["with a name that leaves the directory", { DRIVER: "d", VENDOR: "../v" }],
  ])("fails %s", async (_what, env) => {
    image();
    const { outcome } = await deploy(env);
    expect(outcome).not.toBe("sleeps");
    expect(outcome).not.toBe(0);
  });
});
