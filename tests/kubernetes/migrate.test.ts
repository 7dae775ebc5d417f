/**
 * `longshore plan`, `migrate`, `status` and `rollback` against a real API server with RBAC, as a user with the printed rights: the commands of
 * the guide, and a crossing by hand. Nodes are trees of files that a stand-in for ssh edits with real programs; what agents and static
 * pods would show of these files in the API is shown by the test.
 */
import { execFileSync, spawn } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type HttpKubeClient, type KubeObject, resources, updateWithRetry } from "@longshore/kube";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  kubeletConfigGates,
  manifestGates,
} from "../../packages/migration/src/platforms/feature-gate-files.ts";
import { guideScripts } from "./support/guide-commands.ts";
import {
  type ControlPlane,
  connectAs,
  createWithStatus,
  signal,
  startControlPlane,
} from "./support/index.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const annotation = "storage.alpha.kubernetes.io/migrated-plugins";
const plugin = "kubernetes.io/aws-ebs";
const driver = "ebs.csi.aws.com";
const components = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];
const configFile = "var/lib/kubelet/config.yaml";
const nodeNames = ["n1", "n2", "n3"];
const manifestOf = (component: string) => `etc/kubernetes/manifests/${component}.yaml`;

/** Runs a program in the tree of the node that `root@NODE` names; a restart of the kubelet is a line in a file. */
const ssh = (nodes: string) => `#!${process.execPath}
const { spawnSync } = require("node:child_process");
const { appendFileSync } = require("node:fs");
const [login, program, ...args] = process.argv.slice(2);
const root = ${JSON.stringify(nodes)} + "/" + login.replace("root@", "");
if (program === "systemctl") appendFileSync(root + "/restarts", args.join(" ") + "\\n");
else {
  const words = args.map((word) => (word.startsWith("/") ? root + word : word));
  process.exit(spawnSync(program, words, { stdio: "inherit" }).status ?? 1);
}
`;

let dir: string;
let kubernetes: ControlPlane;
let kube: HttpKubeClient;
let living: Promise<void>;
const ended = new AbortController();

const read = (node: string, file: string) => readFileSync(join(dir, "nodes", node, file), "utf8");
function write(node: string, file: string, text: string): void {
  const path = join(dir, "nodes", node, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "ls-migrate-"));
  kubernetes = await startControlPlane({ users: [{ name: "carrier" }] });
  kube = await connectAs(kubernetes);
  const bin = join(dir, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "ssh"), ssh(join(dir, "nodes")));
  writeFileSync(
    join(bin, "longshore"),
    `#!/bin/sh\nexec ${process.execPath} ${root}packages/cli/bin/longshore.js "$@"\n`,
  );
  chmodSync(join(bin, "ssh"), 0o755);
  chmodSync(join(bin, "longshore"), 0o755);
  symlinkSync(
    execFileSync(`${root}scripts/kubectl.sh`, ["1.20"], { encoding: "utf8" }).trim(),
    join(bin, "kubectl"),
  );
  symlinkSync(kubernetes.kubeconfigPath, join(dir, "ADMIN"));
  symlinkSync(await kubernetes.kubeconfigFor("carrier"), join(dir, "CARRIER"));
  for (const name of nodeNames) await addNode(name);
  await addVolume();
  await addPod();
  living = live();
});
afterAll(async () => {
  ended.abort();
  await living;
  await kube?.close();
  await kubernetes?.stop();
  rmSync(dir, { recursive: true, force: true });
});

async function addNode(name: string): Promise<void> {
  const isControlPlane = name === "n1";
  const labels = isControlPlane ? { "node-role.kubernetes.io/master": "" } : {};
  const status = { conditions: [{ type: "Ready", status: "True" }], nodeInfo: { kubeletVersion: "v1.20.2" } };
  await createWithStatus(kube, resources.nodes, { metadata: { name, labels }, status } as never);
  const spec = { drivers: [{ name: driver, nodeID: name, topologyKeys: [] }] };
  await kube.create(resources.csiNodes, { metadata: { name }, spec } as never, { signal });
  write(
    name,
    configFile,
    "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupDriver: systemd # ours\n",
  );
  write(name, "var/lib/kubelet/kubeadm-flags.env", 'KUBELET_KUBEADM_ARGS="--network-plugin=cni"\n');
  if (!isControlPlane) return;
  for (const component of components) {
    write(
      name,
      manifestOf(component),
      `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${component}\n  namespace: kube-system\nspec:\n  containers:\n  - command:\n    - ${component}\n    - --v=2 # ours\n    name: ${component}\n`,
    );
  }
}

