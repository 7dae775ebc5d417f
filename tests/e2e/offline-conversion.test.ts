/**
 * The script that converts volumes by kubectl, run by a shell with real kubectls against the embedded API server, with the
 * persistent-volume controller and the protection controllers at work.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { offlineConversion } from "../../packages/migration/src/conversion/offline/index.ts";
import { Kubectl, kubectlOf, kubectlVersions } from "./support/kubectl.ts";
import { startVolumeControllers } from "./support/volume-controllers.ts";

const run = promisify(execFile);

/** A plugin's volume, with what is hard about it. */
const sources: Readonly<
  Record<
    string,
    { readonly driver: string; readonly source: (disk: string) => object; readonly policy: string }
  >
> = {
  ebs: {
    driver: "ebs.csi.aws.com",
    source: (disk) => ({ awsElasticBlockStore: { volumeID: `aws://us-east-1a/vol-${disk}`, fsType: "xfs" } }),
    policy: "Delete",
  },
  // Its handle has a space and brackets in it.
  vsphere: {
    driver: "csi.vsphere.vmware.com",
    source: (disk) => ({
      vsphereVolume: { volumePath: `[ds one] kubevols/it's ${disk}.vmdk`, fsType: "ext4" },
    }),
    policy: "Retain",
  },
  // The claim asks for a mode that the converted volume does not have.
  pd: {
    driver: "pd.csi.storage.gke.io",
    source: (disk) => ({ gcePersistentDisk: { pdName: `disk-${disk}` } }),
    policy: "Delete",
  },
};

const kinds = [
  ...["pv", "pvc", "pods", "nodes", "volumeattachments.storage.k8s.io", "csinodes.storage.k8s.io"],
  ...["csidrivers.storage.k8s.io", "statefulsets.apps", "deployments.apps", "replicasets.apps"],
].join(",");

