/**
 * The whole demo as a user without any right: nothing is lost there either, and nothing stays
 * behind. As root the test drops its rights for it; else it runs as the current user.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { machineStateBelow, nothing } from "./support/machine-state.ts";
import { runProgram } from "./support/run-command.ts";
import { shortDirectory } from "./support/test-cluster.ts";

const unprivilegedId = 65534;
const isRoot = process.getuid?.() === 0;
const asUnprivileged = isRoot
  ? [
      "setpriv",
      `--reuid=${unprivilegedId}`,
      `--regid=${unprivilegedId}`,
      "--clear-groups",
      "--inh-caps=-all",
      "--no-new-privs",
    ]
  : [];
const checkout = fileURLToPath(new URL("../..", import.meta.url));
const base = shortDirectory();
/** Where the user `nobody` can read the build. */
let build = checkout;

beforeAll(() => {
  if (!isRoot) return;
  chownSync(base, unprivilegedId, unprivilegedId);
  if (mayRead(join(checkout, "packages/cli/dist/main.js")) && mayRead(process.execPath)) return;
  // The user `nobody` cannot read a checkout below a home directory: copy the build.
  build = join(base, "build");
  mkdirSync(build);
  chmodSync(base, 0o755);
  execFileSync("cp", ["-a", join(checkout, "node_modules"), join(checkout, "packages"), build]);
});

afterAll(() => rmSync(base, { recursive: true, force: true }));

/** Whether the user `nobody` may read the file. */
function mayRead(path: string): boolean {
  try {
    execFileSync(asUnprivileged[0] ?? "", [...asUnprivileged.slice(1), "test", "-r", path], {
      stdio: "ignore",
    });
    return true;
  } catch {
    return false;
  }
}

test("the demo loses nothing, and leaves nothing behind", { timeout: 180_000 }, async () => {
  const home = join(base, "home");
  mkdirSync(home);
  if (isRoot) chownSync(home, unprivilegedId, unprivilegedId);
  const report = join(home, "report.json");
  const dir = join(home, "c");
  const command = [process.execPath, join(build, "packages/cli/bin/longshore.js")];
  const env = {
    PATH: process.env.PATH ?? "",
    HOME: home,
    TMPDIR: home,
    // As `nobody` the command detects that it has no rights; another user may have some, so the mode is set.
    ...(isRoot ? {} : { LONGSHORE_UNPRIVILEGED: "1" }),
  };
  const { code, out, err } = await runProgram(
    [...asUnprivileged, ...command, "demo", "--dir", dir, "--json", report],
    { cwd: home, env },
  );
  expect({ code, err: code === 0 ? "" : err }).toEqual({ code: 0, err: "" });
  expect(err).toContain("directories and links (no root)");
  expect(out).toMatch(/^lost writes +0$/m);
  const result = JSON.parse(readFileSync(report, "utf8")) as Record<string, unknown>;
  expect(result).toMatchObject({ lostWrites: 0, strandedAttachments: 0, inTreeCallsAfterMigration: 0 });
  expect(result.acknowledgedWrites).toBeGreaterThan(0);
  expect(result.volumes).toHaveLength(3);
  expect(machineStateBelow(home)).toEqual(nothing);
  expect(readdirSync(home)).toEqual(["report.json"]);
});
