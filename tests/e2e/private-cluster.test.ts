/**
 * What other users of the machine can see of a cluster: modes of its files, whatever the umask of who starts it, and what
 * of that environment its processes and pods have.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { resources } from "@longshore/kube";
import {
  clusterConfig,
  clusterLayout,
  mayMount,
  openCluster,
  processEnv,
  processHost,
  upCluster,
} from "@longshore/local";
import { silentLogger } from "@longshore/runtime";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { machineStateBelow, nothing } from "./support/machine-state.ts";
import { runProgram } from "./support/run-command.ts";
import { longshoreCommand, shortDirectory } from "./support/test-cluster.ts";

const never = new AbortController().signal;
const namespace = "default";
const driverName = "ebs.csi.aws.com";

/** What a terminal may hold that no component needs. */
const secret = "hunter2-of-the-terminal";
const planted: Readonly<Record<string, string>> = {
  AWS_SECRET_ACCESS_KEY: secret,
  GITHUB_TOKEN: secret,
  KUBECONFIG: `/nowhere/${secret}`,
  HTTPS_PROXY: `http://user:${secret}@127.0.0.1:1`,
  SSH_AUTH_SOCK: `/nowhere/${secret}`,
  npm_config__auth: secret,
};

/** What is wider than 0700 and 0600, and why. */
const wider: readonly { readonly path: RegExp; readonly because: string }[] = [
  {
    path: /^(cloud|d\/state)\/disks\/[^/]+\/fs(\/|$)/,
    because:
      "the contents of a volume, where disks are directories: they are the pod's, as on a real file system",
  },
];

/** Everything below `dir` that has another mode; contents of mounted volumes are the pods' and not looked at. */
function tooWide(dir: string): string[] {
  const { dev } = lstatSync(dir);
  const found: string[] = [];
  const look = (path: string, name: string) => {
    const stat = lstatSync(path);
    if (stat.isSymbolicLink() || stat.dev !== dev || wider.some((each) => each.path.test(name))) return;
    const mode = stat.mode & 0o7777;
    if (mode !== (stat.isDirectory() ? 0o700 : 0o600)) found.push(`${name} ${mode.toString(8)}`);
    if (!stat.isDirectory()) return;
    for (const entry of readdirSync(path)) look(join(path, entry), name === "" ? entry : `${name}/${entry}`);
  };
  look(dir, "");
  return found.sort();
}

/** The names below `dir`, to show that the walk has seen them. */
const namesBelow = (dir: string) => readdirSync(dir, { recursive: true }).map(String);

/** The environment that the process was started with. */
function environmentOf(pid: number): Record<string, string> {
  const entries = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").filter(Boolean);
  return Object.fromEntries(
    entries.map((entry) => [entry.split("=", 1)[0], entry.slice(entry.indexOf("=") + 1)]),
  );
}

/** What of the planted variables the process has, by name or by value. */
function leakedTo(pid: number): string[] {
  const leaks = ([name, value]: [string, string]) => name in planted || value.includes(secret);
  return Object.entries(environmentOf(pid))
    .filter(leaks)
    .map(([name]) => name);
}

const recordIn = (file: string) => JSON.parse(readFileSync(file, "utf8"));

/** The reference driver as a user's own program. */
const ownDriver = [
  ...longshoreCommand,
  ...["run", "reference-driver", "--mode", "directory", "--name", driverName, "--endpoint", "{endpoint}"],
  ...["--services", "{services}", "--state-dir", "{state-dir}/state", "--node-id", "{node-id}"],
  ...["--topology", `topology.${driverName}/zone={zone}`],
];

interface Form {
  readonly name: string;
  readonly form: "kernel" | "unprivileged";
  readonly umask: number;
  /** Brings the cluster up in the directory. */
  readonly up: (dir: string, form: Form) => Promise<() => Promise<void>>;
  /** Its processes that have pid files. */
  readonly processes: readonly string[];
}

const components = [
  "apiserver",
  "controller-manager",
  "csi-controller",
  "csi-node-node-1",
  "disk-cloud",
  "node-agent-node-1",
];