/** A pod that a drain takes. */
async function addPod(): Promise<void> {
  const owner = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    name: "writer",
    uid: "uid-of-the-set",
    controller: true,
  };
  const metadata = { namespace: "default", name: "writer-0", ownerReferences: [owner] };
  // Nothing here would end it: it is gone as soon as it is evicted.
  const spec = { nodeName: "n2", terminationGracePeriodSeconds: 0, containers: [{ name: "c", image: "i" }] };
  const status = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
  await createWithStatus(kube, resources.pods, { metadata, spec, status } as unknown as KubeObject as never);
}

async function addVolume(): Promise<void> {
  const spec = {
    accessModes: ["ReadWriteOnce"],
    capacity: { storage: "1Gi" },
    awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-1", fsType: "ext4" },
  };
  await kube.create(resources.persistentVolumes, { metadata: { name: "pv-1" }, spec } as never, { signal });
}

/** What kubelets do: a restarted agent shows its gates, the pod of a static manifest is replaced when that changes, an evicted pod ends. */
async function live(): Promise<void> {
  const shown = new Map<string, string>();
  while (!ended.signal.aborted) {
    for (const name of nodeNames) {
      const restarts = existsSync(join(dir, "nodes", name, "restarts")) ? read(name, "restarts") : "";
      if (shown.get(name) === restarts) continue;
      shown.set(name, restarts);
      await showPlugins(
        name,
        restarts !== "" && kubeletConfigGates(read(name, configFile)).CSIMigrationAWS === true,
      );
    }
    for (const component of components) {
      const flags = Object.entries(manifestGates(read("n1", manifestOf(component)))).map(
        ([gate, value]) => `${gate}=${value}`,
      );
      const command = [component, `--feature-gates=${flags.join(",")}`];
      if (shown.get(component) === command.join(" ")) continue;
      shown.set(component, command.join(" "));
      await replacePod(component, command);
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function showPlugins(name: string, isOn: boolean): Promise<void> {
  await updateWithRetry(
    kube,
    resources.csiNodes,
    { name },
    (csiNode) => {
      const annotations = { ...csiNode.metadata.annotations, [annotation]: isOn ? plugin : "" };
      return { ...csiNode, metadata: { ...csiNode.metadata, annotations } };
    },
    { signal },
  );
}

async function replacePod(component: string, command: readonly string[]): Promise<void> {
  const ref = { namespace: "kube-system", name: `${component}-n1` };
  if ((await kube.get(resources.pods, ref, { signal })) !== undefined) {
    await kube.delete(resources.pods, ref, { signal, gracePeriodSeconds: 0 });
  }
  const metadata = {
    ...ref,
    labels: { component, tier: "control-plane" },
    // As the mirror pod of a manifest: no drain takes it.
    annotations: { "kubernetes.io/config.mirror": "hash" },
  };
  const spec = { nodeName: "n1", containers: [{ name: component, image: "i", command }] };
  const status = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
  await createWithStatus(kube, resources.pods, { metadata, spec, status } as unknown as KubeObject as never);
}

/** Runs a script of the guide in the directory. */
function shell(script: string, onErr: (text: string) => void = () => {}) {
  const env = {
    PATH: `${join(dir, "bin")}:${process.env.PATH}`,
    HOME: dir,
    XDG_STATE_HOME: join(dir, "state"),
  };
  const child = spawn("/bin/sh", ["-e", "-c", script], { cwd: dir, env, stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  let err = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text;
    onErr(text);
  });
  return new Promise<{ readonly code: number | null; readonly out: string; readonly err: string }>(
    (resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code) => resolve({ code, out, err }));
    },
  );
}

async function migrated(): Promise<readonly string[]> {
  const { items } = await kube.list(resources.csiNodes, { signal });
  return items
    .filter(({ metadata }) => metadata.annotations?.[annotation] === plugin)
    .map(({ metadata }) => metadata.name);
}

test("the guide's commands carry a cluster to CSI and back, under the printed rights alone", async () => {
  const scripts = guideScripts("docs/guides/migrate.md", "cluster");
  expect(scripts).toHaveLength(4);
  const [rights = "", plan = "", there = "", back = ""] = scripts;
  const refused = await shell("longshore plan --plugin aws-ebs --kubeconfig CARRIER");
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("forbidden") });
  for (const script of [rights, plan]) expect(await shell(script)).toMatchObject({ code: 0 });
  const went = await shell(there);
  expect(went).toMatchObject({ code: 0 });
  expect(went.out).toContain("paused after");
  expect(
    await kube.get(resources.pods, { namespace: "default", name: "writer-0" }, { signal }),
  ).toBeUndefined();
  expect(await migrated()).toEqual(nodeNames);
  expect(read("n2", configFile)).toContain("cgroupDriver: systemd # ours\n");
  expect(kubeletConfigGates(read("n2", configFile))).toEqual({ CSIMigration: true, CSIMigrationAWS: true });
  for (const component of components) {
    expect(manifestGates(read("n1", manifestOf(component)))).toEqual({
      CSIMigration: true,
      CSIMigrationAWS: true,
    });
  }
  const journal = { namespace: "kube-system", name: "longshore-crossing-aws-ebs" };
  const map = await kube.get(resources.configMaps, journal, { signal });
  expect(JSON.parse(map?.data?.["journal.json"] ?? "")).toMatchObject({
    platform: "kubeadm",
    nodesDone: nodeNames,
  });
  const returned = await shell(back);
  expect(returned).toMatchObject({ code: 0 });
  expect(returned.out).toContain("no volume needs the driver any more");
  expect(await migrated()).toEqual([]);
});

