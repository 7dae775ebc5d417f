/** The dashboard in a real browser, fed by a real API server. Skipped, saying so, where chromium is missing. */
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { type Dashboard, startDashboard } from "@longshore/dashboard";
import {
  createHttpClient,
  type HttpKubeClient,
  type KubeClient,
  loadKubeconfig,
  type Node,
  resources,
  type Stored,
} from "@longshore/kube";
import { readCrossingStatus } from "@longshore/local";
import { noMeter, silentLogger, systemClock, systemRandom } from "@longshore/runtime";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { longshoreCommand, TestCluster } from "./support/test-cluster.ts";

const executablePath = process.env.LONGSHORE_CHROMIUM ?? "/usr/bin/chromium";
const hasBrowser = existsSync(executablePath);
if (!hasBrowser) console.warn(`no browser at ${executablePath}: the dashboard is not tested in one`);

const args = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const signal = new AbortController().signal;
const ebs = "kubernetes.io/aws-ebs";
const driver = "ebs.csi.aws.com";

describe.skipIf(!hasBrowser)("the dashboard in a browser", () => {
  let kube: KubeClient;
  let dashboard: Dashboard;
  let browser: Browser;
  let page: Page;
  const problems: string[] = [];
  // Kept when a directory is named, to be looked at.
  const kept = process.env.LONGSHORE_SCREENSHOTS;
  const shots = kept ?? mkdtempSync(join(tmpdir(), "longshore-shots-"));

  beforeAll(async () => {
    const root = fileURLToPath(new URL("../../", import.meta.url));
    execFileSync(process.execPath, [`${root}node_modules/typescript/bin/tsc`, "-b", "packages/dashboard"], {
      cwd: root,
    });
    const env = { clock: systemClock, random: systemRandom, logger: silentLogger, meter: noMeter };
    kube = createApiServer(env, { store: memoryStore() }).client();
    await populate(kube);
    dashboard = await startDashboard({ ...env, kube });
    browser = await chromium.launch({ executablePath, args });
    page = await browser.newPage({ viewport: { width: 1280, height: 1000 }, colorScheme: "light" });
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") problems.push(message.text());
    });
    page.on("pageerror", (error) => problems.push(String(error)));
    await page.goto(dashboard.url);
  });

  afterAll(async () => {
    await browser?.close();
    await dashboard?.stop();
    if (kept === undefined) rmSync(shots, { recursive: true, force: true });
  });

  const shoot = (name: string) => page.screenshot({ path: join(shots, name), fullPage: true });
  const card = (name: string) => page.locator("article", { has: page.getByRole("heading", { name }) });

  test("shows the cluster as it is", async () => {
    await page.getByRole("status").getByText("live").waitFor();
    await expect.poll(() => page.locator("article").count()).toBe(3);
    expect(await card("node-1").textContent()).toMatch(/Ready[\s\S]*us-east-1a[\s\S]*writer-0 · Running/);
    expect(await page.locator("#crossing").textContent()).toContain("in-tree on every node");
    const row = page.getByRole("row", { name: /default\/data-writer-0/ });
    expect(await row.textContent()).toContain("aws://us-east-1a/vol-0a1b2c3d4e5f60000");
    expect(await row.textContent()).toContain("node-1 · in-tree");
    expect(await row.textContent()).toMatch(/1Gi[\s\S]*writer-0/);
    const clipped = await page.evaluate(() =>
      [...document.querySelectorAll(".scroll")]
        .filter((box) => box.scrollWidth > box.clientWidth)
        .map(({ id }) => id),
    );
    expect(clipped).toEqual([]);
    await shoot("light.png");
  });

  test("shows what the filter asks for, by the keyboard alone, and keeps to it when the cluster changes", async () => {
    await page.keyboard.press("/");
    await page.keyboard.type("writer-0 node-1");
    await expect.poll(() => page.locator("article:visible").count()).toBe(1);
    expect(await page.locator("#volumes tbody tr:visible").count()).toBe(1);
    expect(await page.locator("#filter-count").textContent()).toMatch(/^\d+ of \d+ match$/);
    await anEvent(kube, "unrelated", "Normal", "nothing that is looked for");
    await page.getByText("nothing that is looked for").waitFor({ state: "attached" });
    await expect.poll(() => page.getByText("nothing that is looked for").isVisible()).toBe(false);
    await page.keyboard.press("Escape");
    await expect.poll(() => page.locator("article:visible").count()).toBe(3);
    await page.getByText("nothing that is looked for").waitFor();
  });

  test("follows a crossing without being loaded again", async () => {
    await page.evaluate(() => document.body.setAttribute("data-same-page", "yes"));
    await carry(kube, "node-1", 0);
    await card("node-1").getByText("kubernetes.io/aws-ebs", { exact: true }).waitFor();
    await expect.poll(() => page.locator("#crossing").textContent()).toContain("CSI on 1 of 3 nodes");
    const row = page.getByRole("row", { name: /default\/data-writer-0/ });
    await expect.poll(() => row.textContent()).toContain("node-1 · CSI");
    await changeNode(kube, "node-2", (node) => ({
      ...node,
      metadata: {
        ...node.metadata,
        annotations: { "longshore.dev/cordoned-for-crossing": "aws-ebs" },
      },
      spec: { ...node.spec, unschedulable: true },
    }));
    await card("node-2").getByText("cordoned").waitFor();
    await kube.create(
      resources.pods,
      {
        metadata: { name: "writer-3", namespace: "default" },
        spec: { containers: [{ name: "writer", image: "writer" }] },
      },
      { signal },
    );
    await page.locator("#pending").getByText("writer-3 · Pending").waitFor();
    expect(await page.evaluate(() => document.body.getAttribute("data-same-page"))).toBe("yes");
    await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
    await shoot("dark.png");
  });

  test.each([1280, 360])("nothing is cut off at %i px, however long names are", async (width) => {
    const name = `a-pod-whose-name-is-as-long-as-some-are-in-large-clusters-${width}`;
    const pod = { metadata: { name, namespace: "default" } };
    const containers = [{ name: "writer", image: "writer" }];
    await kube.create(resources.pods, { ...pod, spec: { nodeName: "node-1", containers } }, { signal });
    await card("node-1").getByText(name).waitFor();
    await page.setViewportSize({ width, height: 800 });
    const outside = await page.evaluate(() =>
      [...document.querySelectorAll("main *, header *")]
        .filter((part) => {
          const within = part.closest(".card, table")?.getBoundingClientRect().right ?? window.innerWidth;
          const right = Math.min(within, window.innerWidth);
          return part.getBoundingClientRect().width > 0 && part.getBoundingClientRect().right > right + 1;
        })
        .map((part) => `${part.tagName} ${part.textContent?.slice(0, 60)}`),
    );
    expect(outside).toEqual([]);
    await shoot(`${width}.png`);
    await page.setViewportSize({ width: 1280, height: 1000 });
  });

  test("every heading and table has a name", async () => {
    for (const name of ["Crossing", "Nodes", "Volumes", "VolumeAttachments", "Events"]) {
      expect(await page.getByRole("region", { name, exact: true }).count(), name).toBe(1);
    }
  });

  test("markup in an object stays text", async () => {
    await kube.create(resources.nodes, { metadata: { name: "node-9", labels: {} }, spec: {} }, { signal });
    await anEvent(kube, "evil", "Warning", "<img src=x onerror=alert(1)>");
    await page.getByText("<img src=x onerror=alert(1)>").waitFor();
    expect(await page.locator("#events img").count()).toBe(0);
  });

  test("broke no rule of its own content security policy", () => {
    expect(problems).toEqual([]);
  });

  test("says so, and since when, when it has lost the dashboard", async () => {
    await dashboard.stop();
    await page
      .getByRole("status")
      .getByText(/^disconnected since .*\d.*, retrying$/)
      .waitFor();
    await page.getByRole("alert").getByText("Is `longshore dashboard` still running?").waitFor();
    expect(await page.locator("body").getAttribute("data-stale")).toBe("all");
    await shoot("lost.png");
  });
});

