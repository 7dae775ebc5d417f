/** `longshore convert --offline`: what is written, what is said, and wrong usage. */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { main } from "../../main.ts";

let out = "";
let err = "";
let dir = "";
let exitCode: typeof process.exitCode;
beforeEach(() => {
  exitCode = process.exitCode;
  out = "";
  err = "";
  dir = mkdtempSync(join(tmpdir(), "convert-offline-"));
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    out += String(text);
    return true;
  });
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    err += String(text);
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  process.exitCode = exitCode;
  rmSync(dir, { recursive: true });
});

async function run(...words: readonly string[]) {
  process.exitCode = undefined;
  await main(["node", "longshore", "convert", ...words]);
  return process.exitCode;
}

const claimRef = { namespace: "shop", name: "data", uid: "u-2" };
const spec = { awsElasticBlockStore: { volumeID: "vol-1" }, accessModes: ["ReadWriteOnce"], claimRef };
const metadata = (name: string, uid: string) => ({ name, uid, resourceVersion: "1" });
const objects = [
  {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: metadata("pv-a", "u-1"),
    spec,
    status: { phase: "Bound" },
  },
  {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { ...metadata("data", "u-2"), namespace: "shop" },
    spec: { volumeName: "pv-a" },
    status: { phase: "Bound" },
  },
  {
    apiVersion: "storage.k8s.io/v1",
    kind: "CSIDriver",
    metadata: metadata("ebs.csi.aws.com", "u-3"),
    spec: {},
  },
];

function dumpOf(items: readonly object[]): string {
  const file = join(dir, "dump.json");
  writeFileSync(file, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  return file;
}

describe("longshore convert --offline", () => {
  it("writes a script that may be run, and says what the dump lacks", async () => {
    const to = join(dir, "to");
    expect(await run("--offline", "-f", dumpOf(objects), "--output-dir", to)).toBeUndefined();
    expect(out).toBe(
      `1 volume can be converted, 0 refused; the script is ${join(to, "convert.sh")}, its way back ${join(to, "undo.sh")}\n`,
    );
    expect(err).toContain("not in the dump: the dump has no Pod; add it");
    expect(readdirSync(to).sort()).toEqual(["1-pv-a", "convert.sh", "undo.sh"]);
    expect(statSync(join(to, "convert.sh")).mode & 0o777).toBe(0o755);
    expect(await run("--offline", "-f", dumpOf(objects), "--output-dir", to)).toBe(2);
    expect(err).toContain("is there already: choose another --output-dir, or use --force");
    expect(
      await run("--offline", "-f", dumpOf(objects), "--output-dir", to, "--force", "-o", "json"),
    ).toBeUndefined();
    expect(JSON.parse(out.slice(out.indexOf("{")))).toMatchObject({ volumes: ["pv-a"], refused: [] });
  });

  it("ends with 1 where every volume is refused, and writes nothing", async () => {
    const to = join(dir, "to");
    expect(await run("--offline", "-f", dumpOf(objects.slice(0, 2)), "--output-dir", to)).toBe(1);
    expect(err).toContain("ebs.csi.aws.com");
    expect(out).toBe("0 volumes can be converted, 1 refused; no script was written\n");
    expect(readdirSync(dir)).toEqual(["dump.json"]);
  });

  it.each<readonly [string, readonly string[], string]>([
    ["without a dump", ["--output-dir", "d"], "--filename: name a dump"],
    ["without a directory", ["-f", "x"], "--output-dir: name a directory"],
    ["with a cluster", ["-f", "x", "--output-dir", "d", "--kubeconfig", "k"], "either a dump or a cluster"],
    [
      "of a template",
      ["-f", "x", "--output-dir", "d", "--workload", "a/b/c"],
      "a script changes no templates",
    ],
  ])("%s it is wrong usage", async (_words, words, expected) => {
    expect(await run("--offline", ...words)).toBe(2);
    expect(err).toContain(expected);
    expect(out).toBe("");
  });
});
