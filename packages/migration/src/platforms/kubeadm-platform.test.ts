/** The platform over a command that edits trees of files, each the root of a node, with real programs. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { KubeClient, KubeObject, ListOptions, ObjectRef, Resource } from "@longshore/kube";
import { kernelHost, VirtualClock } from "@longshore/runtime";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { kubeletConfigGates, manifestGates } from "./feature-gate-files.ts";
import { createKubeadmPlatform, type KubeadmPlatformEnv } from "./kubeadm-platform.ts";
import { nodeCommandOf } from "./node-command.ts";

const signal = new AbortController().signal;
const gates = { CSIMigration: true, CSIMigrationAWS: true };
const configFile = "var/lib/kubelet/config.yaml";
const flagsFile = "var/lib/kubelet/kubeadm-flags.env";
const manifestOf = (component: string) => `etc/kubernetes/manifests/${component}.yaml`;
const components = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/** Runs a program in the root of a node: paths are below it, and a restart of the kubelet is a line in a file. */
const runner = `
const { spawnSync } = require("node:child_process");
const { appendFileSync, readFileSync } = require("node:fs");
const [root, program, ...args] = process.argv.slice(1);
if (program === "systemctl") appendFileSync(root + "/restarts", args.join(" ") + "\\n");
else {
  const words = args.map((word) => (word.startsWith("/") ? root + word : word));
  const { status } = spawnSync(program, words, { stdio: ["inherit", "inherit", "inherit"] });
  process.exit(status ?? 1);
}`;

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "ls-kubeadm-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function write(node: string, file: string, text: string): void {
  const path = join(dir, node, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, 0o600);
}
const read = (node: string, file: string) => readFileSync(join(dir, node, file), "utf8");
const restarts = (node: string) =>
  existsSync(join(dir, node, "restarts")) ? read(node, "restarts").trim().split("\n") : [];

function aNode(name: string, isControlPlane = false): void {
  write(
    name,
    configFile,
    "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nstaticPodPath: /etc/kubernetes/manifests # ours\n",
  );
  write(
    name,
    flagsFile,
    'KUBELET_KUBEADM_ARGS="--network-plugin=cni --pod-infra-container-image=pause:3.2"\n',
  );
  if (!isControlPlane) return;
  for (const component of components) {
    const command = `    - ${component}\n    - --authorization-mode=Node,RBAC # both\n`;
    write(
      name,
      manifestOf(component),
      `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${component}\nspec:\n  containers:\n  - command:\n${command}    image: k8s.gcr.io/${component}:v1.20.2\n    name: c\n`,
    );
  }
}

/** What the API shows: agents run with what their file said at their last restart, static pods with their manifest. */
function apiOf(nodes: readonly { readonly name: string; readonly isControlPlane?: true }[]): KubeClient {
  const shown = new Map<string, { readonly restarts: number; readonly plugins: string }>();
  const csiNode = (name: string): KubeObject => {
    const count = restarts(name).length;
    if (shown.get(name)?.restarts !== count) {
      const on = count > 0 && kubeletConfigGates(read(name, configFile)).CSIMigrationAWS === true;
      shown.set(name, { restarts: count, plugins: on ? "kubernetes.io/aws-ebs" : "" });
    }
    const annotations = { "storage.alpha.kubernetes.io/migrated-plugins": shown.get(name)?.plugins ?? "" };
    return { metadata: { name, annotations }, spec: { drivers: [] } } as unknown as KubeObject;
  };
  const labels = { "node-role.kubernetes.io/control-plane": "" };
  return {
    get: async ({ plural }: Resource<KubeObject>, { name }: ObjectRef) =>
      plural === "nodes"
        ? { metadata: { name }, status: { nodeInfo: { kubeletVersion: "v1.20.2" } } }
        : csiNode(name),
    list: async ({ plural }: Resource<KubeObject>, options: ListOptions) => {
      if (plural === "nodes") {
        return {
          items: nodes.map(({ name, isControlPlane }) => ({
            metadata: { name, labels: isControlPlane === true ? labels : {} },
          })),
        };
      }
      const component =
        components.find((each) => options.labelSelector?.includes(`component=${each},`)) ?? "";
      const items = nodes
        .filter(({ isControlPlane }) => isControlPlane === true)
        .map(({ name }) => {
          const all = Object.entries(manifestGates(read(name, manifestOf(component)))).map(
            ([g, v]) => `${g}=${v}`,
          );
          return {
            metadata: { name: `${component}-${name}` },
            spec: {
              nodeName: name,
              containers: [{ command: [component, `--feature-gates=${all.join(",")}`] }],
            },
            status: { conditions: [{ type: "Ready", status: "True" }] },
          };
        });
      return { items };
    },
  } as unknown as KubeClient;
}