/** As a user does, in the background. */
async function detached(dir: string, { form, umask }: Form): Promise<() => Promise<void>> {
  const env = { ...process.env, ...planted, ...(form === "kernel" ? {} : { LONGSHORE_UNPRIVILEGED: "1" }) };
  const run = (...args: string[]) =>
    runProgram(
      ["sh", "-c", `umask ${umask.toString(8)} && exec "$@"`, "sh", ...longshoreCommand, "cluster", ...args],
      { env },
    );
  const up = await run("up", "--detach", "--nodes", "1", "--dir", dir);
  expect(up.code, up.err).toBe(0);
  return async () => expect(await run("down", "--dir", dir)).toMatchObject({ code: 0 });
}

/** As `driver qualify` does, with a user's own driver. */
async function withOwnDriver(dir: string, { form, umask }: Form): Promise<() => Promise<void>> {
  const before = process.umask(umask);
  const kept = { ...process.env };
  Object.assign(process.env, planted);
  try {
    const cluster = await upCluster(
      { ...processEnv("test", silentLogger), host: processHost(form) },
      {
        dir,
        config: clusterConfig(1, form, {
          ownDriver: { name: driverName, command: ownDriver },
          recordsDriverCalls: true,
        }),
        command: longshoreCommand,
        signal: never,
      },
    );
    return () => cluster.remove();
  } finally {
    process.umask(before);
    for (const name of Object.keys(planted)) {
      if (kept[name] === undefined) delete process.env[name];
      else process.env[name] = kept[name];
    }
  }
}

const forms: readonly Form[] = [
  {
    name: "with real mounts, umask 000",
    form: "kernel",
    umask: 0,
    up: detached,
    processes: [...components, "supervisor"],
  },
  {
    name: "of directories and links, umask 022",
    form: "unprivileged",
    umask: 0o022,
    up: detached,
    processes: [...components, "supervisor"],
  },
  {
    name: "with a driver of one's own, umask 000",
    form: "unprivileged",
    umask: 0,
    up: withOwnDriver,
    // The supervisor is this process.
    processes: [...components, "driver-controller", "driver-node-1"],
  },
];