describe.skipIf(!hasBrowser)("the dashboard of a cluster that goes away", () => {
  let cluster: TestCluster;
  let kube: HttpKubeClient;
  let dashboard: Dashboard;
  let browser: Browser;
  let page: Page;
  const kept = process.env.LONGSHORE_SCREENSHOTS;

  beforeAll(async () => {
    cluster = await TestCluster.up();
    const { env } = cluster;
    const { journalFile, kubeconfig } = cluster.cluster.layout;
    const crossing = () => readCrossingStatus(env, journalFile("aws-ebs"));
    // Of its own, as the command has it: the cluster closes the other when it goes down.
    kube = createHttpClient(env, await loadKubeconfig(env.host, { path: kubeconfig }));
    dashboard = await startDashboard({ ...env, kube }, { crossing });
    browser = await chromium.launch({ executablePath, args });
    page = await browser.newPage({ viewport: { width: 1280, height: 1000 }, colorScheme: "light" });
    await page.goto(dashboard.url);
    await page.getByRole("status").getByText("live").waitFor();
  });
  afterAll(async () => {
    await browser?.close();
    await dashboard?.stop();
    await kube?.close();
  });

  const shoot = async (name: string) => {
    if (kept === undefined) return;
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.screenshot({ path: join(kept, `${name}-${colorScheme}.png`), fullPage: true });
    }
  };
  const isStale = (part: string) =>
    page.evaluate((name) => (document.body.dataset.stale ?? "").split(" ").includes(name), part);

  test("a crossing that waits, and one whose process is gone", async () => {
    const writer = { namespace: "default", name: "writer-0" };
    const hold = (finalizers: string[]) =>
      cluster.kube.patch(
        resources.pods,
        writer,
        { type: "merge", body: { metadata: { finalizers } } },
        { signal },
      );
    await hold(["example.com/stay"]);
    const [program = "", ...first] = longshoreCommand;
    const migrate = spawn(program, [...first, "migrate", "--plugin", "aws-ebs", "--dir", cluster.dir], {
      stdio: "ignore",
    });
    const run = page.locator("#run");
    await run.getByText(/^waits for Pod default\/writer-0 \(.*, since /).waitFor();
    expect(await run.textContent()).toMatch(/running.*node-1: drain since .*\d/);
    expect(await run.textContent()).toContain(`process ${migrate.pid}`);
    await shoot("crossing-waits");
    migrate.kill("SIGKILL");
    await run.getByText(/^its process is gone/).waitFor();
    await shoot("crossing-interrupted");
    await hold([]);
  });

  test("a node whose agent hangs", async () => {
    cluster.signal("node-agent-node-1", "SIGSTOP");
    try {
      await page.getByText(/^not reporting since /).waitFor({ timeout: 90_000 });
      await shoot("node-silent");
    } finally {
      cluster.signal("node-agent-node-1", "SIGCONT");
    }
    await expect.poll(() => page.getByText(/^not reporting since /).count(), { timeout: 30_000 }).toBe(0);
    expect(await isStale("cluster")).toBe(false);
  }, 150_000);

  test("an API server that hangs, and comes back", async () => {
    cluster.signal("apiserver", "SIGSTOP");
    try {
      await page
        .getByRole("status")
        .getByText(/^stale since .*\d.*, retrying$/)
        .waitFor();
      expect(await isStale("cluster")).toBe(true);
      await page
        .getByRole("alert")
        .getByText(/the API server does not answer/)
        .waitFor();
    } finally {
      cluster.signal("apiserver", "SIGCONT");
    }
    await page.getByRole("status").getByText("live").waitFor({ timeout: 90_000 });
    expect(await isStale("cluster")).toBe(false);
    expect(await page.getByRole("alert").count()).toBe(0);
  }, 150_000);

  test("a cluster that is gone altogether", async () => {
    await cluster.down();
    await page
      .getByRole("status")
      .getByText(/^stale since /)
      .waitFor();
    expect(await page.getByRole("status").getByText("live").count()).toBe(0);
    const opacity = await page.locator("#nodes").evaluate((nodes) => getComputedStyle(nodes).opacity);
    expect(Number(opacity)).toBeLessThan(1);
    await shoot("cluster-gone");
  });
});

