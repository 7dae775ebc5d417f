/**
 * The playbooks, followed as a reader follows them: each command is typed in a shell on a cluster of processes in which the trouble
 * was caused, and what it prints is compared with the page. Needs root and kubectl 1.20.
 */
import { execFileSync, spawn } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { resources } from "@longshore/kube";
import { mayMount } from "@longshore/local";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { DetachedCluster } from "./support/detached-cluster.ts";
import { kubectlOf } from "./support/kubectl.ts";
import { machineStateBelow, nothing } from "./support/machine-state.ts";
import { outputMismatch, playbookSteps } from "./support/playbook.ts";
import { driverManifest, driverPidOnNode, playbookDriver } from "./support/playbook-driver.ts";
import { type PlaybookReader, playbookDirectory, playbookReader } from "./support/playbook-reader.ts";
import { playbookWriter } from "./support/playbook-writer.ts";
import { containersOn, killAll } from "./support/power-cut.ts";
import { longshoreCommand, shortDirectory } from "./support/test-cluster.ts";

const never = new AbortController().signal;
const kubectl = await kubectlOf("1.20");
const skipped = kubectl === undefined || !mayMount();
if (!mayMount()) console.warn("this process may not mount: the playbooks are not followed");

const followed = {
  driver: [
    "driver-broken-or-absent.md",
    "driver-upgrade-fails.md",
    "stuck-volume-attachment.md",
    "claim-stuck-terminating.md",
  ],
  crossing: ["control-plane-restored-mid-crossing.md", "turn-migration-off.md", "node-lost-mid-crossing.md"],
};

test("every playbook is followed here", () => {
  const pages = readdirSync(playbookDirectory).filter((name) => name !== "README.md");
  expect([...followed.driver, ...followed.crossing].sort()).toEqual(pages.sort());
});

describe("what a reader compares", () => {
  const mismatch = (expected: string, output: string, values = new Map<string, string>()) =>
    outputMismatch(expected.split("\n"), output, values);
  test.each([
    ["a b", "a   b\n", undefined],
    ["…", "", undefined],
    ["a\n…\nd", "a\nb\nc\nd\n", undefined],
    ["a\n…", "a\n", undefined],
    ["a … z", "a b z\n", undefined],
    ["a", "a\nb\n", "not expected: b"],
    ["a\nb", "a\n", "expected: b"],
    ["…\nd", "a\nb\n", "expected: d"],
    ["<A> <A>", "x y\n", "expected: <A> <A>"],
    ["a.b", "aXb\n", "expected: a.b"],
    ["", "said anyway\n", "not expected: said anyway"],
  ])("%j with %j", (expected, output, problem) => {
    expect(mismatch(expected, output)).toBe(problem);
  });
  test("a name keeps the word that was first seen", () => {
    const values = new Map<string, string>();
    expect(mismatch("volume <PV>, bound", "volume pv-1, bound\n", values)).toBeUndefined();
    expect(values).toEqual(new Map([["PV", "pv-1"]]));
    expect(mismatch("<PV>", "pv-2\n", values)).toBe("expected: <PV>");
  });
  test("commands of several lines, and those in lists", () => {
    const page = "1. Text.\n\n   ```console\n   $ a \\\n     b\n   out\n   ```\n\n```console\n$ c\n```\n";
    expect(playbookSteps(page)).toEqual([
      { section: "", line: 4, command: "a \\\n  b", expected: ["out"] },
      { section: "", line: 10, command: "c", expected: [] },
    ]);
  });
});

