/**
 * The script that replaces classes and StatefulSets by kubectl, run by a shell with real kubectls against the embedded API server, with
 * the StatefulSet controller at work: the pods go on.
 */
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ConversionPlanOptions } from "../../packages/migration/src/conversion/conversion-options.ts";
import { offlineConversion } from "../../packages/migration/src/conversion/offline/index.ts";
import { Kubectl, kubectlOf, kubectlVersions } from "./support/kubectl.ts";
import { startVolumeControllers } from "./support/volume-controllers.ts";

const run = promisify(execFile);
const labels = { app: "web" };
const set = {
  apiVersion: "apps/v1",
  kind: "StatefulSet",
  metadata: { namespace: "shop", name: "web" },
  spec: {
    replicas: 2,
    serviceName: "web",
    podManagementPolicy: "Parallel",
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: "c", image: "i" }] } },
    volumeClaimTemplates: [
      {
        metadata: { name: "data" },
        spec: {
          accessModes: ["ReadWriteOnce"],
          resources: { requests: { storage: "1Gi" } },
          storageClassName: "gp2",
        },
      },
    ],
  },
};
const storageClass = {
  apiVersion: "storage.k8s.io/v1",
  kind: "StorageClass",
  metadata: { name: "gp2", annotations: { "storageclass.kubernetes.io/is-default-class": "true" } },
  provisioner: "kubernetes.io/aws-ebs",
  parameters: { type: "gp2" },
};
const csiDriver = {
  apiVersion: "storage.k8s.io/v1",
  kind: "CSIDriver",
  metadata: { name: "ebs.csi.aws.com" },
  spec: {},
};
const node = { apiVersion: "v1", kind: "Node", metadata: { name: "n1" } };
const kinds = "pv,pvc,pods,nodes,csidrivers.storage.k8s.io,storageclasses.storage.k8s.io,statefulsets.apps";
const all = { noVolumes: true, classes: true, templates: true };
// Fails once before each of its changes, after which nothing has changed, and once after it.
const failingProgram = `case "$1" in create | delete | annotate) ;; *) exec "$REAL" "$@" ;; esac
mark="$MARKS/$(printf '%s' "$*" | cksum | cut -d' ' -f1)"
if [ ! -e "$mark.before" ]; then touch "$mark.before"; exit 1; fi
"$REAL" "$@" || exit
if [ ! -e "$mark.after" ]; then touch "$mark.after"; exit 1; fi
`;

