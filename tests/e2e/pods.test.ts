/**
 * Pods as child processes: a root and mounts of their own, a life that does not hang on the node
 * agent's, and no device kept busy. Needs root, since without it pods share the machine's root.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Container, type PersistentVolumeClaim, type PodSpec, resources } from "@longshore/kube";
import { agentProcess, mayMount, readPodLogs } from "@longshore/local";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestCluster } from "./support/test-cluster.ts";

const never = new AbortController().signal;
const namespace = "default";
const node = "node-1";
const waitForTerm = "trap 'echo asked to end; exit 0' TERM; while :; do sleep 0.05; done";

if (!mayMount()) console.warn("pods have no mounts of their own without root: their tests are skipped");

describe.skipIf(!mayMount())("a pod", () => {
  let cluster: TestCluster;
  const machineRoot = readdirSync("/").sort();

  beforeAll(async () => {
    cluster = await TestCluster.empty();
  });
  afterAll(async () => {
    await cluster.down();
    expect(readdirSync("/").sort()).toEqual(machineRoot);
  });

  /** Runs a shell script in a pod, with a volume of its own if it names a mount path. */
  async function run(
    name: string,
    script: string,
    options: {
      mountPath?: string;
      readOnly?: boolean;
      restartPolicy?: PodSpec["restartPolicy"];
      claim?: PersistentVolumeClaim["spec"];
      more?: Partial<PodSpec>;
      container?: Partial<Container>;
    } = {},
  ): Promise<void> {
    const { mountPath, readOnly = false, restartPolicy = "Never" } = options;
    if (mountPath !== undefined) {
      await cluster.kube.create(
        resources.persistentVolumeClaims,
        {
          apiVersion: "v1",
          kind: "PersistentVolumeClaim",
          metadata: { name, namespace },
          spec: {
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "16Mi" } },
            ...options.claim,
          },
        },
        { signal: never },
      );
    }
    const mounts = mountPath === undefined ? [] : [{ name: "data", mountPath, readOnly }];
    const volumes = mounts.map((m) => ({ name: m.name, persistentVolumeClaim: { claimName: name } }));
    await cluster.kube.create(
      resources.pods,
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace },
        spec: {
          restartPolicy,
          terminationGracePeriodSeconds: 5,
          containers: [
            {
              name: "main",
              image: "host",
              command: ["/bin/sh", "-c", script],
              volumeMounts: mounts,
              ...options.container,
            },
          ],
          volumes,
          ...options.more,
        },
      },
      { signal: never },
    );
  }

  const log = async (name: string) =>
    (await readPodLogs(cluster.env.host, cluster.cluster.layout.podLogDir, namespace, name)).join("");
  const says = (name: string, words: string) =>
    cluster.until(`${name} says "${words}"`, async () => (await log(name)).includes(words), 20_000);
  const container = async (name: string) => (await cluster.pod(name))?.status?.containerStatuses?.[0];

  /** Asks for the pod's end and waits until its object is gone. */
  async function end(name: string): Promise<void> {
    await cluster.kube.delete(resources.pods, { namespace, name }, { signal: never });
    await cluster.until(`${name} is gone`, async () => (await cluster.pod(name)) === undefined, 20_000);
  }

  /** The device's own mount goes a moment after its last pod. */
  const nothingMounted = () =>
    cluster.until("nothing is mounted", async () => (await cluster.mounts()).length === 0, 20_000);

  /** Pids of the pod's shim and container. */
  async function processesOf(name: string): Promise<{ shim: number; container: number }> {
    const uid = (await cluster.pod(name))?.metadata.uid;
    const file = `${cluster.cluster.layout.podStateDir(node)}/${uid}/main/state.json`;
    const state = JSON.parse(readFileSync(file, "utf8")) as Record<"shim" | "container", { pid: number }>;
    return { shim: state.shim.pid, container: state.container.pid };
  }

  /** The backing file of the claim's disk. */
  async function backingFile(claimName: string): Promise<string> {
    const claim = await cluster.kube.get(
      resources.persistentVolumeClaims,
      { namespace, name: claimName },
      { signal: never },
    );
    const pv = await cluster.kube.get(
      resources.persistentVolumes,
      { name: claim?.spec?.volumeName ?? "" },
      { signal: never },
    );
    const diskId = pv?.spec?.awsElasticBlockStore?.volumeID?.split("/").at(-1) ?? "";
    const directory = `${cluster.cluster.layout.cloudDir}/disks`;
    const file = readdirSync(directory).find((name) => name.includes(diskId));
    expect(diskId).not.toBe("");
    return `${directory}/${file}`;
  }
  const loopDevicesOf = (file: string) => execFileSync("losetup", ["-j", file], { encoding: "utf8" }).trim();

  test("sees its volume at its mount path, in a root of its own", async () => {
    const mountPath = "/longshore-pods-test/data";
    const script = `mountpoint ${mountPath} && echo kept > ${mountPath}/file && touch /longshore-in-root && ls -d /longshore-in-root; exec sleep 1000`;
    await run("own-root", script, { mountPath });
    await says("own-root", "\n/longshore-in-root\n");
    expect(await log("own-root")).toContain(`${mountPath} is a mountpoint`);
    expect(readdirSync("/").sort()).toEqual(machineRoot);
    const [onNode] = (await cluster.mounts()).filter((target) => target.includes("/pods/"));
    expect(readFileSync(`${onNode}/file`, "utf8")).toBe("kept\n");
    await end("own-root");
    await nothingMounted();
  });

  test("cannot write to a volume that it mounts read-only", async () => {
    await run("reader", "touch /data/x; echo ended with $?", { mountPath: "/data", readOnly: true });
    await says("reader", "ended with 1");
    // Of the other stream, which may come later.
    await says("reader", "Read-only file system");
    await end("reader");
  });

  test("runs as the user and the groups that it asks for, and so do its probes", async () => {
    const script =
      'echo "I am $(id -u) $(id -g) $(id -G) at $HOME"; echo kept >/data/of-me; stat -c "mine %u %g" /data/of-me; echo done >/dev/termination-log; touch /of-root 2>/dev/null || echo refused; sleep 600';
    await run("user", script, {
      mountPath: "/data",
      more: {
        securityContext: { runAsUser: 4321, runAsGroup: 4322, fsGroup: 4323, supplementalGroups: [4324] },
      },
      container: { readinessProbe: { exec: { command: ["sh", "-c", "test $(id -u) = 4321"] } } },
    });
    await says("user", "refused");
    expect(await log("user")).toContain("I am 4321 4322 4322 4323 4324 at /\n");
    expect(await log("user")).toContain("mine 4321 4323");
    await cluster.until("it is ready", async () => (await container("user"))?.ready === true, 20_000);
    await end("user");
  });

  test("has the file system of a local device, given to its group", async () => {
    const image = join(mkdtempSync(join(tmpdir(), "longshore-local-")), "disk");
    execFileSync("truncate", ["-s", "16M", image]);
    const device = execFileSync("losetup", ["--find", "--show", image], { encoding: "utf8" }).trim();
    try {
      const claimRef = { namespace, name: "local" };
      const spec = {
        capacity: { storage: "16Mi" },
        accessModes: ["ReadWriteOnce"],
        storageClassName: "",
        local: { path: device },
        claimRef,
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: [node] }] },
            ],
          },
        },
      };
      await cluster.kube.create(
        resources.persistentVolumes,
        { metadata: { name: "local" }, spec },
        { signal: never },
      );
      const script = 'touch /data/of-me && stat -f -c "on %T" /data && stat -c "owned %g" /data; sleep 600';
      await run("local", script, {
        mountPath: "/data",
        claim: { storageClassName: "", volumeName: "local" },
        more: { securityContext: { runAsUser: 4321, fsGroup: 4323 } },
      });
      await says("local", "owned 4323");
      expect(await log("local")).toContain("on ext2/ext3");
      await end("local");
      await nothingMounted();
    } finally {
      execFileSync("losetup", ["--detach", device]);
      rmSync(dirname(image), { recursive: true });
    }
  });

  test("that wants a root that cannot be changed has one, with volumes that can", async () => {
    const script =
      "touch /etc/x 2>/dev/null || echo refused; touch /data/x && echo kept; grep NoNewPrivs /proc/self/status; sleep 600";
    await run("sealed", script, {
      mountPath: "/data",
      container: { securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false } },
    });
    await says("sealed", "NoNewPrivs:\t1");
    expect(await log("sealed")).toMatch(/refused\nkept\n/);
    await end("sealed");
  });

  test("that fails without a message leaves the end of its log, where it asks for that", async () => {
    const asked = { terminationMessagePolicy: "FallbackToLogsOnError" };
    await run("talkative", "echo first; echo why >&2; exit 3", { container: asked });
    const terminated = async () => (await container("talkative"))?.state?.terminated;
    await cluster.until("it has ended", async () => (await terminated()) !== undefined, 20_000);
    const { exitCode, message } = (await terminated()) ?? {};
    expect([exitCode, message?.trim().split("\n").sort()]).toEqual([3, ["first", "why"]]);
    await end("talkative");
  });

  test("that must not run as root, and names no user, is refused by the name of the field", async () => {
    await run("nobody", "echo began", { more: { securityContext: { runAsNonRoot: true } } });
    const waiting = async () => (await container("nobody"))?.state?.waiting;
    const isRefused = async () => (await waiting())?.reason === "CreateContainerConfigError";
    await cluster.until("it is refused", isRefused, 20_000);
    expect((await waiting())?.message).toContain("spec.securityContext.runAsNonRoot");
    await end("nobody");
  });

  test("outlives its node agent; the next one finds it", async () => {
    await run("outlives", `echo started; ${waitForTerm}`, { mountPath: "/data" });
    await says("outlives", "started");
    const before = await processesOf("outlives");
    const agent = cluster.pidOf(agentProcess(node));
    cluster.signal(agentProcess(node), "SIGKILL");
    await cluster.until("there is a new agent", async () => cluster.pidOf(agentProcess(node)) !== agent);
    // Only an agent that has taken the pod over ends it in order, and lets go of its volume.
    await cluster.kube.delete(resources.pods, { namespace, name: "outlives" }, { signal: never });
    expect(await processesOf("outlives")).toEqual(before);
    await cluster.until("it is gone", async () => (await cluster.pod("outlives")) === undefined, 30_000);
    expect(await log("outlives")).toBe("started\nasked to end\n");
    await nothingMounted();
  });

  test("outlives its shim, and is started again once it ends after that", async () => {
    await run("no-shim", "echo started; exec sleep 1000", { restartPolicy: "Always" });
    await says("no-shim", "started");
    await cluster.until("it is reported ready", async () => (await container("no-shim"))?.ready === true);
    const before = await processesOf("no-shim");
    process.kill(before.shim, "SIGKILL");
    await cluster.until("the shim is gone", async () => !existsSync(`/proc/${before.shim}`));
    expect(existsSync(`/proc/${before.container}`)).toBe(true);
    expect(await container("no-shim")).toMatchObject({ restartCount: 0, ready: true });
    process.kill(before.container, "SIGKILL");
    await cluster.until("it runs again", async () => {
      const status = await container("no-shim");
      return status?.restartCount === 1 && status.ready;
    });
    expect((await processesOf("no-shim")).container).not.toBe(before.container);
    await end("no-shim");
  });

  test("that was made while another's volume was mounted keeps no device busy", async () => {
    await run("first", `echo started; ${waitForTerm}`, { mountPath: "/data" });
    await says("first", "started");
    const file = await backingFile("first");
    expect(loopDevicesOf(file)).not.toBe("");
    // Its mount namespace begins as a copy, with the first one's volume in it.
    await run("second", `echo started; ${waitForTerm}`, { mountPath: "/data" });
    await says("second", "started");
    await end("first");
    await cluster.until("the first disk is detached", async () => {
      const disks = await cluster.cluster.cloud.listDisks(never);
      return disks.filter((disk) => disk.attachments.length > 0).length === 1;
    });
    expect(loopDevicesOf(file)).toBe("");
    const { container: second } = await processesOf("second");
    expect(readFileSync(`/proc/${second}/mountinfo`, "utf8")).toContain(" /data ");
    await end("second");
  });

  test.each([
    ["well", "exit 0", "Succeeded", 0],
    ["badly", "exit 3", "Failed", 3],
    ["of a program that is not there", "exec /no/such/program", "Failed", 127],
  ] as const)("that ends at once, %s", async (_name, script, phase, exitCode) => {
    await run(`ends-${exitCode}`, script);
    await cluster.until("it has ended", async () => {
      return (await cluster.pod(`ends-${exitCode}`))?.status?.phase === phase;
    });
    expect((await container(`ends-${exitCode}`))?.state?.terminated?.exitCode).toBe(exitCode);
    await end(`ends-${exitCode}`);
  });

  test("takes everything that it has started with it", async () => {
    const script = "sleep 1000 < /data & echo $! > /data/pid; echo left a child; exit 0";
    await run("parent", script, { mountPath: "/data" });
    await cluster.until(
      "it has ended",
      async () => (await cluster.pod("parent"))?.status?.phase === "Succeeded",
    );
    await end("parent");
    await nothingMounted();
  });

  test("that ends again and again is started after growing pauses", async () => {
    await run("crashes", "date +%s%3N; exit 1", { restartPolicy: "Always" });
    await cluster.until("it waits in back-off", async () => {
      return (await container("crashes"))?.state?.waiting?.reason === "CrashLoopBackOff";
    });
    const starts = async () => (await log("crashes")).trim().split("\n").map(Number);
    await cluster.until("it has started three times", async () => (await starts()).length >= 3, 30_000);
    const [first = 0, second = 0, third = 0] = await starts();
    // The first time at once, then after ten seconds.
    expect(second - first).toBeLessThan(10_000);
    expect(third - second).toBeGreaterThanOrEqual(10_000);
    const isCounted = async () => ((await container("crashes"))?.restartCount ?? 0) >= 2;
    await cluster.until("its restarts are counted", isCounted);
    await end("crashes");
  });

  test("is asked to end before it is killed", async () => {
    await run("deaf", "trap 'echo heard' TERM; echo started; while :; do sleep 0.05; done");
    await says("deaf", "started");
    const ref = { namespace, name: "deaf" };
    const askedMs = performance.now();
    await cluster.kube.delete(resources.pods, ref, { gracePeriodSeconds: 1, signal: never });
    await cluster.until("it is gone", async () => (await cluster.pod("deaf")) === undefined);
    expect(performance.now() - askedMs).toBeGreaterThanOrEqual(1000);
    expect(await log("deaf")).toBe("started\nheard\n");
  });
});
