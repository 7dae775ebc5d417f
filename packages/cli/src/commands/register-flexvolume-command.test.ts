import {
  chmodSync,
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
import { join } from "node:path";
import { defaultDriverDirectory } from "@longshore/volumes";
import { load } from "js-yaml";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { main } from "../main.ts";

let dir: string;
let said: { out: string; err: string };
let exitCode: typeof process.exitCode;
beforeEach(() => {
  exitCode = process.exitCode;
  process.exitCode = undefined;
  dir = realpathSync(mkdtempSync(join(tmpdir(), "ls-flex-")));
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
  rmSync(dir, { recursive: true, force: true });
});

const longshore = async (...words: readonly string[]) => {
  said.out = "";
  said.err = "";
  process.exitCode = undefined;
  await main(["node", "longshore", "flexvolume", ...words]);
  return process.exitCode ?? 0;
};

/** Writes a driver that does not attach and makes directories. */
function driver(name: string, init = '{"status":"Success","capabilities":{"attach":false,"fsGroup":false}}') {
  const path = join(dir, name);
  const script = `case $1 in
init) echo '${init}' ;;
mount|unmount) echo '{"status":"Success"}' ;;
*) echo '{"status":"Not supported"}'; exit 1 ;;
esac`;
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

describe("flexvolume install", () => {
  it("installs under vendor and name, executable, with nothing left beside it", async () => {
    const exec = join(dir, "exec");
    chmodSync(driver("nfs-driver"), 0o600);
    expect(
      await longshore("install", join(dir, "nfs-driver"), "--vendor", "v.io", "--name", "nfs", "--dir", exec),
    ).toBe(0);
    expect(said.out).toBe(`installed ${exec}/v.io~nfs/nfs\n`);
    expect(readdirSync(join(exec, "v.io~nfs"))).toEqual(["nfs"]);
    expect(statSync(join(exec, "v.io~nfs/nfs")).mode & 0o777).toBe(0o755);
    expect(statSync(join(exec, "v.io~nfs")).mode & 0o777).toBe(0o755);
  });

  it("replaces an installed driver by another file", async () => {
    const exec = join(dir, "exec");
    await longshore("install", driver("d"), "--dir", exec);
    const before = statSync(join(exec, "d/d")).ino;
    symlinkSync("/etc/passwd", join(exec, "d/.d"));
    expect(await longshore("install", driver("d"), "--dir", exec)).toBe(0);
    expect(statSync(join(exec, "d/d")).ino).not.toBe(before);
    expect(readdirSync(join(exec, "d"))).toEqual(["d"]);
  });

  it.each([
    ["a vendor that is no DNS name", ["--vendor", "../v"], "is no name of a plugin"],
    ["a name that is hidden", ["--name", ".d"], "is no name of a plugin"],
  ])("refuses %s", async (_what, flags, why) => {
    expect(await longshore("install", driver("d"), "--dir", join(dir, "exec"), ...flags)).toBe(2);
    expect(said.err).toContain(why);
  });

  it("refuses what is no file, and a link in place of the driver's directory", async () => {
    expect(await longshore("install", join(dir, "missing"), "--dir", dir)).toBe(2);
    expect(said.err).toContain("is not a file");
    mkdirSync(join(dir, "exec"));
    symlinkSync("/tmp", join(dir, "exec/d"));
    expect(await longshore("install", driver("d"), "--dir", join(dir, "exec"))).toBe(2);
    expect(said.err).toContain("is not a directory");
  });
});

describe("flexvolume list", () => {
  it("shows what works, what it can do, and why the rest does not", async () => {
    const exec = join(dir, "exec");
    await longshore("install", driver("good"), "--vendor", "v.io", "--dir", exec);
    await longshore("install", driver("bad", "Segmentation fault"), "--vendor", "v.io", "--dir", exec);
    expect(await longshore("list", "--dir", exec)).toBe(1);
    expect(said.out).toMatch(/v\.io\/good +ready +selinuxRelabel, requiresFSResize/);
    expect(said.out).toMatch(/v\.io\/bad +.*broken/);
    expect(said.out).toContain("Flexvolume driver v.io/bad: init printed something that is not JSON");
    await longshore("list", "--dir", exec, "--json");
    expect(JSON.parse(said.out)).toMatchObject([
      { driver: "v.io/bad", problem: expect.stringContaining("not JSON") },
      { driver: "v.io/good", capabilities: { attach: false }, problem: "" },
    ]);
  });

  it("ends with 0 when all work, and refuses a directory that is not there", async () => {
    mkdirSync(join(dir, "exec"));
    expect(await longshore("list", "--dir", join(dir, "exec"))).toBe(0);
    expect(said.out).toContain("no Flexvolume drivers in");
    expect(await longshore("list", "--dir", join(dir, "missing"))).toBe(2);
    expect(readdirSync(dir)).toEqual(["exec"]);
  });
});

describe("flexvolume check", () => {
  it("runs a program's calls in their order, a line each, and leaves nothing", async () => {
    expect(await longshore("check", driver("d"))).toBe(0);
    expect(said.out).toContain("✓ mount succeeds when it is repeated\n");
    expect(said.out).toMatch(/\d+ passed, 0 failed, 2 skipped\n$/);
    expect(said.err).toBe("");
  });

  it("takes an installed driver by its name, and ends with 1 when a check fails", async () => {
    const exec = join(dir, "exec");
    await longshore(
      "install",
      driver("d", '{"status":"Failure","message":"no module"}'),
      "--vendor",
      "v.io",
      "--dir",
      exec,
    );
    expect(await longshore("check", "v.io/d", "--dir", exec, "--json")).toBe(1);
    expect(JSON.parse(said.out)).toEqual([
      {
        check: "init succeeds and says what the driver can do",
        outcome: "failed",
        message: "Flexvolume driver v.io/d: init command failed, status: Failure, reason: no module",
      },
    ]);
  });

  it("grows the volume when two sizes are named", async () => {
    const asked = join(dir, "asked");
    const path = driver("d");
    const expands = `expandvolume) echo "$1 $4 $5" >>${asked}; echo '{"status":"Success"}' ;;
expandfs) echo "$1 $5 $6" >>${asked}; echo '{"status":"Success"}' ;;
mount|unmount)`;
    const script = readFileSync(path, "utf8").replace("mount|unmount)", expands);
    writeFileSync(path, script);
    expect(await longshore("check", path, "--expand", "1Gi:2Gi")).toBe(0);
    expect(said.out).toContain("✓ expandvolume succeeds when it is repeated\n");
    const line = (command: string) => `${command} 2147483648 1073741824\n`;
    expect(readFileSync(asked, "utf8")).toBe(line("expandvolume").repeat(2) + line("expandfs").repeat(2));
  });

  it.each([
    ["2Gi", "these are not two sizes"],
    ["1Gi:2Gi:3Gi", "these are not two sizes"],
    ["2Gi:1Gi", "a volume only grows"],
    ["1Gi:1Gi", "a volume only grows"],
    ["1Gi:much", "much"],
  ])("refuses --expand %s before it calls the driver", async (sizes, why) => {
    expect(await longshore("check", driver("d"), "--expand", sizes)).toBe(2);
    expect(said.err).toContain(`--expand ${sizes}: `);
    expect(said.err).toContain(why);
    expect(said.out).toBe("");
  });

  it("refuses a name that is neither a file nor installed", async () => {
    expect(await longshore("check", "v.io/none", "--dir", dir)).toBe(2);
    expect(said.err).toContain("v.io/none is neither a file nor a driver in");
  });
});

describe("the DaemonSet of the installer", () => {
  it("is deployed to every node, with the node's driver directory where the script expects it", () => {
    const path = new URL("../../../../deploy/flexvolume/daemonset.yaml", import.meta.url);
    // biome-ignore lint/suspicious/noExplicitAny: the test looks into a manifest
    const manifest = load(readFileSync(path, "utf8")) as any;
    const { containers, volumes } = manifest.spec.template.spec;
    expect(manifest.kind).toBe("DaemonSet");
    expect(manifest.spec.template.metadata.labels).toEqual(manifest.spec.selector.matchLabels);
    expect(containers[0].securityContext).toEqual({ privileged: true });
    expect(containers[0].volumeMounts).toEqual([{ name: volumes[0].name, mountPath: "/flexmnt" }]);
    expect(volumes[0].hostPath.path).toBe(defaultDriverDirectory);
  });
});