const handle = (i: number) => `vol-0a1b2c3d4e5f6${String(i).padStart(4, "0")}`;
const zoneOf = (i: number) => `us-east-1${"abc"[i]}`;

/** Three nodes with a writer each, before the crossing. */
async function populate(kube: KubeClient): Promise<void> {
  for (const i of [0, 1, 2]) {
    const name = `node-${i + 1}`;
    await kube.create(
      resources.nodes,
      { metadata: { name, labels: { "topology.kubernetes.io/zone": zoneOf(i) } }, spec: {} },
      { signal },
    );
    await reportVolumes(kube, name, `${ebs}/aws://${zoneOf(i)}/${handle(i)}`);
    await kube.create(
      resources.csiNodes,
      { metadata: { name }, spec: { drivers: [{ name: driver, nodeID: `i-${i}` }] } },
      { signal },
    );
    await kube.create(
      resources.persistentVolumes,
      {
        metadata: { name: `pvc-5f0c1d2e-${i}` },
        spec: {
          capacity: { storage: "1Gi" },
          accessModes: ["ReadWriteOnce"],
          claimRef: { namespace: "default", name: `data-writer-${i}` },
          persistentVolumeReclaimPolicy: "Delete",
          awsElasticBlockStore: { volumeID: `aws://${zoneOf(i)}/${handle(i)}`, fsType: "ext4" },
        },
      },
      { signal },
    );
    const pod = await kube.create(
      resources.pods,
      {
        metadata: { name: `writer-${i}`, namespace: "default" },
        spec: {
          nodeName: name,
          containers: [{ name: "writer", image: "writer" }],
          volumes: [{ name: "data", persistentVolumeClaim: { claimName: `data-writer-${i}` } }],
        },
      },
      { signal },
    );
    await kube.updateStatus(
      resources.pods,
      { ...pod, status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } },
      { signal },
    );
    await anEvent(
      kube,
      `attached-${i}`,
      "Normal",
      `AttachVolume.Attach succeeded for volume "pvc-5f0c1d2e-${i}"`,
    );
  }
}

