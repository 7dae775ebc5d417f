/** The operator on an API server in its own process, under a clock that the test moves. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { yamlText } from "@longshore/deployment";
import { type KubeClient, type KubeEnv, resources } from "@longshore/kube";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startWorkspaceOperator } from "./operator.ts";
import { definitions, type Workspace, workspaceDefinition, workspaces } from "./workspace.ts";

const { signal } = new AbortController();
const ref = { name: "ada", namespace: "default" };
const aWorkspace = (size: string): Workspace => ({ metadata: ref, spec: { size } });

let clock: VirtualClock;
let env: KubeEnv;
let kube: KubeClient;
let stop: () => Promise<void>;

beforeEach(async () => {
  clock = new VirtualClock();
  const base = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const server = createApiServer(base, { store: memoryStore() });
  await server.start();
  kube = server.client();
  env = { ...base, kube };
  stop = () => server.stop();
  await kube.create(definitions, workspaceDefinition, { signal });
  await clock.advance(1000);
});
afterEach(() => stop());

const claim = () => kube.get(resources.persistentVolumeClaims, ref, { signal });
const status = async () => (await kube.get(workspaces, ref, { signal }))?.status;

test("a workspace gets a claim, says when it is bound, and grows it", async () => {
  const operator = startWorkspaceOperator(env);
  await kube.create(workspaces, aWorkspace("1Gi"), { signal });
  await clock.advance(1000);
  expect((await claim())?.spec?.resources?.requests).toEqual({ storage: "1Gi" });
  expect(await status()).toEqual({ phase: "Pending", claimName: "ada", observedGeneration: 1 });

  const made = await claim();
  if (made === undefined) throw new Error("no claim");
  await kube.updateStatus(
    resources.persistentVolumeClaims,
    { ...made, status: { phase: "Bound", capacity: { storage: "1Gi" } } },
    { signal },
  );
  await clock.advance(1000);
  expect((await status())?.phase).toBe("Ready");
  await operator.stop();
});

test("a workspace takes its claim with it", async () => {
  const operator = startWorkspaceOperator(env);
  await kube.create(workspaces, aWorkspace("1Gi"), { signal });
  await clock.advance(1000);
  expect(await claim()).toBeDefined();
  await kube.delete(workspaces, ref, { signal });
  await clock.advance(60_000);
  const left = await claim();
  expect(left === undefined || left.metadata.deletionTimestamp !== undefined).toBe(true);
  await operator.stop();
});

test("a claim of another owner is left alone, and no longer in the way once it is deleted", async () => {
  const theirs = {
    metadata: ref,
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "5Gi" } } },
  };
  await kube.create(resources.persistentVolumeClaims, theirs, { signal });
  const operator = startWorkspaceOperator(env);
  await kube.create(workspaces, aWorkspace("9Gi"), { signal });
  await clock.advance(60_000);
  expect((await claim())?.spec?.resources?.requests).toEqual({ storage: "5Gi" });
  expect(await status()).toBeUndefined();
  await kube.delete(resources.persistentVolumeClaims, ref, { signal });
  const released = { metadata: { finalizers: null } };
  await kube.patch(resources.persistentVolumeClaims, ref, { type: "merge", body: released }, { signal });
  await clock.advance(1_000);
  expect((await claim())?.spec?.resources?.requests).toEqual({ storage: "9Gi" });
  await operator.stop();
});

test("a workspace that changes while no operator runs is reconciled by the next one", async () => {
  await kube.create(workspaces, aWorkspace("1Gi"), { signal });
  const first = startWorkspaceOperator(env);
  await first.stop(); // Before it could do anything.
  const second = startWorkspaceOperator(env);
  await clock.advance(1000);
  expect(await claim()).toBeDefined();
  expect((await status())?.phase).toBe("Pending");
  await second.stop();
});

test("a size that is none is refused by the server", async () => {
  await expect(kube.create(workspaces, aWorkspace("large"), { signal })).rejects.toThrow(/spec.size/);
});

const shipped = { apiVersion: "example.longshore.dev/v1", kind: "Workspace", ...aWorkspace("1Gi") };
const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  ...workspaceDefinition,
};

test.each([
  ["crd.yaml", definition],
  ["workspace.yaml", shipped],
])(
  "%s is what TypeScript says (npx vitest run examples/operator --update regenerates it)",
  async (file, object) => {
    const text = `# kubectl apply -f examples/operator/${file}\n${yamlText(object)}`;
    await expect(text).toMatchFileSnapshot(file);
  },
);
