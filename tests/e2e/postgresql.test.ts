/**
 * PostgreSQL survives the crossing and what befalls a node: every row whose commit was acknowledged to a client outside the cluster is
 * there, and no page, index or row is damaged. Needs root and PostgreSQL.
 */
import { mkdtempSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resources } from "@longshore/kube";
import { acknowledgedRecords, agentProcess, lostRecords } from "@longshore/local";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { recordLine } from "../../packages/local/src/records/records.ts";
import { DetachedCluster } from "./support/detached-cluster.ts";
import { freePort } from "./support/free-port.ts";
import { LedgerClient, ledgerName } from "./support/ledger-client.ts";
import {
  ledgerMarks,
  ledgerReader,
  type PostgresqlOptions,
  postgresql,
  postgresqlPrograms,
  postgresqlSecret,
  postgresqlSet,
  reasonAgainstPostgresql,
} from "./support/postgresql.ts";
import { containersOn, endLikePowerCut, killAll } from "./support/power-cut.ts";

const never = new AbortController().signal;
const node = "node-1";
const reason = reasonAgainstPostgresql();
if (reason !== undefined) console.warn(`PostgreSQL is not tried as a workload: ${reason}`);

/** Whether this process has CAP_SYS_RESOURCE. Source: capabilities(7). */
function mayGrowMountedExt4(): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
  return ((BigInt(`0x${effective}`) >> 24n) & 1n) === 1n;
}