/** What the crossing of one node leaves in the API. */
async function carry(kube: KubeClient, name: string, i: number): Promise<void> {
  const csiNode = await kube.get(resources.csiNodes, { name }, { signal });
  if (csiNode === undefined) throw new Error("no CSINode");
  const annotations = { "storage.alpha.kubernetes.io/migrated-plugins": ebs };
  await kube.update(
    resources.csiNodes,
    { ...csiNode, metadata: { ...csiNode.metadata, annotations } },
    { signal },
  );
  await reportVolumes(kube, name, `kubernetes.io/csi/${driver}^${handle(i)}`);
  const va = await kube.create(
    resources.volumeAttachments,
    {
      metadata: { name: "csi-3f786850e387550fdab836ed7e6dc881de23001b" },
      spec: { attacher: driver, nodeName: name, source: { persistentVolumeName: `pvc-5f0c1d2e-${i}` } },
    },
    { signal },
  );
  await kube.updateStatus(resources.volumeAttachments, { ...va, status: { attached: true } }, { signal });
}

function reportVolumes(kube: KubeClient, name: string, uniqueName: string): Promise<void> {
  return changeNode(
    kube,
    name,
    (node) => ({
      ...node,
      status: {
        ...node.status,
        conditions: [{ type: "Ready", status: "True" }],
        volumesAttached: [{ name: uniqueName, devicePath: "" }],
        volumesInUse: [uniqueName],
      },
    }),
    "status",
  );
}

async function changeNode(
  kube: KubeClient,
  name: string,
  change: (node: Stored<Node>) => Node,
  part?: "status",
): Promise<void> {
  const node = await kube.get(resources.nodes, { name }, { signal });
  if (node === undefined) throw new Error(`no node ${name}`);
  const changed = change(node);
  if (part === "status") await kube.updateStatus(resources.nodes, changed, { signal });
  else await kube.update(resources.nodes, changed, { signal });
}

async function anEvent(kube: KubeClient, name: string, type: string, message: string): Promise<void> {
  await kube.create(
    resources.events,
    {
      metadata: { name, namespace: "default" },
      involvedObject: { kind: "Pod", namespace: "default", name: "writer-0" },
      type,
      reason: "SuccessfulAttachVolume",
      message,
      lastTimestamp: new Date().toISOString(),
    },
    { signal },
  );
}
