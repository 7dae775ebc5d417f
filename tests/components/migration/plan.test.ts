/** `longshore plan` on the embedded API server, as an account that may read and nothing else. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { type KubeObject, type Resource, resources } from "@longshore/kube";
import { crossingSubject, planCrossing, staleParts } from "@longshore/migration";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { expect, test } from "vitest";

const signal = new AbortController().signal;
const group = "rbac.authorization.k8s.io";
const rbac = (kind: string, plural: string): Resource<KubeObject> => ({
  group,
  versions: ["v1"],
  kind,
  plural,
  namespaced: false,
});

test("a plan only reads; another cluster refuses it, and a node that has come since makes it stale", async () => {
  const here = await cluster();
  const elsewhere = await cluster();
  const options = { subject: crossingSubject("aws-ebs"), direction: "migrate" as const };
  const plan = await planCrossing(here, options, signal);
  expect(plan.steps.map(({ nodeName, name }) => `${nodeName}: ${name}`)).toContain("n1: drain");
  expect(plan.findings.map(({ object }) => object)).toContain("Node n1");
  expect(staleParts(plan, await planCrossing(here, options, signal))).toEqual([]);
  const other = await planCrossing(elsewhere, options, signal);
  expect(() => staleParts(plan, other)).toThrow("the plan's clusterId is");
  await here.addNode("n2");
  const parts = staleParts(plan, await planCrossing(here, options, signal));
  expect(parts).toContain("new: step n2: drain");
});

let seed = 0;

async function cluster() {
  const clock = new VirtualClock();
  const runtime = { clock, random: new SeededRandom(++seed), logger: silentLogger, meter: noMeter };
  const server = createApiServer(runtime, { store: memoryStore() });
  const admin = server.client();
  const rules = [{ apiGroups: ["*"], resources: ["*"], verbs: ["get", "list"] }];
  const role = { metadata: { name: "reader" }, rules } as KubeObject;
  await admin.create(rbac("ClusterRole", "clusterroles"), role, { signal });
  const binding = {
    metadata: { name: "reader" },
    roleRef: { apiGroup: group, kind: "ClusterRole", name: "reader" },
    subjects: [{ apiGroup: group, kind: "User", name: "reader" }],
  } as KubeObject;
  await admin.create(rbac("ClusterRoleBinding", "clusterrolebindings"), binding, { signal });
  const addNode = (name: string) => admin.create(resources.nodes, { metadata: { name } }, { signal });
  await addNode("n1");
  return { clock, addNode, kube: server.client({ name: "reader", groups: ["system:authenticated"] }) };
}
