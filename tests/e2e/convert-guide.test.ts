/** Every command of the guide to `longshore convert`, in order, while the controllers of volumes are at work. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { blocksOf, type CommandPlace, commandsOf, runGuideCommand } from "./support/guide-commands.ts";
import { Kubectl, kubectlOf } from "./support/kubectl.ts";
import { longshoreCommand } from "./support/test-cluster.ts";
import { startVolumeControllers } from "./support/volume-controllers.ts";

const guide = readFileSync(new URL("../../docs/guides/convert.md", import.meta.url), "utf8");
const program = await kubectlOf("1.32");
const accessModes = ["ReadWriteOnce"];
const size = { storage: "1Gi" };

const volume = (name: string, source: object) => ({
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name: `pv-${name}` },
  spec: {
    ...source,
    accessModes,
    capacity: size,
    persistentVolumeReclaimPolicy: "Delete",
    storageClassName: "fast",
  },
});
const claim = (name: string) => ({
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { namespace: "shop", name },
  spec: { accessModes, resources: { requests: size }, storageClassName: "fast", volumeName: `pv-${name}` },
});
const csiDriver = (name: string) => ({
  apiVersion: "storage.k8s.io/v1",
  kind: "CSIDriver",
  metadata: { name },
  spec: {},
});

const objects = [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } },
  { apiVersion: "v1", kind: "Node", metadata: { name: "n1" } },
  {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace: "shop", name: "idle" },
    spec: { containers: [{ name: "c", image: "i" }] },
  },
  {
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name: "gp2" },
    provisioner: "kubernetes.io/aws-ebs",
    parameters: { type: "gp2", fsType: "ext4" },
  },
  {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { namespace: "shop", name: "db" },
    spec: {
      replicas: 0,
      serviceName: "db",
      selector: { matchLabels: { app: "db" } },
      template: { metadata: { labels: { app: "db" } }, spec: { containers: [{ name: "c", image: "i" }] } },
      volumeClaimTemplates: [
        {
          metadata: { name: "data" },
          spec: { accessModes, resources: { requests: size }, storageClassName: "gp2" },
        },
      ],
    },
  },
  {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { namespace: "shop", name: "reports" },
    spec: {
      replicas: 1,
      serviceName: "reports",
      selector: { matchLabels: { app: "reports" } },
      template: {
        metadata: { labels: { app: "reports" } },
        spec: {
          containers: [{ name: "c", image: "i" }],
          volumes: [{ name: "data", awsElasticBlockStore: { volumeID: "vol-2", fsType: "ext4" } }],
        },
      },
    },
  },
  csiDriver("ebs.csi.aws.com"),
  csiDriver("new.csi.example"),
  volume("orders", { awsElasticBlockStore: { volumeID: "vol-1", fsType: "ext4" } }),
  claim("orders"),
  volume("old", {
    csi: { driver: "old.csi.example", volumeHandle: "vol-0a", volumeAttributes: { tier: "1" } },
  }),
  claim("old"),
];

describe.skipIf(program === undefined)("the guide to convert", () => {
  let kubectl: Kubectl;
  let stop: (() => Promise<void>) | undefined;
  let place: CommandPlace;
  beforeAll(async () => {
    kubectl = await Kubectl.start(program ?? "", "1.32");
    stop = await startVolumeControllers(kubectl.kubeconfig, { statefulSets: true });
    const bin = join(kubectl.directory, "bin");
    mkdirSync(bin);
    const shim = `#!/bin/sh\n[ "$1" = longshore ] || exit 64\nshift\nexec ${longshoreCommand.join(" ")} "$@"\n`;
    writeFileSync(join(bin, "npx"), shim, { mode: 0o755 });
    const { PATH = "" } = process.env;
    const env = {
      PATH: `${bin}:${dirname(program ?? "")}:${PATH}`,
      HOME: kubectl.directory,
      KUBECONFIG: kubectl.kubeconfig,
    };
    place = { cwd: kubectl.directory, env };
    copyFileSync(kubectl.kubeconfig, join(kubectl.directory, "admin.conf"));
    writeFileSync(join(kubectl.directory, "rules.yaml"), blocksOf(guide, "yaml")[0] ?? "");
    for (const object of objects) {
      await kubectl.run("create", "-f", await kubectl.file("object.json", JSON.stringify(object)));
    }
  });
  afterAll(async () => {
    await stop?.();
    await kubectl?.stop();
  });

  test("its claims are bound", async () => {
    const phases = () => kubectl.run("get", "pvc", "-n", "shop", "-o", "jsonpath={.items[*].status.phase}");
    await expect.poll(phases, { timeout: 30_000 }).toBe("Bound Bound");
  });

  test.each(commandsOf(guide))("%s", async (command) => {
    const { code, out, err } = await runGuideCommand(command, place);
    expect(code, `${out}\n${err}`).toBe(0);
    if (command.includes("convert plan --kubeconfig admin.conf --pv")) {
      expect(out).toContain("-  awsElasticBlockStore:\n");
      expect(out).toContain("+  csi:\n");
    }
    if (command.includes("--rules")) expect(out).toContain("+    volumeHandle: disks/0a\n");
  });

  test("the volume is an in-tree one in the end, with the policy it had", async () => {
    const path =
      "jsonpath={.status.phase} {.spec.persistentVolumeReclaimPolicy} {.spec.awsElasticBlockStore.volumeID}";
    expect(await kubectl.run("get", "pv", "pv-orders", "-o", path)).toBe("Bound Delete vol-1");
    expect(await kubectl.run("get", "pv", "-o", "name")).not.toContain("pv-orders-csi");
  });
});
