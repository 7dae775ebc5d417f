/** A crossing on OpenShift's platform with the rights that are printed for it, and the FeatureGate operator; the test plays OpenShift's own operators. docs/behaviour/migration-controllers.md B2, B3. */
import { fileURLToPath } from "node:url";
import { createApiServer, memoryStore, readDefinitions } from "@longshore/apiserver";
import { type KubeClient, type KubeObject, type Resource, resources, updateWithRetry } from "@longshore/kube";
import {
  type CrossingDirection,
  type CrossingEvent,
  crossingRoles,
  crossingSubject,
  runCrossing,
  underCrossingLease,
} from "@longshore/migration";
import {
  createOpenShiftPlatform,
  featureGateObjects,
  kubeletConfigName,
  kubeletConfigs,
  machineConfigPools,
  openshiftCrdsUrl,
  operandKinds,
  startFeatureGateOperator,
} from "@longshore/migration/openshift";
import { type Component, SimulatedHost } from "@longshore/runtime";
import { virtualEnv } from "@longshore/testing/kube";
import { volumeGatesFor } from "@longshore/volumes";
import { afterEach, expect, test } from "vitest";

const signal = new AbortController().signal;
const subject = crossingSubject("aws-ebs");
const annotation = "storage.alpha.kubernetes.io/migrated-plugins";
/** Each change of an operand makes a revision, which its one node runs. */
const rolledOut = (generation: number) => ({
  latestAvailableRevision: generation,
  nodeStatuses: [{ nodeName: "m1", currentRevision: generation }],
});
const ended = new AbortController();
const operators: Component[] = [];
const env = virtualEnv();
afterEach(async () => {
  ended.abort(new Error("the test has ended"));
  for (const operator of operators.splice(0)) await env.clock.run(operator.stop());
});

/** A cluster, seen by its administrator and by the user who carries it, and has the rights that are printed. */
async function aCluster(): Promise<{ readonly kube: KubeClient; readonly carrier: KubeClient }> {
  const definitions = await readDefinitions([fileURLToPath(openshiftCrdsUrl)]);
  const server = createApiServer(env, { store: memoryStore(), definitions });
  const kube = server.client();
  await grant(kube, crossingRoles("openshift"));
  for (const { resource } of operandKinds) {
    await kube.create(resource, { metadata: { name: "cluster" }, spec: { observedConfig: {} } }, { signal });
  }
  await kube.create(machineConfigPools, { metadata: { name: "worker" } }, { signal });
  for (const name of ["n1", "n2"]) {
    await kube.create(resources.nodes, { metadata: { name } }, { signal });
    const status = { conditions: [{ type: "Ready", status: "True" }] };
    await updateWithRetry(kube, resources.nodes, { name }, (node) => ({ ...node, status }) as never, {
      signal,
      subresource: "status",
    });
    const drivers = [{ name: subject.driverName, nodeID: name, topologyKeys: [] }];
    await kube.create(resources.csiNodes, { metadata: { name }, spec: { drivers } }, { signal });
  }
  operators.push(
    startFeatureGateOperator(
      { ...env, kube },
      { order: "any", knownGates: volumeGatesFor("1.20"), plugins: [] },
    ),
  );
  void rollOut(kube).catch(() => {});
  return { kube, carrier: server.client({ name: "carrier", groups: ["system:authenticated"] }) };
}

/** Binds a ClusterRole and a Role to the user. */
async function grant(kube: KubeClient, roles: readonly KubeObject[]): Promise<void> {
  const group = "rbac.authorization.k8s.io";
  for (const role of roles) {
    const { name = "", namespace } = role.metadata ?? {};
    const kind = role.kind ?? "";
    const of = (suffix: string): Resource<KubeObject> => ({
      ...{ group, versions: ["v1"], kind: `${kind}${suffix}`, plural: `${kind}${suffix}s`.toLowerCase() },
      namespaced: namespace !== undefined,
    });
    await kube.create(of(""), role, { signal });
    const metadata = namespace === undefined ? { name } : { name, namespace };
    const roleRef = { apiGroup: group, kind, name };
    const subjects = [{ apiGroup: group, kind: "User", name: "carrier" }];
    await kube.create(of("Binding"), { metadata, roleRef, subjects } as KubeObject, { signal });
  }
}

