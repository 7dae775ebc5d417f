/** `longshore cluster up --driver`: the author of a driver sees pods that use it, in under a minute from the command on. */
import { existsSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { type Pod, resources } from "@longshore/kube";
import { afterEach, expect, test } from "vitest";
import { DetachedCluster } from "./support/detached-cluster.ts";
import { longshore } from "./support/run-command.ts";
import { longshoreCommand } from "./support/test-cluster.ts";

const never = new AbortController().signal;
const namespace = "default";
const name = "data";
const fromCommandToPodMs = 60_000;

let cluster: DetachedCluster | undefined;
afterEach(async () => {
  await cluster?.down();
  cluster = undefined;
});

/** Brings a cluster up with the driver, and a pod with a volume of it; a second pod reads what the first has written. */
async function seesPods(driver: string, ...flags: readonly string[]): Promise<DetachedCluster> {
  const startMs = performance.now();
  const own = new DetachedCluster(["--nodes", "2", "--driver", driver, ...flags]);
  cluster = own;
  await own.start();
  const spec = {
    accessModes: ["ReadWriteOnce"],
    storageClassName: driver,
    resources: { requests: { storage: "64Mi" } },
  };
  await own.kube.create(
    resources.persistentVolumeClaims,
    { metadata: { name, namespace }, spec },
    { signal: never },
  );
  const left = fromCommandToPodMs - (performance.now() - startMs);
  await runs(own, "writer", 'echo kept > "$LONGSHORE_MOUNT_DATA/f"; echo written; sleep 1000', left);
  await own.kube.delete(resources.pods, { namespace, name: "writer" }, { signal: never });
  await own.until("the writer has gone", async () => (await own.pod("writer")) === undefined);
  await runs(own, "reader", 'cat "$LONGSHORE_MOUNT_DATA/f"; sleep 1000');
  await own.until("it is read", async () => (await own.log("reader")).includes("kept"));
  return own;
}

async function runs(own: DetachedCluster, podName: string, script: string, withinMs = 60_000): Promise<void> {
  const pod: Pod = {
    metadata: { name: podName, namespace },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: "c",
          image: "none",
          command: ["/bin/sh", "-c", script],
          volumeMounts: [{ name, mountPath: "/data" }],
        },
      ],
      volumes: [{ name, persistentVolumeClaim: { claimName: name } }],
    },
  };
  await own.kube.create(resources.pods, pod, { signal: never });
  const isRunning = async () => (await own.pod(podName))?.status?.phase === "Running";
  await own.until(`${podName} runs`, isRunning, withinMs);
}

async function deletesVolume(own: DetachedCluster): Promise<void> {
  await own.kube.delete(resources.pods, { namespace, name: "reader" }, { signal: never });
  await own.kube.delete(resources.persistentVolumeClaims, { namespace, name }, { signal: never });
  await own.until("the volume has gone", async () => {
    return (await own.kube.list(resources.persistentVolumes, { signal: never })).items.length === 0;
  });
}

test("of a driver with one controller", { timeout: 200_000 }, async () => {
  const driver = "disk.example.com";
  const topology = `--topology topology.${driver}/zone`;
  const zones = ["{zone}", "us-east-1a", "us-east-1b"].map((zone) => `${topology}=${zone}`);
  const command = [
    ...longshoreCommand.map((word) => `"${word}"`),
    `run reference-driver --name ${driver} --endpoint {endpoint} --services {services}`,
    "--state-dir {state-dir}/state --node-id {node-id}",
    ...zones,
  ].join(" ");
  const own = await seesPods(driver, "--driver-cmd", command);
  const { items } = await own.kube.list(resources.volumeAttachments, { signal: never });
  expect(items.map(({ spec }) => spec.attacher)).toEqual([driver]);
  await deletesVolume(own);
});

test("of a driver whose volumes lie on the node that makes them, also after a stop", {
  timeout: 300_000,
}, async () => {
  const driver = "directories.example.com";
  // Relative, as an author writes them: the cluster's processes are somewhere else.
  const here = (path: string) => relative(process.cwd(), fileURLToPath(new URL(path, import.meta.url)));
  const program = here("../../examples/driver/main.ts");
  const tsx = here("../../node_modules/.bin/tsx");
  const command = `env CSI_ENDPOINT={endpoint} NODE_NAME={node} VOLUMES_DIR={state-dir}/{node} "${tsx}" "${program}"`;
  const own = await seesPods(driver, "--driver-cmd", command, "--node-deployment");
  const node = (await own.pod("reader"))?.spec?.nodeName ?? "";
  const volumes = () => readdirSync(join(own.dir, "d", node));
  expect(volumes()).toHaveLength(1);
  expect((await own.kube.list(resources.volumeAttachments, { signal: never })).items).toEqual([]);
  expect(existsSync(join(own.dir, "d/controller.sock"))).toBe(false);
  await own.succeed("cluster", "stop");
  await own.start();
  await own.until(
    "the reader runs again",
    async () => (await own.pod("reader"))?.status?.phase === "Running",
  );
  await deletesVolume(own);
  expect(volumes()).toEqual([]);
});

test.each<[string, readonly string[], string]>([
  ["without a driver", ["--node-deployment"], "name the driver with --driver"],
  [
    "for a driver that takes over from in-tree code",
    ["--node-deployment", "--driver", "ebs.csi.aws.com", "--driver-cmd", "true {endpoint}"],
    "not those of one node",
  ],
  ["a driver without a command", ["--driver", "d.example.com"], "--driver-cmd"],
])("%s is wrong usage", async (_, flags, expected) => {
  const { code, err } = await longshore("cluster", "up", ...flags);
  expect(err).toContain(expected);
  expect(code).toBe(2);
});
