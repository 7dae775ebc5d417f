import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { pathInRoot } from "./path-in-root.ts";

let root: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "longshore-root-")));
  mkdirSync(join(root, "var"));
  mkdirSync(join(root, "usr/bin"), { recursive: true });
  symlinkSync("/run", join(root, "var/run")); // As on Debian.
  symlinkSync("usr/bin", join(root, "bin"));
  symlinkSync("../../../../etc", join(root, "usr/up"));
  symlinkSync("/loop", join(root, "loop"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

describe("pathInRoot", () => {
  it.each([
    ["/data", "/data"],
    ["/var/run/data", "/run/data"],
    ["/bin/tool", "/usr/bin/tool"],
    ["/usr/up/passwd", "/etc/passwd"],
    ["/../../etc", "/etc"],
    ["/data//x/./y/", "/data/x/y"],
  ])("%s is %s of the root, never outside of it", (path, inside) => {
    expect(pathInRoot(root, path)).toBe(`${root}${inside}`);
  });

  it("ends in a loop of links", () => {
    expect(() => pathInRoot(root, "/loop/x")).toThrow("too many links");
  });
});
