/**
 * Kubernetes' own controller manager, with all its controllers, on our API server and on the real one: the same outcome of
 * the same objects, no error that it repeats, and no write once everything is as it should be.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningApiServer, runApiServer } from "../../packages/apiserver/src/index.ts";
import { HttpsConnections } from "../../packages/apiserver/src/testing/http.ts";
import { realEnv } from "../../packages/apiserver/src/testing/serve.ts";
import { type ControlPlane, eventually, startControlPlane } from "./support/index.ts";
import { type Daemon, startDaemon } from "./support/processes.ts";

type Call = (
  method: string,
  path: string,
  body?: object,
) => Promise<{ readonly status: number; readonly body: Answer }>;
// biome-ignore lint/suspicious/noExplicitAny: answers of any kind are looked into
type Answer = any;

let directory: string;
let server: RunningApiServer;
let manager: Daemon;
let kubernetes: ControlPlane;
let to: HttpsConnections;

const sync = ["--horizontal-pod-autoscaler-sync-period=2s", "--kube-api-qps=200", "--kube-api-burst=200"];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "ls-manager-"));
  const kubeconfigOut = join(directory, "kubeconfig");
  const dataDir = join(directory, "data");
  const options = { dataDir, port: 0, kubeconfigOut, emulatedVersion: "1.20", controllers: false };
  server = await runApiServer(realEnv, options);
  to = new HttpsConnections(server.url, { ca: server.caCert });
  const pki = join(dataDir, "pki");
  const args = [
    `--kubeconfig=${kubeconfigOut}`,
    "--leader-elect=false",
    "--port=0",
    "--secure-port=0",
    "--controllers=*",
    `--service-account-private-key-file=${join(pki, "sa.key")}`,
    `--root-ca-file=${join(pki, "ca.crt")}`,
    ...sync,
  ];
  const program = join(process.env.KUBEBUILDER_ASSETS ?? "", "kube-controller-manager");
  manager = startDaemon("kube-controller-manager", program, args, join(directory, "manager.log"));
  kubernetes = await startControlPlane({ controllerManager: { controllers: ["*"], args: sync } });
}, 180_000);
afterAll(async () => {
  await manager?.stop();
  to?.close();
  await server?.stop();
  await kubernetes?.stop();
  await rm(directory, { recursive: true, force: true });
});

const ours: Call = async (method, path, body) => {
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const answer = await to.send({
    method,
    path,
    headers: { authorization: `Bearer ${server.adminToken}`, "content-type": type },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: JSON.parse(answer.body.toString()) };
};
const theirs: Call = (method, path, body) =>
  kubernetes.call(
    method,
    path,
    body,
    method === "PATCH" ? { contentType: "application/merge-patch+json" } : {},
  );

const template = (app: string, more: object = {}) => ({
  // What a text has to survive on its way through revisions: the order of names, and what Go escapes.
  metadata: { labels: { app, "10": "a", "9": "b" } },
  spec: { containers: [{ name: "main", image: "image", args: ["<a&b>"] }], ...more },
});
const inSpace = "/api/v1/namespaces/work";
const apps = "/apis/apps/v1/namespaces/work";
const batch = "/apis/batch/v1/namespaces/work";
const selector = (app: string) => ({ matchLabels: { app } });

const objects: readonly (readonly [path: string, kind: string, name: string, rest: object])[] = [
  ["/api/v1/namespaces", "v1 Namespace", "work", {}],
  ["/api/v1/nodes", "v1 Node", "node-1", {}],
  [
    `${inSpace}/resourcequotas`,
    "v1 ResourceQuota",
    "quota",
    { spec: { hard: { pods: "20", configmaps: "10" } } },
  ],
  [
    `${apps}/deployments`,
    "apps/v1 Deployment",
    "web",
    { spec: { replicas: 2, selector: selector("web"), template: template("web") } },
  ],
  [
    `${apps}/daemonsets`,
    "apps/v1 DaemonSet",
    "agent",
    { spec: { selector: selector("agent"), template: template("agent") } },
  ],
  [
    `${apps}/statefulsets`,
    "apps/v1 StatefulSet",
    "db",
    {
      spec: {
        serviceName: "db",
        replicas: 2,
        podManagementPolicy: "Parallel",
        selector: selector("db"),
        template: template("db"),
      },
    },
  ],
  [
    `${batch}/jobs`,
    "batch/v1 Job",
    "once",
    { spec: { template: template("once", { restartPolicy: "Never" }) } },
  ],
  [
    "/apis/batch/v1beta1/namespaces/work/cronjobs",
    "batch/v1beta1 CronJob",
    "never",
    {
      spec: {
        schedule: "0 0 1 1 *",
        jobTemplate: { spec: { template: template("never", { restartPolicy: "Never" }) } },
      },
    },
  ],
  [
    "/apis/policy/v1beta1/namespaces/work/poddisruptionbudgets",
    "policy/v1beta1 PodDisruptionBudget",
    "web",
    { spec: { minAvailable: 1, selector: selector("web") } },
  ],
];

/** What the controllers have made of it, in numbers and names that are the same on any server. */
async function outcome(call: Call): Promise<Answer> {
  const list = async (path: string): Promise<Answer[]> => (await call("GET", path)).body.items ?? [];
  const one = async (path: string): Promise<Answer> => (await call("GET", path)).body;
  const pods = await list(`${inSpace}/pods`);
  const job = await one(`${batch}/jobs/once`);
  const count = (app: string) => pods.filter(({ metadata }) => metadata.labels?.app === app).length;
  const { conditions: _, ...web } = (await one(`${apps}/deployments/web`)).status ?? {};
  return {
    pods: Object.fromEntries(["web", "agent", "db", "once", "never"].map((app) => [app, count(app)])),
    web,
    replicaSets: (await list(`${apps}/replicasets`)).map(({ spec }) => spec.replicas),
    agent: (await one(`${apps}/daemonsets/agent`)).status,
    revisions: (await list(`${apps}/controllerrevisions`)).map(({ revision }) => revision),
    db: (await one(`${apps}/statefulsets/db`)).status?.replicas,
    job: {
      succeeded: job.status?.succeeded,
      conditions: job.status?.conditions?.map(({ type }: Answer) => type),
    },
    quota: (await one(`${inSpace}/resourcequotas/quota`)).status,
    budget: (await one("/apis/policy/v1beta1/namespaces/work/poddisruptionbudgets/web")).status?.expectedPods,
    accounts: (await list(`${inSpace}/serviceaccounts`)).map(({ metadata }) => metadata.name),
  };
}