function platformOf(
  nodes: Parameters<typeof apiOf>[0],
  refusal: KubeadmPlatformEnv["refusal"] = () => undefined,
) {
  const command = [process.execPath, "-e", runner, `${dir}/{node}`];
  const nodeCommand = nodeCommandOf(kernelHost(), command, { PATH: process.env.PATH ?? "" });
  return createKubeadmPlatform({ clock: new VirtualClock(), kube: apiOf(nodes), nodeCommand, refusal });
}

describe("a node", () => {
  it("gets the gates into its file, which keeps comments and mode, and its agent is restarted once", async () => {
    aNode("n1");
    const platform = platformOf([{ name: "n1" }]);
    await platform.setNodeGates("n1", gates, signal);
    expect(kubeletConfigGates(read("n1", configFile))).toEqual(gates);
    expect(read("n1", configFile)).toContain("/etc/kubernetes/manifests # ours\n");
    expect(statSync(join(dir, "n1", configFile)).mode & 0o777).toBe(0o600);
    expect(existsSync(join(dir, "n1", "var/lib/kubelet/.config.yaml.longshore"))).toBe(false);
    expect(restarts("n1")).toEqual(["restart kubelet"]);
    await platform.setNodeGates("n1", gates, signal);
    expect(restarts("n1")).toHaveLength(1);
    expect(await platform.nodeGates("n1", signal)).toMatchObject(gates);
  });

  it("whose file was changed by a run that died before the restart is restarted by the next", async () => {
    aNode("n1");
    write("n1", configFile, "featureGates:\n  CSIMigration: true\n  CSIMigrationAWS: true\n");
    await platformOf([{ name: "n1" }]).setNodeGates("n1", gates, signal);
    expect(restarts("n1")).toHaveLength(1);
  });

  it("that cannot be reached is a blocker, and so is a flag that counts more than the file", async () => {
    aNode("n1", true);
    aNode("n2");
    write("n2", flagsFile, 'KUBELET_KUBEADM_ARGS="--feature-gates=CSIMigrationAWS=false"\n');
    const findings = await platformOf([
      { name: "n1", isControlPlane: true },
      { name: "n2" },
      { name: "n3" },
    ]).findings?.(signal);
    expect(findings?.map(({ severity, object, field }) => [severity, object, field])).toEqual([
      ["blocker", "Node n2", "/var/lib/kubelet/kubeadm-flags.env"],
      ["blocker", "Node n3", "/var/lib/kubelet/config.yaml"],
    ]);
    expect(findings?.[0]?.reason).toContain("it sets CSIMigrationAWS as a flag");
  });
});

it("the control plane gets the gates in every manifest, the API server first", async () => {
  aNode("m1", true);
  aNode("m2", true);
  const platform = platformOf([
    { name: "m2", isControlPlane: true },
    { name: "m1", isControlPlane: true },
  ]);
  await platform.setControlPlaneGates(gates, signal);
  for (const node of ["m1", "m2"]) {
    for (const component of components) {
      expect(read(node, manifestOf(component))).toContain(
        `    - ${component}\n    - --feature-gates=CSIMigration=true,CSIMigrationAWS=true\n    - --authorization-mode=Node,RBAC # both\n`,
      );
    }
  }
  expect(await platform.controlPlaneGates(signal)).toEqual(gates);
  expect(restarts("m1")).toEqual([]);
});

it("what would not start with the gates is left as it is", async () => {
  aNode("m1", true);
  const asked: string[] = [];
  const platform = platformOf([{ name: "m1", isControlPlane: true }], (version, gate, value) => {
    asked.push(`${version} ${gate}=${value}`);
    return gate === "CSIMigrationAWS" ? "it does not know CSIMigrationAWS" : undefined;
  });
  const before = read("m1", manifestOf("kube-apiserver"));
  await expect(platform.setControlPlaneGates(gates, signal)).rejects.toThrow(
    "Node m1: kube-apiserver: it does not know CSIMigrationAWS; nothing of it was changed",
  );
  await expect(platform.setNodeGates("m1", gates, signal)).rejects.toThrow(
    "Node m1: kubelet: it does not know",
  );
  expect(read("m1", manifestOf("kube-apiserver"))).toBe(before);
  expect(restarts("m1")).toEqual([]);
  expect(asked).toEqual(Array(2).fill(["v1.20.2 CSIMigration=true", "v1.20.2 CSIMigrationAWS=true"]).flat());
});

describe("the command", () => {
  const host = kernelHost();

  it("must name the node", () => {
    expect(() => nodeCommandOf(host, ["ssh", "root@node"])).toThrow("write {node} where its name belongs");
  });

  it("takes no name and no word that a shell could read in another way", async () => {
    const command = nodeCommandOf(host, ["echo", "{node}"]);
    await expect(command("a;b", ["cat"], { signal })).rejects.toThrow("no DNS name");
    await expect(command("a", ["cat", "$(x)"], { signal })).rejects.toThrow('"$(x)"');
    expect((await command("a", ["cat", "/x"], { signal })).stdout).toBe("a cat /x\n");
  });
});