describe.skipIf(skipped)("a driver of the administrator's own", { timeout: 240_000 }, () => {
  const desk = shortDirectory();
  const cluster = new DetachedCluster(["--nodes", "1"], join(desk, "longshore/cluster"));
  const { dir } = cluster;
  const stateDir = join(desk, "state");
  let reader: PlaybookReader;

  const manifest = (name: string, more: readonly string[] = []) => {
    const file = join(desk, name);
    writeFileSync(file, driverManifest({ command: longshoreCommand, dir, stateDir, more }));
    return file;
  };
  const follow = (
    page: (typeof followed.driver)[number],
    atSection?: Parameters<PlaybookReader["follow"]>[1],
  ) => reader.follow(page, atSection);
  const administrator = (command: string) => reader.type(command);
  const isRegistered = async () => {
    const csiNode = await cluster.kube.get(resources.csiNodes, { name: "node-1" }, { signal: never });
    return csiNode?.spec.drivers.some(({ name }) => name === playbookDriver) === true;
  };
  /** The driver and a pod that uses it, as before the trouble. */
  const asBefore = async () => {
    await administrator("kubectl apply -f driver.yaml");
    for (const part of ["daemonset/disk-node", "deployment/disk-controller"]) {
      await administrator(`kubectl rollout status --namespace disk ${part} --timeout=60s`);
    }
    await cluster.until("the node has the driver", isRegistered);
    await administrator(
      "kubectl apply -f writer.yaml && kubectl rollout status statefulset/writer --timeout=60s",
    );
  };

  beforeAll(async () => {
    await cluster.start();
    reader = playbookReader({
      dir: desk,
      kubectl: kubectl ?? "",
      kubeconfig: cluster.kubeconfig,
      stateHome: desk,
      kubeletDir: join(dir, "n/node-1"),
      apiData: join(dir, "api"),
    });
    manifest("driver.yaml");
    manifest("driver-v2.yaml", ["--fast-attach"]);
    writeFileSync(join(desk, "writer.yaml"), playbookWriter("disk"));
  });
  beforeEach(asBefore);
  afterAll(async () => {
    await cluster.down();
    // What a page that could not be followed has left.
    for (const device of machineStateBelow(stateDir).loopDevices) {
      await administrator(`losetup --detach ${device.split(" ")[0]}`);
    }
    expect(machineStateBelow(stateDir)).toEqual(nothing);
    rmSync(desk, { recursive: true, force: true });
  });

  test("is broken or absent", async () => {
    await administrator("kubectl delete daemonsets,deployments --namespace disk --all");
    await administrator("kubectl wait --for=delete pod --namespace disk --all --timeout=60s || true");
    await cluster.until("the driver is gone from the node", async () => !(await isRegistered()));
    await follow("driver-broken-or-absent.md", (section) => {
      if (section.startsWith("Broken")) process.kill(driverPidOnNode(stateDir), "SIGSTOP");
    });
  });

  test("fails to be upgraded", async () => {
    await administrator("kubectl apply -f driver-v2.yaml");
    await cluster.until("both parts crash", async () => {
      const { items } = await cluster.kube.list(resources.pods, { namespace: "disk", signal: never });
      const crash = items.filter(({ status }) =>
        status?.containerStatuses?.some(({ state }) => state?.waiting?.reason === "CrashLoopBackOff"),
      );
      return crash.length === 2 && items.length === 2;
    });
    await follow("driver-upgrade-fails.md");
  });

  test("has lost its controller: an attachment is stuck", async () => {
    await administrator("kubectl delete deployment --namespace disk disk-controller");
    await administrator(
      "kubectl wait --for=delete pod --selector app=disk-controller --namespace disk --timeout=60s || true",
    );
    await administrator("kubectl scale statefulset/writer --replicas=0");
    await administrator("kubectl wait --for=delete pod/writer-0 --timeout=60s || true");
    await cluster.until("the attachment is being deleted", async () => {
      const { items } = await cluster.kube.list(resources.volumeAttachments, { signal: never });
      return items.length === 1 && items[0]?.metadata.deletionTimestamp !== undefined;
    });
    await follow("stuck-volume-attachment.md");
  });

  test("has lost its controller: a claim is stuck", async () => {
    await administrator(
      `kubectl patch pvc data-writer-0 --type=json --patch='[{"op":"add","path":"/metadata/finalizers/-","value":"backup.example.com/hold"}]'`,
    );
    await administrator("kubectl delete deployment --namespace disk disk-controller");
    await administrator(
      "kubectl wait --for=delete pod --selector app=disk-controller --namespace disk --timeout=60s || true",
    );
    await administrator("kubectl delete pvc data-writer-0 --wait=false");
    await follow("claim-stuck-terminating.md");
    expect(await administrator(`ls ${stateDir}/disks 2>/dev/null | grep ^vol- || echo none`)).toBe("none\n");
  });
});