/** Makes the objects, and has the pod of the job end, as its node would. */
async function play(call: Call): Promise<void> {
  for (const [path, kind, name, rest] of objects) {
    const [apiVersion, word] = kind.split(" ");
    if (path.startsWith(apps)) {
      // Pods are refused until the namespace has its account.
      await eventually(
        "the account",
        async () => (await call("GET", `${inSpace}/serviceaccounts/default`)).status === 200 || undefined,
      );
    }
    const made = await call("POST", path, { apiVersion, kind: word, metadata: { name }, ...rest });
    expect(made).toMatchObject({ status: 201 });
  }
  const pod = await eventually("the pod of the job", async () => {
    const { body } = await call("GET", `${inSpace}/pods?labelSelector=app%3Donce`);
    return body.items?.[0];
  });
  await call("PATCH", `${inSpace}/pods/${pod.metadata.name}/status`, { status: { phase: "Succeeded" } });
  await eventually("the end of the job", async () => {
    const { body } = await call("GET", `${batch}/jobs/once`);
    return body.status?.succeeded === 1 || undefined;
  });
}

const revisionOf = async (call: Call) =>
  Number((await call("GET", "/api/v1/configmaps")).body.metadata.resourceVersion);

test("the same outcome as on the real server, and then peace", { timeout: 240_000 }, async () => {
  await Promise.all([play(ours), play(theirs)]);
  // The quota's own controller counts what went; both need a moment.
  await expect.poll(async () => (await outcome(ours)).quota?.used?.pods, { timeout: 60_000 }).toBe("5");
  await expect
    .poll(async () => JSON.stringify(await outcome(ours)) === JSON.stringify(await outcome(theirs)), {
      timeout: 60_000,
      interval: 1000,
    })
    .toBe(true)
    .catch(async () => expect(await outcome(ours)).toEqual(await outcome(theirs)));

  const before = await revisionOf(ours);
  await new Promise((resolve) => setTimeout(resolve, 15_000));
  // Heartbeats there are none: the node has no kubelet.
  expect((await revisionOf(ours)) - before).toBeLessThanOrEqual(2);

  for (const call of [ours, theirs])
    await call("DELETE", `${apps}/deployments/web`, { propagationPolicy: "Foreground" });
  for (const call of [ours, theirs]) {
    await eventually("the deployment and what it owns are gone", async () => {
      const { pods, replicaSets } = await outcome(call);
      return (pods.web === 0 && replicaSets.length === 0) || undefined;
    });
    await call("DELETE", inSpace);
    await eventually(
      "the namespace is gone",
      async () => (await call("GET", inSpace)).status === 404 || undefined,
      60_000,
    );
  }

  const log = await readFile(join(directory, "manager.log"), "utf8");
  const errors = new Map<string, number>();
  // What is refused while the namespace goes is tried again until it is gone, which it is by now.
  const isLasting = (line: string) =>
    /^E\d{4} /.test(line) && !line.includes("because it is being terminated");
  for (const line of log.split("\n").filter(isLasting)) {
    const what = line
      .replace(/^E\d{4} [\d:.]+ +\d+ /, "")
      .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|[a-z0-9]{5}"/g, "…");
    errors.set(what, (errors.get(what) ?? 0) + 1);
  }
  expect([...errors].filter(([, times]) => times > 3)).toEqual([]);
});
