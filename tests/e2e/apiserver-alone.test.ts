/** `longshore run apiserver` as a program: what it says, what it leaves, how it ends, and its backups. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HttpsConnections } from "../../packages/apiserver/src/testing/http.ts";
import { longshore, runProgram } from "./support/run-command.ts";
import { longshoreCommand } from "./support/test-cluster.ts";

let directory: string;
let dataDir: string;
let kubeconfigOut: string;
const children: ChildProcess[] = [];
const open: HttpsConnections[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "alone-"));
  dataDir = join(directory, "data");
  kubeconfigOut = join(directory, "kubeconfig");
});
afterEach(async () => {
  for (const to of open.splice(0)) to.close();
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  rmSync(directory, { recursive: true });
});

interface Started {
  readonly child: ChildProcess;
  readonly firstLine: string;
  readonly to: HttpsConnections;
  readonly headers: Readonly<Record<string, string>>;
  readonly ended: Promise<number | null>;
}

/** Starts the program; resolves at its line of readiness. */
async function start(...args: readonly string[]): Promise<Started> {
  const [program = "", ...rest] = longshoreCommand;
  const argv = [
    ...rest,
    "run",
    "apiserver",
    "--secure-port",
    "0",
    "--kubeconfig-out",
    kubeconfigOut,
    ...args,
  ];
  const child = spawn(program, argv, { stdio: ["ignore", "pipe", "ignore"] });
  children.push(child);
  const ended = once(child, "exit").then(([code]) => code as number | null);
  const [firstLine] = (await once(createInterface(child.stdout as NodeJS.ReadableStream), "line")) as [
    string,
  ];
  const config = JSON.parse(readFileSync(kubeconfigOut, "utf8"));
  const { cluster } = config.clusters[0];
  const ca = Buffer.from(cluster["certificate-authority-data"], "base64").toString();
  const to = new HttpsConnections(cluster.server, { ca });
  open.push(to);
  const headers = {
    authorization: `Bearer ${config.users[0].user.token}`,
    "content-type": "application/json",
  };
  return { child, firstLine, to, headers, ended };
}

const path = "/api/v1/namespaces/default/configmaps";

async function create({ to, headers }: Started, name: string): Promise<number> {
  const body = JSON.stringify({ metadata: { name } });
  return (await to.send({ method: "POST", path, headers, body })).status;
}

async function names({ to, headers }: Started): Promise<string[]> {
  const list = await to.json({ path, headers });
  const all: string[] = list.items.map((item: { metadata: { name: string } }) => item.metadata.name);
  return all.filter((name) => name !== "kube-root-ca.crt"); // The server's own.
}