/** The control plane follows at once, the nodes one after the other. */
async function rollOut(kube: KubeClient): Promise<void> {
  const report = (resource: Resource<KubeObject>, name: string, statusAt: (generation: number) => object) =>
    updateWithRetry(
      kube,
      resource,
      { name },
      (found) => {
        const observedGeneration = found.metadata.generation ?? 0;
        return { ...found, status: { ...statusAt(observedGeneration), observedGeneration } } as never;
      },
      { signal, subresource: "status" },
    );
  for (let tick = 1; ; tick++) {
    await env.clock.sleep(3000, ended.signal);
    for (const { resource } of operandKinds) await report(resource, "cluster", rolledOut);
    if (tick % 8 !== 0) continue;
    const config = await kube.get(kubeletConfigs, { name: kubeletConfigName }, { signal });
    const isOn = config?.spec?.kubeletConfig?.featureGates?.[subject.gate] === true;
    await report(machineConfigPools, "worker", () => ({ machineCount: 2, updatedMachineCount: 2 }));
    for (const name of ["n1", "n2"]) {
      const wanted = isOn ? subject.inTreeName : "";
      const csiNode = await kube.get(resources.csiNodes, { name }, { signal });
      if (csiNode === undefined || (csiNode.metadata.annotations?.[annotation] ?? "") === wanted) continue;
      const annotations = { ...csiNode.metadata.annotations, [annotation]: wanted };
      await kube.update(
        resources.csiNodes,
        { ...csiNode, metadata: { ...csiNode.metadata, annotations } },
        { signal },
      );
      break;
    }
  }
}

test("the FeatureGate carries the plugin there and back, and the nodes are left to the platform (migration-controllers.md B2)", async () => {
  const { kube, carrier } = await aCluster();
  const host = new SimulatedHost({ name: "operator" });
  const events: CrossingEvent[] = [];
  const cross = (direction: CrossingDirection) =>
    env.clock.run(
      underCrossingLease({ ...env, kube: carrier }, { identity: "carrier" }, signal, (fenced, within) =>
        runCrossing(
          {
            ...env,
            kube: fenced,
            platform: createOpenShiftPlatform({ clock: env.clock, kube: carrier }),
            host,
          },
          {
            subject,
            direction,
            journalFile: "/j.json",
            clusterJournal: true,
            onEvent: (event) => events.push(event),
          },
          within,
        ),
      ),
    );
  const there = await cross("migrate");
  expect(there.steps.map(({ name }) => name)).toEqual([
    "preflight",
    "control plane on",
    "n1: flip",
    "n1: CSINode agrees",
    "n2: flip",
    "n2: CSINode agrees",
  ]);
  expect(events.find(({ kind }) => kind === "warning")).toMatchObject({
    finding: { object: "FeatureGate cluster", field: "spec.featureSet" },
  });
  const gate = await kube.get(featureGateObjects, { name: "cluster" }, { signal });
  expect(gate?.spec).toEqual({
    featureSet: "CustomNoUpgrade",
    customNoUpgrade: { enabled: ["CSIMigration", "CSIMigrationAWS"], disabled: [] },
  });
  await cross("rollback");
  const after = await kube.get(featureGateObjects, { name: "cluster" }, { signal });
  expect(after?.spec?.customNoUpgrade).toEqual({ enabled: ["CSIMigration"], disabled: ["CSIMigrationAWS"] });
  const nodes = await kube.list(resources.csiNodes, { signal });
  expect(nodes.items.map(({ metadata }) => metadata.annotations?.[annotation])).toEqual(["", ""]);
});