describe.skipIf(reason !== undefined)("PostgreSQL", () => {
  let cluster: DetachedCluster;
  let client: LedgerClient | undefined;
  let outside: string;
  let options: PostgresqlOptions;

  beforeEach(async () => {
    outside = mkdtempSync(join(tmpdir(), "ls-ledger-"));
    cluster = new DetachedCluster();
    await cluster.start();
  });
  afterEach(async () => {
    await client?.stop();
    await cluster.down();
    rmSync(outside, { recursive: true, force: true });
  });

  /** Starts the server and the client that writes to it. */
  async function start(volumeMode: PostgresqlOptions["volumeMode"]): Promise<void> {
    const password = crypto.randomUUID();
    options = { programs: postgresqlPrograms() ?? "", port: await freePort(), volumeMode };
    await cluster.kube.create(resources.secrets, postgresqlSecret(password), { signal: never });
    await cluster.kube.create(resources.statefulSets, postgresqlSet(options), { signal: never });
    client = new LedgerClient({ ...options, password, file: join(outside, "acknowledged") });
    await writes();
  }

  const ledger = () => {
    if (client === undefined) throw new Error("there is no client");
    return client;
  };
  const acknowledged = () => acknowledgedRecords([ledger().acknowledgements()]);
  const pod = () => cluster.pod(postgresql.pod.name);
  const container = async () => (await pod())?.status?.containerStatuses?.[0];

  /** Waits until commits are acknowledged that were sent after now, by a server that counts as ready. */
  async function writes(): Promise<void> {
    const before = ledger().sent;
    await cluster.until("the server is ready", async () => (await container())?.ready === true);
    await cluster.until("rows are committed", () => [...acknowledged()].some((row) => row >= before + 20));
  }

  const containers = async () => containersOn(cluster.dir, node, (await pod())?.metadata.uid);

  /** Stops the server; a new pod judges what it has left and reads all of it. */
  async function expectNothingLost(): Promise<void> {
    const { kube } = cluster;
    await writes();
    await kube.patch(
      resources.statefulSets,
      postgresql.set,
      { type: "merge", body: { spec: { replicas: 0 } } },
      { signal: never },
    );
    await cluster.until("the server is gone", async () => (await pod()) === undefined);
    await ledger().stop();
    const [acks, sent] = [acknowledged(), ledger().sent];
    client = undefined;
    await kube.create(resources.pods, ledgerReader(options), { signal: never });
    await cluster.until("the reader has ended", async () => {
      return ["Succeeded", "Failed"].includes((await cluster.pod("reader"))?.status?.phase ?? "");
    });
    const log = await cluster.log("reader");
    expect(log).toContain(ledgerMarks.end);
    expect((await cluster.pod("reader"))?.status?.phase).toBe("Succeeded");
    expect(log).toMatch(/Bad checksums: +0\n/);
    const rows = log
      .slice(log.indexOf(ledgerMarks.begin), log.indexOf(ledgerMarks.end))
      .split("\n")
      .slice(1, -1);
    expect(acks.size).toBeGreaterThan(100);
    expect(lostRecords(ledgerName, rows.join("\n"), acks)).toEqual([]);
    // No row that was never sent, none twice, none torn.
    const written = new Set(Array.from({ length: sent }, (_, i) => recordLine(ledgerName, i + 1)));
    expect(rows.filter((row) => !written.delete(row))).toEqual([]);
    await kube.delete(resources.pods, { namespace: "default", name: "reader" }, { signal: never });
    await cluster.until("nothing is attached", async () => {
      const disks = await cluster.cloud.listDisks(never);
      return disks.every((disk) => disk.attachments.length === 0);
    });
  }

  /** A crossing, as a user begins it, while the client writes. Its drain moves the pod. */
  async function cross(verb: "migrate" | "rollback"): Promise<void> {
    const before = (await pod())?.metadata.uid;
    await cluster.succeed(verb, "--plugin", "aws-ebs");
    await writes();
    expect((await pod())?.metadata.uid).not.toBe(before);
  }

  /** kill -9 of all of the container's processes. Its shim sees its end; the node agent starts it again. */
  async function killContainer(): Promise<void> {
    const { restartCount = 0 } = (await container()) ?? {};
    const [running] = await containers();
    // The postmaster and what it has started, each in a group of its own.
    expect(running?.all.length).toBeGreaterThan(4);
    killAll(running?.all ?? []);
    await cluster.until("it was started again", async () => {
      return ((await container())?.restartCount ?? 0) > restartCount;
    });
    await writes();
  }

  /** The pod goes, in order, and the StatefulSet makes the next. */
  async function deletePod(): Promise<void> {
    const before = (await pod())?.metadata.uid;
    await cluster.kube.delete(resources.pods, postgresql.pod, { signal: never });
    await cluster.until("there is another pod", async () => {
      const uid = (await pod())?.metadata.uid;
      return uid !== undefined && uid !== before;
    });
    await writes();
  }

  /** kill -9 of the node agent. The server and its connections do not notice. */
  async function killAgent(): Promise<void> {
    const { connections } = ledger();
    const agent = cluster.pidOf(agentProcess(node));
    killAll([agent]);
    await cluster.until("there is a new agent", () => cluster.pidOf(agentProcess(node)) !== agent);
    await writes();
    expect(ledger().connections).toBe(connections);
  }

  /** kill -9 of everything of the node at once: agent, driver, shims, containers. */
  async function killNode(): Promise<void> {
    const { connections } = ledger();
    const running = await containers();
    killAll([
      ...[agentProcess(node), `csi-node-${node}`].map((name) => cluster.pidOf(name)),
      ...running.flatMap(({ shim, all }) => [shim, ...all]),
    ]);
    await cluster.until("it is connected again", () => ledger().connections > connections);
    await writes();
  }

  /** The machine loses its power and starts: no process, mount or loop device is left. */
  async function cutPower(): Promise<void> {
    endLikePowerCut(cluster.dir, true);
    await cluster.start();
    await writes();
  }

  test("on a file system", { timeout: 300_000 }, async () => {
    await start("Filesystem");
    await killContainer();
    await cross("migrate");
    await killAgent();
    await killNode();
    await killContainer();
    await cutPower();
    await cross("rollback");
    await cutPower();
    await expectNothingLost();
  });

  const claim = () => cluster.kube.get(resources.persistentVolumeClaims, postgresql.claim, { signal: never });
  const claimBytes = async () => (await claim())?.status?.capacity?.storage;
  /** The size of the file system that the server writes to, in bytes. */
  const fileSystemBytes = async () => {
    const [running] = await containers();
    const { blocks, bsize } = statfsSync(`/proc/${running?.container}/root/data`);
    return blocks * bsize;
  };
  const GiB = 2 ** 30;

  /** Asks for so much and waits until the node has grown the file system under the server, or has said why it cannot. */
  async function growInUse(size: string): Promise<"grown" | "refused"> {
    const before = [(await pod())?.metadata.uid, ledger().connections];
    const body = { spec: { resources: { requests: { storage: size } } } };
    await cluster.kube.patch(
      resources.persistentVolumeClaims,
      postgresql.claim,
      { type: "merge", body },
      { signal: never },
    );
    const refusal = async () => {
      const { items } = await cluster.kube.list(resources.events, { signal: never });
      return items.find(({ reason }) => reason === "VolumeResizeFailed")?.message;
    };
    let said: string | undefined;
    // A node reads the claims of its volumes every 60 to 90 s (docs/behaviour/node-agent.md).
    const answered = async () => {
      said = await refusal();
      return said !== undefined || (await claimBytes()) === size;
    };
    await cluster.until("the node has answered", answered, 120_000);
    await writes();
    expect([(await pod())?.metadata.uid, ledger().connections]).toEqual(before);
    if (said === undefined) return "grown";
    expect(said).toContain("it grows when the volume is next mounted on a node");
    expect((await claim())?.status).toMatchObject({
      capacity: { storage: "1Gi" },
      conditions: [{ type: "FileSystemResizePending", status: "True" }],
    });
    return "refused";
  }

  test("on a file system that grows in use, or where the kernel refuses that, with the crossing", {
    timeout: 300_000,
  }, async () => {
    await start("Filesystem");
    expect(await fileSystemBytes()).toBeLessThan(GiB);
    const outcome = await growInUse("2Gi");
    expect(outcome).toBe(mayGrowMountedExt4() ? "grown" : "refused");
    if (outcome === "grown") expect(await fileSystemBytes()).toBeGreaterThan(1.8 * GiB);
    await cross("migrate");
    await cluster.until("the claim has grown", async () => (await claimBytes()) === "2Gi");
    expect(await fileSystemBytes()).toBeGreaterThan(1.8 * GiB);
    expect((await claim())?.status?.conditions ?? []).toEqual([]);
    await expectNothingLost();
  });

  test("on a raw block volume, whose file system the container makes and mounts itself", {
    timeout: 300_000,
  }, async () => {
    await start("Block");
    await killContainer();
    await deletePod();
    await cross("migrate");
    await killNode();
    await deletePod();
    await cutPower();
    await cross("rollback");
    await expectNothingLost();
  });
});