for (const [version, emulated] of kubectlVersions) {
  const program = await kubectlOf(version);

  describe.skipIf(program === undefined)(`with kubectl ${version} and a server of ${emulated}`, () => {
    let kubectl: Kubectl;
    let stop: () => Promise<void>;
    beforeAll(async () => {
      kubectl = await Kubectl.start(program ?? "", emulated);
      stop = await startVolumeControllers(kubectl.kubeconfig, { statefulSets: true });
      await kubectl.run("create", "namespace", "shop");
      for (const object of [node, csiDriver, storageClass, set]) {
        await kubectl.run("create", "-f", await kubectl.file("object.json", JSON.stringify(object)));
      }
    });
    afterAll(async () => {
      await stop?.();
      await kubectl?.stop();
    });

    const pods = () => kubectl.run("get", "pods", "-n", "shop", "-o", "jsonpath={.items[*].metadata.uid}");
    const owners = () =>
      kubectl.run("get", "pods", "-n", "shop", "-o", "jsonpath={.items[*].metadata.ownerReferences[*].uid}");
    const ofSet = (path: string) =>
      kubectl.run("get", "statefulset", "web", "-n", "shop", "-o", `jsonpath={${path}}`);
    const ofClass = (name: string, path: string) =>
      kubectl.run("get", "storageclass", name, "--ignore-not-found", "-o", `jsonpath={${path}}`);
    const isDefault = ".metadata.annotations.storageclass\\.kubernetes\\.io/is-default-class";

    async function written(directory: string, options: ConversionPlanOptions): Promise<string> {
      const dump = await kubectl.run("get", kinds, "-A", "-o", "json");
      const { files, refused } = await offlineConversion(
        [{ name: "dump.json", bytes: bytesOf(dump) }],
        options,
      );
      expect(refused).toEqual([]);
      for (const { path, text } of files) {
        const file = join(kubectl.directory, directory, path);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, text);
      }
      return join(kubectl.directory, directory, "convert.sh");
    }

    /** Runs the script with a kubectl that fails around each change, again and again until it comes to its end. */
    async function finish(script: string): Promise<number> {
      const marks = `${dirname(script)}-marks`;
      mkdirSync(marks, { recursive: true });
      const env = {
        PATH: process.env.PATH ?? "",
        HOME: kubectl.directory,
        KUBECONFIG: kubectl.kubeconfig,
        KUBECTL: await kubectl.program("failing-kubectl", failingProgram),
        REAL: program ?? "",
        MARKS: marks,
        TIMEOUT: "60",
        INTERVAL: "0.2",
      };
      await run("sh", ["-n", script]);
      let ended = "";
      let runs = 0;
      for (; !/done: /.test(ended) && runs < 20; runs++) {
        ended = await run("sh", [script], { env }).then(
          ({ stdout }) => stdout,
          ({ stdout, stderr }) => `${stdout}${stderr}`,
        );
      }
      expect(ended).toMatch(/done: /);
      return runs;
    }

    test("the set has its pods", async () => {
      await expect
        .poll(async () => (await pods()).split(" ").filter((name) => name !== ""), { timeout: 30_000 })
        .toHaveLength(2);
      const seen = () =>
        kubectl.run("get", "statefulset", "web", "-n", "shop", "-o", "jsonpath={.status.observedGeneration}");
      await expect.poll(seen, { timeout: 30_000 }).toBe("1");
    });

    test("a new class stands beside the old one, the templates name it, and the pods are the same", async () => {
      const [before, uid] = [await pods(), await ofSet(".metadata.uid")];
      const script = await written("beside", { ...all, classSuffix: "-csi" });
      expect(await finish(script)).toBeGreaterThan(4);
      expect(await ofSet(".spec.volumeClaimTemplates[0].spec.storageClassName")).toBe("gp2-csi");
      expect(await ofClass("gp2-csi", ".provisioner")).toBe("ebs.csi.aws.com");
      expect(await ofClass("gp2-csi", isDefault)).toBe("true");
      expect(await ofClass("gp2", isDefault)).toBe("false");
      const now = await ofSet(".metadata.uid");
      expect(now).not.toBe(uid);
      expect(await pods()).toBe(before);
      expect(await owners()).toBe(`${now} ${now}`);
      // Again: nothing is left to do.
      expect(await finish(script)).toBe(1);
      expect(await ofSet(".metadata.uid")).toBe(now);
    });

    test("a class is made again under its name", async () => {
      const script = await written("in-place", { ...all, templates: false });
      expect(await finish(script)).toBeGreaterThan(2);
      expect(await ofClass("gp2", ".provisioner")).toBe("ebs.csi.aws.com");
    });

    test("a set that has another number of replicas by now is left alone", async () => {
      const labelled = { ...storageClass, metadata: { name: "old" } };
      await kubectl.run("create", "-f", await kubectl.file("class.json", JSON.stringify(labelled)));
      const other = structuredClone(set);
      other.metadata.name = "other";
      other.spec.replicas = 0;
      for (const template of other.spec.volumeClaimTemplates) template.spec.storageClassName = "old";
      await kubectl.run("create", "-f", await kubectl.file("set.json", JSON.stringify(other)));
      const seen = () =>
        kubectl.run(
          "get",
          "statefulset",
          "other",
          "-n",
          "shop",
          "-o",
          "jsonpath={.status.observedGeneration}",
        );
      await expect.poll(seen, { timeout: 30_000 }).toBe("1");
      const script = await written("scaled", { ...all, classSuffix: "-new" });
      await kubectl.run("scale", "statefulset/other", "-n", "shop", "--replicas=1");
      const env = {
        PATH: process.env.PATH ?? "",
        HOME: kubectl.directory,
        KUBECONFIG: kubectl.kubeconfig,
        KUBECTL: program ?? "",
        TIMEOUT: "60",
      };
      await expect(run("sh", [script], { env })).rejects.toMatchObject({
        stderr: expect.stringContaining("StatefulSet shop/other has 1 replicas, and 0 in the dump"),
      });
    });
  });
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}