for (const [version, emulated] of kubectlVersions) {
  const program = await kubectlOf(version);

  describe.skipIf(program === undefined)(
    `the script, with kubectl ${version} and a server of ${emulated}`,
    () => {
      let kubectl: Kubectl;
      let stop: () => Promise<void>;
      beforeAll(async () => {
        kubectl = await Kubectl.start(program ?? "", emulated);
        stop = await startVolumeControllers(kubectl.kubeconfig);
        await kubectl.run("create", "namespace", "shop");
        await create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" } });
        // A dump without any pod would be one of which pods were left out.
        await create({
          apiVersion: "v1",
          kind: "Pod",
          metadata: { namespace: "shop", name: "idle" },
          spec: { containers: [{ name: "c", image: "i" }] },
        });
        for (const { driver } of Object.values(sources)) {
          await create({
            apiVersion: "storage.k8s.io/v1",
            kind: "CSIDriver",
            metadata: { name: driver },
            spec: {},
          });
        }
      });
      afterAll(async () => {
        await stop?.();
        await kubectl?.stop();
      });

      /** What does not depend on the version of kubectl. */
      const isNewest = version === kubectlVersions.at(-1)?.[0];
      const onNewest = test.skipIf(!isNewest);
      const create = async (object: object) =>
        kubectl.run("create", "-f", await kubectl.file("object.json", JSON.stringify(object)));
      const field = (kind: string, name: string, path: string) =>
        kubectl.run("get", kind, name, "-n", "shop", "--ignore-not-found", "-o", `jsonpath=${path}`);
      const boundTo = (claim: string) => field("pvc", claim, "{.status.phase} {.spec.volumeName}");

      /** A StatefulSet without pods, as the owner of claims. */
      async function createOwner(name: string): Promise<readonly object[]> {
        const labels = { app: name };
        const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "i" }] } };
        const spec = { replicas: 0, serviceName: name, selector: { matchLabels: labels }, template };
        await create({
          apiVersion: "apps/v1",
          kind: "StatefulSet",
          metadata: { namespace: "shop", name },
          spec,
        });
        const uid = await field("statefulset", name, "{.metadata.uid}");
        return [{ apiVersion: "apps/v1", kind: "StatefulSet", name, uid }];
      }

      async function createVolume(
        name: string,
        kind: keyof typeof sources,
        ownerReferences: readonly object[] = [],
      ): Promise<void> {
        const { source, policy } = sources[kind] ?? { source: () => ({}), policy: "" };
        const accessModes = [kind === "pd" ? "ReadWriteMany" : "ReadWriteOnce"];
        const annotations = { "pv.kubernetes.io/provisioned-by": "kubernetes.io/x", note: "it's kept" };
        const size = { storage: "1Gi" };
        await create({
          apiVersion: "v1",
          kind: "PersistentVolume",
          metadata: { name: `pv-${name}`, labels: { team: "a" }, annotations },
          spec: {
            ...source(name),
            accessModes,
            capacity: size,
            persistentVolumeReclaimPolicy: policy,
            storageClassName: "fast",
          },
        });
        await create({
          apiVersion: "v1",
          kind: "PersistentVolumeClaim",
          metadata: { namespace: "shop", name, labels: { app: name }, ownerReferences },
          spec: {
            accessModes,
            resources: { requests: size },
            storageClassName: "fast",
            volumeName: `pv-${name}`,
          },
        });
        await expect.poll(() => boundTo(name), { timeout: 30_000 }).toBe(`Bound pv-${name}`);
      }

      /** Writes the files for the volumes, from a dump of the cluster as it is. */
      async function written(
        directory: string,
        volumes: readonly string[],
        scaleDown = false,
      ): Promise<string> {
        const dump = await kubectl.run("get", kinds, "-A", "-o", "json");
        const input = { name: "dump.json", bytes: bytesOf(dump) };
        const { files, refused, gaps } = await offlineConversion([input], { volumes, scaleDown });
        expect({ refused, gaps }).toEqual({ refused: [], gaps: [] });
        for (const { path, text, executable } of files) {
          const file = join(kubectl.directory, directory, path);
          mkdirSync(dirname(file), { recursive: true });
          writeFileSync(file, text, { mode: executable ? 0o755 : 0o644 });
        }
        return join(kubectl.directory, directory, "convert.sh");
      }

      const env = (KUBECTL = program ?? "") => ({
        PATH: process.env.PATH ?? "",
        HOME: kubectl.directory,
        KUBECONFIG: kubectl.kubeconfig,
        KUBECTL,
        TIMEOUT: "60",
        INTERVAL: "0.2",
      });

      /** The volumes are what they were before the conversion. */
      async function expectUndone(name: string, kind: keyof typeof sources): Promise<void> {
        const { policy, source = () => ({}) } = sources[kind] ?? {};
        expect(await boundTo(name)).toBe(`Bound pv-${name}`);
        expect(await field("pv", `pv-${name}-csi`, "{.metadata.name}")).toBe("");
        const path =
          "{.status.phase} {.spec.persistentVolumeReclaimPolicy} {.spec.claimRef.name} {.metadata.labels.team} {.metadata.annotations.note}";
        expect(await field("pv", `pv-${name}`, path)).toBe(`Bound ${policy} ${name} a it's kept`);
        const { spec } = JSON.parse(await kubectl.run("get", "pv", `pv-${name}`, "-o", "json"));
        expect(spec).toMatchObject(source(name));
        expect(spec.csi).toBeUndefined();
        expect(await field("pvc", name, "{.metadata.labels.app}")).toBe(name);
      }

      async function expectConverted(name: string, kind: keyof typeof sources): Promise<void> {
        const { driver, policy } = sources[kind] ?? {};
        expect(await boundTo(name)).toBe(`Bound pv-${name}-csi`);
        expect(await field("pv", `pv-${name}`, "{.metadata.name}")).toBe("");
        expect(
          await field(
            "pv",
            `pv-${name}-csi`,
            "{.status.phase} {.spec.persistentVolumeReclaimPolicy} {.spec.csi.driver} {.spec.claimRef.name} {.metadata.labels.team} {.metadata.annotations.note}",
          ),
        ).toBe(`Bound ${policy} ${driver} ${name} a it's kept`);
        expect(await field("pvc", name, "{.metadata.labels.app}")).toBe(name);
      }

      test("volumes are converted, and a second run finds nothing to do", async () => {
        // A kubectl costs a fifth of a second each time: the older one converts the volume that is hardest to quote.
        const converted = isNewest ? Object.keys(sources) : ["vsphere"];
        const done = isNewest ? /done: 3 volumes\n$/ : /done: 1 volume\n$/;
        const owner = await createOwner("keeper");
        for (const kind of converted) await createVolume(kind, kind, kind === "vsphere" ? owner : []);
        const script = await written(
          "all",
          converted.map((kind) => `pv-${kind}`),
        );
        await run("sh", ["-n", script]);
        const { stdout } = await run("sh", [script], { env: env() });
        expect(stdout).toMatch(done);
        for (const kind of converted) await expectConverted(kind, kind);
        // In the order of names it is the last.
        const number = converted.length;
        const saved = readFileSync(
          join(kubectl.directory, `all/backup/${number}-pv-vsphere-volume.yaml`),
          "utf8",
        );
        expect(saved).toContain("[ds one] kubevols/");
        const versions = () =>
          kubectl.run("get", "pv,pvc", "-n", "shop", "-o", "jsonpath={.items[*].metadata.resourceVersion}");
        const before = await versions();
        expect((await run("sh", [script], { env: env() })).stdout).toMatch(done);
        expect(await versions()).toBe(before);
        // The way back, and a second time.
        const undo = join(dirname(script), "undo.sh");
        await run("sh", ["-n", undo]);
        expect((await run("sh", [undo], { env: env() })).stdout).toMatch(done);
        for (const kind of converted) await expectUndone(kind, kind);
        const versionsUndone = await versions();
        expect((await run("sh", [undo], { env: env() })).stdout).toMatch(done);
        expect(await versions()).toBe(versionsUndone);
        // No claim was ever without a volume to bind to: nothing asked for a new disk.
        expect(
          await kubectl.run("get", "events", "-n", "shop", "-o", "jsonpath={.items[*].reason}"),
        ).not.toMatch(/Provisioning/);
      });

      onNewest(
        "it waits for the pods of a workload, which it has scaled down, and scales it up in the end",
        async () => {
          await createVolume("web", "ebs");
          const labels = { app: "web" };
          const containers = [{ name: "c", image: "i" }];
          const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "web" } }];
          const template = { metadata: { labels }, spec: { containers, volumes } };
          const spec = { replicas: 2, serviceName: "web", selector: { matchLabels: labels }, template };
          await create({
            apiVersion: "apps/v1",
            kind: "StatefulSet",
            metadata: { namespace: "shop", name: "web" },
            spec,
          });
          const uid = await field("statefulset", "web", "{.metadata.uid}");
          const ownerReferences = [
            { apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid, controller: true },
          ];
          const metadata = { namespace: "shop", name: "web-0", labels, ownerReferences };
          await create({ apiVersion: "v1", kind: "Pod", metadata, spec: template.spec });
          const script = await written("web", ["pv-web"], true);
          const child = spawn("sh", [script], { env: env(), stdio: ["ignore", "pipe", "inherit"] });
          let out = "";
          child.stdout.setEncoding("utf8").on("data", (text: string) => {
            out += text;
          });
          const ended = once(child, "close");
          await expect.poll(() => out, { timeout: 60_000 }).toContain("    Pod web-0\n");
          expect(await boundTo("web")).toBe("Bound pv-web");
          expect(await field("statefulset", "web", "{.spec.replicas}")).toBe("0");
          // As the controller of StatefulSets does.
          await kubectl.run("delete", "pod", "web-0", "-n", "shop", "--force", "--grace-period=0");
          expect(await ended).toEqual([0, null]);
          await expectConverted("web", "ebs");
          expect(await field("statefulset", "web", "{.spec.replicas}")).toBe("2");
        },
      );

      onNewest("after an end in any write it goes on, although it has not seen the answer", async () => {
        await createVolume("late", "ebs");
        const script = await written("late", ["pv-late"]);
        // Fails once at each write of the script, which was made: each run comes one write further.
        const marks = join(kubectl.directory, "marks");
        mkdirSync(marks);
        const body = [
          'case "$1" in patch | create | delete) ;; *) exec "$REAL" "$@" ;; esac',
          'mark="$MARKS/$(printf "%s" "$*" | cksum | cut -d" " -f1)"',
          '[ -e "$mark" ] && exec "$REAL" "$@"',
          ': >"$mark"',
          '"$REAL" "$@"',
          "exit 1",
        ].join("\n");
        const failing = await kubectl.program("failing-kubectl", body);
        const more = { ...env(failing), REAL: program ?? "", MARKS: marks };
        /** Runs a script again until it comes to its end; returns how often. */
        const untilDone = async (path: string): Promise<number> => {
          let ended = "";
          let runs = 0;
          for (; !/done: 1 volume\n$/.test(ended) && runs < 12; runs++) {
            ended = await run("sh", [path], { env: more }).then(
              ({ stdout }) => stdout,
              ({ stderr }) => stderr,
            );
          }
          expect(ended).toMatch(/done: 1 volume\n$/);
          return runs;
        };
        expect(await untilDone(script)).toBeGreaterThan(3);
        await expectConverted("late", "ebs");
        expect(await untilDone(join(dirname(script), "undo.sh"))).toBeGreaterThan(3);
        await expectUndone("late", "ebs");
      });

      onNewest("a conversion that ended between its writes is taken back", async () => {
        // The new volume is made, the old claim deleted, and the claim made again.
        for (const ends of [2, 3, 4]) {
          const name = `half-${ends}`;
          await createVolume(name, "ebs");
          const script = await written(name, [`pv-${name}`]);
          const count = join(kubectl.directory, `count-${ends}`);
          writeFileSync(count, "");
          const body = [
            'case "$1" in patch | create | delete) ;; *) exec "$REAL" "$@" ;; esac',
            'printf x >>"$COUNT"',
            `[ "$(wc -c <"$COUNT")" -le ${ends} ] || exit 1`,
            'exec "$REAL" "$@"',
          ].join("\n");
          const ending = await kubectl.program(`ending-kubectl-${ends}`, body);
          // Of a deletion that was not made the script would wait for the end.
          const more = { ...env(ending), REAL: program ?? "", COUNT: count, TIMEOUT: "5" };
          await expect(run("sh", [script], { env: more }), name).rejects.toMatchObject({ code: 1 });
          await run("sh", [join(dirname(script), "undo.sh")], { env: env() });
          await expectUndone(name, "ebs");
        }
      });

      onNewest("a volume that has grown since is not put back at its former size", async () => {
        await createVolume("grown", "ebs");
        const script = await written("grown", ["pv-grown"]);
        await run("sh", [script], { env: env() });
        await kubectl.run("patch", "pv", "pv-grown-csi", "-p", '{"spec":{"capacity":{"storage":"2Gi"}}}');
        await expect(run("sh", [join(dirname(script), "undo.sh")], { env: env() })).rejects.toMatchObject({
          code: 1,
          stderr: expect.stringContaining("PersistentVolume pv-grown-csi has the size 2Gi, and had 1Gi"),
        });
        await expectConverted("grown", "ebs");
      });

      onNewest("a claim whose owner is gone by now is not touched", async () => {
        await createVolume("owned", "ebs", await createOwner("gone"));
        const script = await written("owned", ["pv-owned"]);
        await kubectl.run("delete", "statefulset", "gone", "-n", "shop", "--cascade=orphan");
        await expect(run("sh", [script], { env: env() })).rejects.toMatchObject({
          code: 1,
          stderr: expect.stringContaining("shop/gone, which owns claim owned, is gone"),
        });
        expect(await boundTo("owned")).toBe("Bound pv-owned");
        expect(await field("pv", "pv-owned", "{.spec.persistentVolumeReclaimPolicy}")).toBe("Delete");
      });

      onNewest("an object that others have put in the place of one of the dump is left alone", async () => {
        await createVolume("other", "ebs");
        const script = await written("other", ["pv-other"]);
        await kubectl.run("delete", "pvc", "other", "-n", "shop");
        await create({
          apiVersion: "v1",
          kind: "PersistentVolumeClaim",
          metadata: { namespace: "shop", name: "other" },
          spec: {
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "1Gi" } },
            storageClassName: "fast",
          },
        });
        const uid = await field("pvc", "other", "{.metadata.uid}");
        await expect(run("sh", [script], { env: env() })).rejects.toMatchObject({
          code: 1,
          stderr: expect.stringContaining("claim shop/other is another one than in the dump"),
        });
        expect(await field("pvc", "other", "{.metadata.uid}")).toBe(uid);
        expect(await field("pv", "pv-other-csi", "{.metadata.name}")).toBe("");
      });
    },
  );
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}