describe
  .skipIf(process.platform !== "linux")
  .each(forms.filter(({ form }) => form === "unprivileged" || mayMount()))("a cluster $name", (form) => {
  const base = shortDirectory();
  const dir = join(base, "c");
  const layout = clusterLayout(dir);
  const pod = { shim: 0, container: 0 };
  let end = async () => {};

  beforeAll(async () => {
    mkdirSync(dir, { mode: 0o755 }); // A user's own, that others may look into.
    end = await form.up(dir, form);
    const { kube } = await openCluster(
      { ...processEnv("test", silentLogger), host: processHost(form.form) },
      dir,
    );
    try {
      const create = { signal: never };
      await kube.create(
        resources.storageClasses,
        {
          apiVersion: "storage.k8s.io/v1",
          kind: "StorageClass",
          metadata: { name: "csi" },
          provisioner: driverName,
          volumeBindingMode: "WaitForFirstConsumer",
        },
        create,
      );
      // One volume of the in-tree plugin, and one of the driver.
      const claims = { data: {}, csi: { storageClassName: "csi" } };
      for (const [name, more] of Object.entries(claims)) {
        await kube.create(
          resources.persistentVolumeClaims,
          {
            apiVersion: "v1",
            kind: "PersistentVolumeClaim",
            metadata: { name, namespace },
            spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "16Mi" } }, ...more },
          },
          create,
        );
      }
      const names = Object.keys(claims);
      await kube.create(
        resources.pods,
        {
          apiVersion: "v1",
          kind: "Pod",
          metadata: { name: "sleeper", namespace },
          spec: {
            terminationGracePeriodSeconds: 0,
            containers: [
              {
                name: "main",
                image: "host",
                command: ["/bin/sleep", "1000"],
                env: [{ name: "ITS_OWN", value: "yes" }],
                volumeMounts: names.map((name) => ({ name, mountPath: `/${name}` })),
              },
            ],
            volumes: names.map((name) => ({ name, persistentVolumeClaim: { claimName: name } })),
          },
        },
        create,
      );
      const phase = async () =>
        (await kube.get(resources.pods, { namespace, name: "sleeper" }, create))?.status?.phase;
      await vi.waitUntil(async () => (await phase()) === "Running", { timeout: 60_000, interval: 50 });
    } finally {
      kube.close();
    }
    const states = layout.podStateDir("node-1");
    const [uid = ""] = readdirSync(states);
    const state = recordIn(join(states, uid, "state.json"));
    Object.assign(pod, { shim: state.shim.pid, container: state.container.pid });
  }, 120_000);

  afterAll(async () => {
    await end();
    expect(machineStateBelow(dir)).toEqual(nothing);
    rmSync(base, { recursive: true, force: true });
  });

  test("lets other users of the machine see nothing: directories 0700, files and sockets 0600", () => {
    const names = namesBelow(dir);
    for (const name of [
      /^logs\/.*\.log$/,
      /^logs\/pods\/.*\.log$/,
      /^n\/node-1\/pods\//,
      /^cloud\/disks\//,
    ]) {
      expect(names, String(name)).toContainEqual(expect.stringMatching(name));
    }
    expect(names).toContainEqual(expect.stringMatching(/vol_data\.json$/));
    expect(names).toContainEqual(expect.stringMatching(/reg\.sock$/));
    expect(tooWide(dir)).toEqual([]);
  });

  test("has components that do not know what the terminal that started it knows", () => {
    const found = readdirSync(layout.runDir).map((name) => name.replace(/\.json$/, ""));
    expect(found).toEqual(expect.arrayContaining([...form.processes]));
    for (const name of form.processes) {
      const { pid } = recordIn(layout.pidFile(name));
      expect(environmentOf(pid).PATH, name).toBe(process.env.PATH);
      expect(leakedTo(pid), name).toEqual([]);
    }
  });

  test("has pods that know what Kubernetes gives them, and nothing else", () => {
    expect(leakedTo(pod.shim)).toEqual([]);
    const environment = environmentOf(pod.container);
    expect(environment).toMatchObject({ ITS_OWN: "yes", HOSTNAME: "sleeper" });
    expect(Object.keys(environment).sort()).toEqual(
      ["HOME", "HOSTNAME", "ITS_OWN", "LONGSHORE_MOUNT_CSI", "LONGSHORE_MOUNT_DATA", "PATH"].sort(),
    );
  });

  test("has pods with the umask of containers", () => {
    expect(readFileSync(`/proc/${pod.container}/status`, "utf8")).toMatch(/^Umask:\s+0022$/m);
  });
});

describe.skipIf(process.platform === "win32").each(["000", "022"])("an API server, umask %s", (umask) => {
  const base = shortDirectory();
  const dataDir = join(base, "made", "data");
  const kubeconfig = join(dataDir, "kubeconfig");
  let server: ChildProcess;

  beforeAll(async () => {
    const args = [
      "run",
      "apiserver",
      "--secure-port",
      "0",
      "--data-dir",
      dataDir,
      "--kubeconfig-out",
      kubeconfig,
    ];
    const script = `umask ${umask} && exec "$@"`;
    server = spawn("sh", ["-c", script, "sh", ...longshoreCommand, ...args], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    await once(createInterface(server.stdout as NodeJS.ReadableStream), "line");
  });
  afterAll(async () => {
    const ended = once(server, "exit");
    server.kill("SIGTERM");
    await ended;
    rmSync(base, { recursive: true, force: true });
  });

  test("keeps its data to itself, and a backup of it", async () => {
    const backup = join(base, "made", "backups", "today");
    const argv = [...longshoreCommand, "apiserver", "backup", "--data-dir", dataDir, "--out", backup];
    const { code, err } = await runProgram(["sh", "-c", `umask ${umask} && exec "$@"`, "sh", ...argv]);
    expect(code, err).toBe(0);
    expect(namesBelow(base)).toEqual(expect.arrayContaining(["made/data/kubeconfig", "made/backups/today"]));
    expect(tooWide(base)).toEqual([]);
  });
});
