/** The embedded API server as kubectl sees it, of both minor versions that people have. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningApiServer, runApiServer } from "../../packages/apiserver/src/index.ts";
import { realEnv } from "../../packages/apiserver/src/testing/serve.ts";

const run = promisify(execFile);
const script = new URL("../../scripts/kubectl.sh", import.meta.url).pathname;

/** The program of that version, or undefined (with a line that says so) where it cannot be had. */
async function kubectlOf(version: string): Promise<string | undefined> {
  try {
    return (await run(script, [version])).stdout.trim();
  } catch (error) {
    console.warn(`kubectl ${version} is not to be had, its tests are skipped: ${(error as Error).message}`);
    return undefined;
  }
}

const volume = (size: string) => `
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-1}
spec:
  capacity: {storage: ${size}}
  accessModes: [ReadWriteOnce]
  awsElasticBlockStore: {volumeID: aws://us-east-1a/vol-1, fsType: ext4}
`;

const statefulSet = (image: string, extra = "") => `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: ${image}
        env: [{name: A, value: "1"}${extra}]
`;

for (const version of ["1.20", "1.32"]) {
  const program = await kubectlOf(version);
  describe.skipIf(program === undefined)(`kubectl ${version}`, () => {
    let directory: string;
    let server: RunningApiServer;
    const started: ChildProcess[] = [];

    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), "kubectl-"));
      server = await runApiServer(realEnv, {
        dataDir: join(directory, "data"),
        port: 0,
        kubeconfigOut: join(directory, "kubeconfig"),
      });
    });

    afterAll(async () => {
      for (const child of started) child.kill("SIGKILL");
      await server.stop();
      await rm(directory, { recursive: true });
    });

    /** Its home is the test's own: kubectl caches what it discovers. */
    const env = () => ({
      PATH: process.env.PATH ?? "",
      HOME: directory,
      KUBECONFIG: join(directory, "kubeconfig"),
    });

    async function kubectl(...args: readonly string[]): Promise<string> {
      return (await run(program ?? "", [...args], { env: env() })).stdout;
    }

    async function refused(...args: readonly string[]): Promise<string> {
      const result = await kubectl(...args).catch((error: { stderr: string }) => error);
      return typeof result === "string" ? `not refused: ${result}` : result.stderr;
    }

    async function manifest(text: string): Promise<string> {
      const file = join(directory, "manifest.yaml");
      await writeFile(file, text);
      return file;
    }

    it("sees a server of version 1.20 with its namespaces", async () => {
      const { serverVersion } = JSON.parse(await kubectl("version", "-o", "json"));
      expect(`${serverVersion.major}.${serverVersion.minor}`).toBe("1.20");
      expect((await kubectl("get", "ns", "-o", "name")).split("\n").filter(Boolean)).toEqual([
        "namespace/default",
        "namespace/kube-node-lease",
        "namespace/kube-public",
        "namespace/kube-system",
      ]);
    });

    it("applies a volume, says that nothing changed, and shows it", async () => {
      const file = await manifest(volume("1024Mi"));
      expect(await kubectl("apply", "-f", file)).toBe("persistentvolume/pv-1 created\n");
      expect(await kubectl("apply", "-f", file)).toContain("persistentvolume/pv-1");
      const table = await kubectl("get", "pv", "pv-1");
      expect(table.split("\n")[1]?.trim().split(/\s+/).slice(0, 5)).toEqual([
        "pv-1",
        "1Gi",
        "RWO",
        "Retain",
        "Pending",
      ]);
      expect(await kubectl("describe", "pv", "pv-1")).toMatch(/VolumeID:\s+aws:\/\/us-east-1a\/vol-1/);
    });

    it("merges a changed manifest by the keys of its lists", async () => {
      await kubectl("apply", "-f", await manifest(statefulSet("registry.example.com/a:1")));
      await kubectl("set", "env", "statefulset/web", "OTHER=kept");
      const changed = statefulSet("registry.example.com/a:2", ', {name: B, value: "2"}');
      expect(await kubectl("apply", "-f", await manifest(changed))).toBe("statefulset.apps/web configured\n");
      const { metadata, spec } = JSON.parse(await kubectl("get", "sts", "web", "-o", "json"));
      const [main] = spec.template.spec.containers;
      expect(main.image).toBe("registry.example.com/a:2");
      expect(new Set(main.env.map((e: { name: string }) => e.name))).toEqual(new Set(["A", "B", "OTHER"]));
      expect(metadata.generation).toBe(3);
    });

    it("refuses a manifest with a member that nobody knows, before it is sent", async () => {
      const file = await manifest(volume("1Gi").replace("fsType", "fsKind"));
      expect(await refused("apply", "-f", file)).toMatch(/unknown field "fsKind"/);
    });

    it("shows why the server refuses", async () => {
      const file = await manifest(volume("1Gi").replace("vol-1", "vol-2"));
      expect(await refused("apply", "-f", file)).toMatch(/spec\.persistentvolumesource: Forbidden/);
    });

    it("patches in all three ways", async () => {
      await kubectl("create", "configmap", "cm", "--from-literal=a=1");
      await kubectl("patch", "cm", "cm", "--type=merge", "-p", '{"data":{"b":"2"}}');
      await kubectl("patch", "cm", "cm", "--type=json", "-p", '[{"op":"remove","path":"/data/a"}]');
      await kubectl("patch", "cm", "cm", "-p", '{"data":{"c":"3"}}');
      expect(JSON.parse(await kubectl("get", "cm", "cm", "-o", "jsonpath={.data}"))).toEqual({
        b: "2",
        c: "3",
      });
    });

    it("watches: what is there, then what changes", async () => {
      const watch = spawn(program ?? "", ["get", "cm", "seen", "-w", "-o", "name"], { env: env() });
      // A watch of one name begins with the object itself, so it is there first.
      watch.kill();
      await kubectl("create", "configmap", "seen");
      const rows = spawn(program ?? "", ["get", "cm", "-w", "--no-headers"], { env: env() });
      started.push(watch, rows);
      let text = "";
      const has = (pattern: RegExp) =>
        new Promise<void>((resolve) => {
          const look = () => pattern.test(text) && resolve();
          rows.stdout.on("data", look);
          look();
        });
      rows.stdout.on("data", (chunk) => {
        text += chunk;
      });
      await has(/^seen\s+0\s/m);
      await kubectl("patch", "cm", "seen", "-p", '{"data":{"x":"y"}}');
      await has(/^seen\s+1\s/m);
      rows.kill();
    });

    it("drains what it deletes: a finalizer holds, an owner takes its own along", async () => {
      expect(await kubectl("delete", "pv", "pv-1", "--wait=false")).toContain("deleted");
      expect(await kubectl("get", "pv", "pv-1")).toContain("Terminating");
      await kubectl("patch", "pv", "pv-1", "--type=merge", "-p", '{"metadata":{"finalizers":null}}');
      expect(await refused("get", "pv", "pv-1")).toContain('persistentvolumes "pv-1" not found');
      const uid = await kubectl("get", "sts", "web", "-o", "jsonpath={.metadata.uid}");
      await kubectl(
        ...["patch", "cm", "cm", "--type=merge", "-p"],
        JSON.stringify({
          metadata: { ownerReferences: [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid }] },
        }),
      );
      await kubectl("delete", "sts", "web");
      await kubectl("wait", "--for=delete", "cm/cm", "--timeout=10s").catch(() => {});
      expect(await refused("get", "cm", "cm")).toContain('configmaps "cm" not found');
    });

    it("deletes a namespace with what is in it, and waits for it", async () => {
      await kubectl("create", "ns", "away");
      await kubectl("create", "configmap", "inside", "-n", "away");
      expect(await kubectl("delete", "ns", "away")).toContain('namespace "away" deleted');
      expect(await refused("get", "ns", "away")).toContain("not found");
    });

    it("explains the members of a kind", async () => {
      const text = await kubectl("explain", "pv.spec.awsElasticBlockStore");
      expect(text).toMatch(/volumeID\s+<string> -required-/);
    });
  });
}