describe("longshore run apiserver", () => {
  it("says where it serves once it does, and its kubeconfig is all that a client needs", async () => {
    const server = await start("--data-dir", dataDir);
    const { server: url } = JSON.parse(readFileSync(kubeconfigOut, "utf8")).clusters[0].cluster;
    expect(server.firstLine).toBe(`serving at ${url}`);
    expect(statSync(kubeconfigOut).mode & 0o777).toBe(0o600);
    expect((await server.to.send({ path: "/readyz", headers: server.headers })).body.toString()).toBe("ok");
    expect(await create(server, "a")).toBe(201);
  });

  it.each(["SIGTERM", "SIGINT"] as const)(
    "ends its watches, not cutting them, at %s, and itself with 0",
    async (signal) => {
      const server = await start("--in-memory");
      const watch: IncomingMessage = await server.to.open({
        path: `${path}?watch=true`,
        headers: server.headers,
      });
      await create(server, "a");
      let text = "";
      watch.on("data", (data: Buffer) => {
        text += data;
      });
      while (!text.includes('"a"')) await once(watch, "data");
      const over = Promise.race([
        once(watch, "end").then(() => "ended"),
        once(watch, "aborted").then(() => "cut"),
      ]);
      server.child.kill(signal);
      expect(await over).toBe("ended");
      expect(await server.ended).toBe(0);
    },
  );

  it("has after kill -9 what was acknowledged, under the same address and token", async () => {
    const first = await start("--data-dir", dataDir);
    const token = first.headers.authorization;
    const port = new URL(first.firstLine.slice("serving at ".length)).port;
    for (const name of ["a", "b", "c"]) expect(await create(first, name)).toBe(201);
    first.child.kill("SIGKILL");
    await first.ended;
    const second = await start("--data-dir", dataDir, "--secure-port", port);
    expect(second.headers.authorization).toBe(token);
    expect(await names(second)).toEqual(["a", "b", "c"]);
  });

  it("lets a watch go on after a restart where it was", async () => {
    const first = await start("--data-dir", dataDir);
    await create(first, "a");
    const { metadata } = await first.to.json({ path, headers: first.headers });
    await create(first, "b");
    first.child.kill("SIGTERM");
    expect(await first.ended).toBe(0);
    const second = await start("--data-dir", dataDir);
    const watchPath = `${path}?watch=true&timeoutSeconds=1&resourceVersion=${metadata.resourceVersion}`;
    const { body } = await second.to.send({ path: watchPath, headers: second.headers });
    const events = body
      .toString()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events.map((e) => `${e.type} ${e.object.metadata.name}`)).toContain("ADDED b");
    expect(events.map((e) => e.object.metadata.name)).not.toContain("a");
  });

  it("keeps nothing when it is in memory", async () => {
    const first = await start("--in-memory");
    await create(first, "a");
    first.child.kill("SIGTERM");
    await first.ended;
    expect(await names(await start("--in-memory"))).toEqual([]);
  });

  it.each([
    ["no place for its data", [], 2, /--data-dir is required, or --in-memory/],
    ["two places", ["--data-dir", "/tmp/x", "--in-memory"], 2, /exclude each other/],
    ["a port that is none", ["--in-memory", "--secure-port", "70000"], 2, /--secure-port: "70000"/],
    [
      "a version that is none",
      ["--in-memory", "--emulated-version", "2.0"],
      2,
      /emulated version "2.0": name one from 1.20/,
    ],
    [
      "a directory that is a file",
      ["--data-dir", "/dev/null"],
      1,
      /^longshore: the data directory \/dev\/null cannot be opened/,
    ],
  ] as const)("refuses %s in one sentence", async (_name, args, code, message) => {
    const outcome = await longshore("run", "apiserver", ...args);
    expect(outcome.code).toBe(code);
    expect(outcome.err).toMatch(message);
    expect(outcome.out).toBe("");
  });

  it.skipIf(process.getuid?.() !== 0)(
    "refuses a directory that a server in another container has, and loses nothing of it",
    async () => {
      const first = await start("--data-dir", dataDir);
      const container = ["unshare", "--pid", "--fork", "--mount-proc"];
      const argv = [...container, ...longshoreCommand, "run", "apiserver", "--data-dir", dataDir];
      const [second] = await Promise.all([
        runProgram([...argv, "--secure-port", "0", "--kubeconfig-out", join(directory, "other")]),
        ...Array.from({ length: 20 }, async (_, i) => expect(await create(first, `c${i}`)).toBe(201)),
      ]);
      expect(second.code).toBe(1);
      expect(second.err).toContain(
        `the data directory ${dataDir} is in use by process ${first.child.pid} of ${hostname()}, which is another machine or container: stop that process or choose another directory`,
      );
      first.child.kill("SIGKILL");
      await first.ended;
      const again = await start("--data-dir", dataDir);
      expect(await names(again)).toHaveLength(20);
    },
  );

  it("refuses a directory that another has, and a store that is damaged", async () => {
    const first = await start("--data-dir", dataDir);
    await create(first, "a");
    const second = await longshore("run", "apiserver", "--data-dir", dataDir);
    expect(second.code).toBe(1);
    expect(second.err).toContain(`${dataDir} is in use by process ${first.child.pid}`);
    first.child.kill("SIGTERM");
    await first.ended;
    const log = join(dataDir, "objects", "000001.log");
    const bytes = readFileSync(log);
    bytes[200] = (bytes[200] as number) ^ 1;
    writeFileSync(log, bytes);
    const third = await longshore("run", "apiserver", "--data-dir", dataDir);
    expect(third.code).toBe(1);
    expect(third.err).toContain(`the store ${log} is damaged: restore it from a backup`);
  });
});

describe("longshore apiserver", () => {
  it("backs up a server that runs, and restores what it had", async () => {
    const first = await start("--data-dir", dataDir);
    for (const name of ["a", "b"]) await create(first, name);
    const backup = join(directory, "backup");
    const made = await longshore("apiserver", "backup", "--data-dir", dataDir, "--out", backup);
    expect(made.err).toBe("");
    expect(made.out).toMatch(new RegExp(`^backed up to ${backup}: \\d+ objects, version \\d+\\n$`));
    expect(statSync(backup).mode & 0o777).toBe(0o600);
    await create(first, "later");
    const over = await longshore("apiserver", "restore", "--from", backup, "--data-dir", dataDir);
    expect(over.code).toBe(1);
    expect(over.err).toMatch(/^longshore: the data directory \S+ is in use by process/);
    const restoredDir = join(directory, "restored");
    const restored = await longshore("apiserver", "restore", "--from", backup, "--data-dir", restoredDir);
    expect(restored.code).toBe(0);
    expect(await names(await start("--data-dir", restoredDir))).toEqual(["a", "b"]);
  });
});