test("by hand: it says what is to be done, and goes on once the API shows it", async () => {
  const said: string[] = [];
  const run = await shell(
    "longshore migrate --plugin aws-ebs --kubeconfig CARRIER --platform manual --max-unavailable 3",
    (text) => {
      for (const [, node] of text.matchAll(/to do: on node (\w+),/g)) {
        said.push(node ?? "");
        write(node ?? "", configFile, "featureGates:\n  CSIMigration: true\n  CSIMigrationAWS: true\n");
        appendFileSync(join(dir, "nodes", node ?? "", "restarts"), "by hand\n");
      }
      if (!text.includes("to do: start kube-apiserver")) return;
      said.push("control plane");
      const flag = "--feature-gates=CSIMigration=true,CSIMigrationAWS=true";
      const file = manifestOf("kube-controller-manager");
      write("n1", file, read("n1", file).replace(/--feature-gates=\S+/, flag));
    },
  );
  expect(run).toMatchObject({ code: 0 });
  expect(said[0]).toBe("control plane");
  expect(said.slice(1).sort()).toEqual(nodeNames);
  expect(await migrated()).toEqual(nodeNames);
});

test("a plan of another cluster, and one that the cluster has gone past, are refused with object and field", async () => {
  await shell("longshore plan --plugin aws-ebs --direction rollback --kubeconfig CARRIER -o now.yaml");
  const text = readFileSync(join(dir, "now.yaml"), "utf8");
  writeFileSync(join(dir, "other.yaml"), text.replace(/clusterId: .*/, "clusterId: another"));
  const other = await shell("longshore rollback other.yaml --kubeconfig CARRIER");
  expect(other).toMatchObject({
    code: 1,
    err: expect.stringContaining('the plan\'s clusterId is "another"'),
  });
  await showPlugins("n3", false);
  const past = await shell("longshore rollback now.yaml --kubeconfig CARRIER");
  expect(past).toMatchObject({
    code: 1,
    err: expect.stringContaining(
      "CSINode n3: metadata.annotations: the node is to cross in the plan, and has crossed now",
    ),
  });
});