describe.skipIf(skipped)("a crossing", { timeout: 240_000 }, () => {
  const desk = shortDirectory();
  const cluster = new DetachedCluster(["--nodes", "2"], join(desk, "longshore/cluster"));
  const { dir } = cluster;
  let reader: PlaybookReader;

  const migrate = (...flags: readonly string[]) => {
    const [program = "", ...args] = longshoreCommand;
    const words = [...args, "migrate", "--plugin", "aws-ebs", "--dir", dir, ...flags];
    const child = spawn(program, words, { stdio: "ignore" });
    return { child, ended: new Promise<number | null>((resolve) => child.on("close", resolve)) };
  };
  /** Waits for a step of the run. Its journal in the cluster is watched: a slow process sees the steps late, but sees them. */
  const stepOfRun = async (
    isThat: (step: { readonly name: string; readonly nodeName?: string }) => boolean,
  ) => {
    const journals = cluster.kube.watch(resources.configMaps, {
      namespace: "kube-system",
      fieldSelector: "metadata.name=longshore-crossing-aws-ebs",
      signal: AbortSignal.timeout(60_000),
    });
    for await (const event of journals) {
      if (event.type === "BOOKMARK") continue;
      const { finishedAt, run } = JSON.parse(event.object.data?.["journal.json"] ?? "{}");
      const isRunning = finishedAt === undefined && run?.ended === undefined;
      if (isRunning && run?.step !== undefined && isThat(run.step)) return;
    }
    throw new Error("the watch of the journal has ended before that step");
  };

  beforeAll(async () => {
    await cluster.start();
    reader = playbookReader({
      dir: desk,
      kubectl: kubectl ?? "",
      kubeconfig: cluster.kubeconfig,
      stateHome: desk,
      kubeletDir: join(dir, "n/node-1"),
      apiData: join(dir, "api"),
    });
    writeFileSync(join(desk, "writer.yaml"), playbookWriter("gp2"));
    await reader.type(
      "kubectl apply -f writer.yaml && kubectl rollout status statefulset/writer --timeout=60s",
    );
    await reader.type("kubectl exec writer-0 -- sh -c 'echo kept > /data/notes'");
  });
  afterAll(async () => {
    await cluster.down();
    rmSync(desk, { recursive: true, force: true });
  });

  test("is in the middle when the control plane is backed up, and has ended when that is restored", async () => {
    const run = migrate();
    // Its cordon is written by then, and its volumes are gone.
    await stepOfRun((step) => step.name === "CSINode agrees" && step.nodeName === "node-1");
    // It stands still while the backup is made.
    run.child.kill("SIGSTOP");
    await reader.type("longshore apiserver backup --data-dir $API_DATA --out backup");
    run.child.kill("SIGCONT");
    expect(await run.ended).toBe(0);
    await reader.follow("control-plane-restored-mid-crossing.md");
  });

  test("is taken back", async () => {
    await reader.follow("turn-migration-off.md");
  });

  test("loses a node", async () => {
    const nodeName = (await cluster.pod("writer-0"))?.spec?.nodeName ?? "";
    const processes = [`node-agent-${nodeName}`, `csi-node-${nodeName}`];
    const [agent = 0] = processes.map((name) => cluster.pidOf(name));
    process.kill(agent, "SIGSTOP");
    const run = migrate("--step-timeout", "15s");
    await stepOfRun((step) => step.name === "drain" && step.nodeName === nodeName);
    loseNode(dir, nodeName, cluster.pidOf(`csi-node-${nodeName}`));
    expect(await run.ended).toBe(3);
    await reader.follow("node-lost-mid-crossing.md", (section) => {
      // Its processes begin again, as after a boot.
      if (section.startsWith("The machine comes back")) killAll(processes.map((name) => cluster.pidOf(name)));
    });
  });
});

/** What the loss of a machine takes: its processes stand still or are gone, and so are its mounts. Its agent stands still already. */
function loseNode(dir: string, nodeName: string, driverPid: number): void {
  process.kill(driverPid, "SIGSTOP");
  killAll(containersOn(dir, nodeName).flatMap(({ shim, all }) => [shim, ...all]));
  const targets = readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "")
    .filter((target) => target.startsWith(`${dir}/n/${nodeName}/`));
  for (const target of targets.reverse()) execFileSync("umount", ["-l", target]);
}
