/**
 * Flexvolume on a cluster of processes, from `kubectl apply` on: the installer's DaemonSet, volumes of drivers that attach and of
 * those that do not, and an update and a removal under a mounted volume (docs/behaviour/flexvolume.md 6, 8). Needs root and kubectl.
 */
import { execFileSync } from "node:child_process";
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { resources } from "@longshore/kube";
import { mayMount } from "@longshore/local";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DetachedCluster } from "./support/detached-cluster.ts";
import { kubectlOf } from "./support/kubectl.ts";
import { longshore, runProgram } from "./support/run-command.ts";

const never = new AbortController().signal;
const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const vendor = "longshore.example";
const program = await kubectlOf("1.32");
const isTried = mayMount() && program !== undefined;
if (!isTried) console.warn("Flexvolume in a cluster is not tried: it needs kubectl, and the right to mount");

describe.skipIf(!isTried)("Flexvolume", () => {
  const cluster = new DetachedCluster();
  /** Outside of the cluster: what pods read, the loop driver and the files of its volumes. */
  const outside = mkdtempSync(join(tmpdir(), "ls-flex-"));
  const drivers = join(cluster.dir, "flexvolume");
  const loop = join(outside, "loop");

  beforeAll(async () => {
    mkdirSync(join(outside, "data"));
    writeFileSync(join(outside, "data", "letter"), "dear\n");
    // A driver has PATH alone in its environment.
    const script = `#!/bin/sh\nLONGSHORE_LOOP_STATE=${outside}/state exec ${at("examples/flexvolume/loop/loop")} "$@"\n`;
    writeFileSync(loop, script, { mode: 0o755 });
    await cluster.start();
  });
  afterAll(async () => {
    await cluster.down();
    expect(loopDevices()).toEqual([]);
    rmSync(outside, { recursive: true, force: true });
  });

  async function kubectl(...args: readonly string[]): Promise<string> {
    const env = { HOME: outside, PATH: process.env.PATH ?? "" };
    const command = [program ?? "", `--kubeconfig=${cluster.kubeconfig}`, ...args];
    const { code, out, err } = await runProgram(command, { env });
    expect({ code, err: code === 0 ? "" : err }).toEqual({ code: 0, err: "" });
    return out;
  }
  async function apply(text: string): Promise<void> {
    const file = join(outside, "manifest.yaml");
    writeFileSync(file, text);
    await kubectl("apply", "-f", file);
  }
  const install = async (file: string) => {
    const { code, err } = await longshore(
      "flexvolume",
      "install",
      file,
      "--vendor",
      vendor,
      "--dir",
      drivers,
    );
    expect({ code, err }).toEqual({ code: 0, err: "" });
  };
  const runs = (name: string) =>
    cluster.until(`${name} runs`, async () => (await cluster.pod(name))?.status?.phase === "Running");
  const isGone = (name: string) =>
    cluster.until(`${name} is gone`, async () => (await cluster.pod(name)) === undefined);
  const attached = async () => {
    const node = await cluster.kube.get(resources.nodes, { name: "node-1" }, { signal: never });
    return (node?.status?.volumesAttached ?? []).map(({ name }) => name);
  };
  const agentLog = () => readFileSync(join(cluster.dir, "logs/node-agent-node-1.log"), "utf8");
  const loopDevices = () =>
    execFileSync("losetup", ["--list", "--noheadings", "--output", "BACK-FILE"], { encoding: "utf8" })
      .split("\n")
      .filter((line) => line.includes(outside));

  test("a DaemonSet installs a driver, and a pod that came before it gets its volume", async () => {
    await apply(pod("reader", 'cat "$LONGSHORE_MOUNT_DATA/letter"; sleep 1000', inline("directory")));
    await cluster.until("the pod says for what it waits", async () =>
      (await kubectl("get", "events")).includes(`the Flexvolume driver ${vendor}/directory is not installed`),
    );
    // As it is deployed, but for what a cluster of processes lacks: an image, and a root of its own.
    const image = join(outside, "image");
    mkdirSync(image);
    cpSync(at("examples/flexvolume/directory/directory"), join(image, "directory"));
    const started = `IMAGE_ROOT=${image} FLEXMNT="$LONGSHORE_MOUNT_FLEXVOLUME_DRIVERS" exec /bin/sh ${at("deploy/flexvolume/deploy.sh")}`;
    const manifest = readFileSync(at("deploy/flexvolume/daemonset.yaml"), "utf8")
      .replace(
        /image: .*\n/,
        (line) => `${line}          command: ${JSON.stringify(["/bin/sh", "-c", started])}\n`,
      )
      .replace(/path: \/usr\/libexec\S*/, `path: ${drivers}`);
    await apply(manifest);
    await runs("reader");
    await cluster.until("the pod reads", async () => (await cluster.log("reader")) === "dear\n");
    expect(JSON.parse((await longshore("flexvolume", "list", "--json", "--dir", drivers)).out)).toMatchObject(
      [{ driver: `${vendor}/directory` }],
    );
    await kubectl("delete", "pod", "reader");
  });

  test("a disk outlives its pod, an update of its driver, and a removal that was a mistake", async () => {
    await install(loop);
    await apply(diskAndClaim);
    await apply(pod("writer", 'echo one >> "$LONGSHORE_MOUNT_DATA/f"; sleep 1000', claimed));
    await runs("writer");
    expect(await attached()).toEqual([`${vendor}/loop/disk`]);
    expect(loopDevices()).toHaveLength(1);
    appendFileSync(loop, "# an update\n");
    await install(loop);
    await kubectl("delete", "pod", "writer");
    await cluster.until("its loop device is gone", () => loopDevices().length === 0);

    // A driver that is new has not said yet that it leaves unmounting to the agent: it is asked.
    const loads = () => agentLog().split("Flexvolume driver loaded").length;
    const before = loads();
    appendFileSync(loop, "# another\n");
    await install(loop);
    await cluster.until("the update is loaded", () => loads() > before);
    await apply(pod("second", 'cat "$LONGSHORE_MOUNT_DATA/f"; sleep 1000', claimed));
    await cluster.until("the second pod reads", async () => (await cluster.log("second")) === "one\n");
    rmSync(join(drivers, `${vendor}~loop`), { recursive: true });
    await cluster.until("the driver is gone", () => agentLog().includes("Flexvolume driver removed"));
    await kubectl("delete", "pod", "second", "--wait=false");
    await cluster.until("the unmount has failed", () => /volume_unmount.* failed/.test(agentLog()));
    expect(await cluster.pod("second")).toBeDefined();
    expect(await attached()).toEqual([`${vendor}/loop/disk`]);
    await install(loop);
    await isGone("second");
    await cluster.until("its loop device is gone", () => loopDevices().length === 0);
  });

  test("a disk grows with its claim, at the latest when the next pod has it", async () => {
    const size = JSON.stringify({ spec: { resources: { requests: { storage: "128Mi" } } } });
    await kubectl("patch", "pvc", "disk", "-p", size);
    await cluster.until("the disk has grown", async () => {
      const volume = await cluster.kube.get(resources.persistentVolumes, { name: "disk" }, { signal: never });
      return volume?.spec?.capacity?.storage === "128Mi";
    });
    await apply(pod("third", 'df -k "$LONGSHORE_MOUNT_DATA"; sleep 1000', claimed));
    await runs("third");
    await cluster.until("the pod has seen its volume", async () => /\n.*\n/.test(await cluster.log("third")));
    const kibibytes = Number(/\s(\d+)\s/.exec((await cluster.log("third")).split("\n")[1] ?? "")?.[1]);
    expect(kibibytes).toBeGreaterThan(100 * 1024);
    const ref = { namespace: "default", name: "disk" };
    const claim = await cluster.kube.get(resources.persistentVolumeClaims, ref, { signal: never });
    expect(claim?.status).toMatchObject({ capacity: { storage: "128Mi" } });
    await kubectl("delete", "pod", "third");
    await cluster.until("its loop device is gone", () => loopDevices().length === 0);
  });

  const inline = (driver: string) =>
    `flexVolume: { driver: ${vendor}/${driver}, options: { path: ${outside}/data } }`;
});

const diskAndClaim = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: { name: flex }
provisioner: kubernetes.io/no-provisioner
allowVolumeExpansion: true
---
apiVersion: v1
kind: PersistentVolume
metadata: { name: disk }
spec:
  accessModes: [ReadWriteOnce]
  capacity: { storage: 64Mi }
  storageClassName: flex
  flexVolume: { driver: ${vendor}/loop, fsType: ext4 }
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: disk }
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: flex
  resources: { requests: { storage: 64Mi } }
`;
const claimed = "persistentVolumeClaim: { claimName: disk }";

function pod(name: string, script: string, source: string): string {
  return `apiVersion: v1
kind: Pod
metadata: { name: ${name} }
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: host
      command: [/bin/sh, -c, ${JSON.stringify(script)}]
      volumeMounts: [{ name: data, mountPath: /data }]
  volumes:
    - name: data
      ${source}
`;
}
