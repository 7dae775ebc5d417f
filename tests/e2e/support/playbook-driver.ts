/** The CSI driver of the playbooks, as an administrator has it: a manifest with a controller part and a node part. */
import { readdirSync, readFileSync } from "node:fs";

/** The driver's name. */
export const playbookDriver = "disk.example.com";

/** Where it runs, and how. */
export interface DriverManifestOptions {
  /** How `longshore` is started. */
  readonly command: readonly string[];
  /** The cluster's directory: the one of its node and its kubeconfig. */
  readonly dir: string;
  /** Where the driver keeps its disks. */
  readonly stateDir: string;
  /** Arguments of this version of the driver that another one does not have. */
  readonly more?: readonly string[];
}

const namespace = "disk";
const labels = (part: string) => ({ app: `disk-${part}` });

/** The manifest, as JSON, which is YAML too. */
export function driverManifest({ command, dir, stateDir, more = [] }: DriverManifestOptions): string {
  const nodeDir = `${dir}/n/node-1`;
  const plugin = `${nodeDir}/plugins/${playbookDriver}`;
  const longshore = (...args: readonly string[]) => [...command, "run", ...args];
  const driver = (services: string, socketDir: string) =>
    longshore(
      "reference-driver",
      `--name=${playbookDriver}`,
      `--services=${services}`,
      `--endpoint=unix://${socketDir}/csi.sock`,
      `--state-dir=${stateDir}`,
      "--node-id=node-1",
      ...more,
    );
  const socket = { name: "socket", mountPath: "/csi" };
  const template = (part: string, containers: readonly object[], volumes: readonly object[]) => ({
    metadata: { labels: labels(part) },
    spec: { terminationGracePeriodSeconds: 5, containers, volumes },
  });
  const selector = (part: string) => ({ matchLabels: labels(part) });
  const hostPath = (name: string, path: string) => ({
    name,
    hostPath: { path, type: "DirectoryOrCreate" },
  });
  const objects = [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
    {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSIDriver",
      metadata: { name: playbookDriver },
      spec: { attachRequired: true, podInfoOnMount: false },
    },
    {
      apiVersion: "storage.k8s.io/v1",
      kind: "StorageClass",
      metadata: { name: "disk" },
      provisioner: playbookDriver,
    },
    {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: { name: "disk-node", namespace },
      spec: {
        selector: selector("node"),
        template: template(
          "node",
          [
            {
              name: "driver",
              image: "example.com/disk",
              command: driver("node", "$(LONGSHORE_MOUNT_SOCKET)"),
              securityContext: { privileged: true },
              volumeMounts: [
                socket,
                { name: "kubelet", mountPath: "/kubelet", mountPropagation: "Bidirectional" },
              ],
            },
            {
              name: "registrar",
              image: "example.com/longshore",
              command: longshore(
                "node-driver-registrar",
                "--csi-address=/csi/csi.sock",
                `--kubelet-registration-path=${plugin}/csi.sock`,
                "--plugin-registration-path=/registration",
              ),
              volumeMounts: [socket, { name: "registration", mountPath: "/registration" }],
            },
          ],
          [
            hostPath("socket", plugin),
            hostPath("kubelet", nodeDir),
            hostPath("registration", `${nodeDir}/plugins_registry`),
          ],
        ),
      },
    },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "disk-controller", namespace },
      spec: {
        replicas: 1,
        strategy: { type: "Recreate" },
        selector: selector("controller"),
        template: template(
          "controller",
          [
            {
              name: "driver",
              image: "example.com/disk",
              command: driver("controller", "$(LONGSHORE_MOUNT_SOCKET)"),
              securityContext: { privileged: true },
              volumeMounts: [{ ...socket, mountPropagation: "Bidirectional" }],
            },
            {
              name: "sidecars",
              image: "example.com/longshore",
              command: longshore(
                "sidecars",
                "--csi-address=/csi/csi.sock",
                `--kubeconfig=${dir}/kubeconfig`,
                "--snapshotter=false",
                "--resizer=false",
                "--health-monitor=false",
              ),
              volumeMounts: [socket],
            },
          ],
          // A short path: a driver with the node's mounts listens where the volume is.
          [hostPath("socket", `${dir}/d`)],
        ),
      },
    },
  ];
  return `${JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }, undefined, 2)}\n`;
}

/** The process of the driver's node part with that state. @throws Error when it does not run */
export function driverPidOnNode(stateDir: string): number {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    let argv: string[];
    try {
      argv = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    } catch {
      continue; // It has just ended.
    }
    const isIt = ["reference-driver", "--services=node", `--state-dir=${stateDir}`].every((word) =>
      argv.includes(word),
    );
    if (isIt) return Number(pid);
  }
  throw new Error("the driver's node part does not run");
}
