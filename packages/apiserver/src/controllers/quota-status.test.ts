/** Quotas hold, and their status says what is used: on the virtual clock, with the server's own controllers. */
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { expect, test } from "vitest";
import { adminUser } from "../api/api-request.ts";
import { createApiServer, memoryStore } from "../index.ts";
import { asker } from "../testing/ask.ts";

const inDefault = "api/v1/namespaces/default";

async function world(hard: Readonly<Record<string, string>>, spec: object = {}) {
  const clock = new VirtualClock();
  const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const server = createApiServer(env, { store: memoryStore() });
  await server.start();
  const { ask, outcome } = asker(server, adminUser);
  ask("create", `${inDefault}/resourcequotas`, { metadata: { name: "q" }, spec: { hard, ...spec } });
  await clock.advance(1);
  const used = () =>
    (ask("get", `${inDefault}/resourcequotas/q`) as { status?: { used?: object } }).status?.used;
  return { clock, ask, outcome, used };
}

const pod = (name: string, cpu: string, more: object = {}) => ({
  metadata: { name },
  spec: { containers: [{ name: "a", image: "b", resources: { requests: { cpu } } }], ...more },
});
const claim = (name: string, storage: string) => ({
  metadata: { name },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage } } },
});

test("what is made is counted at once, and what goes is released", async () => {
  const { clock, ask, outcome, used } = await world({
    pods: "2",
    "requests.cpu": "1",
    "count/leases.coordination.k8s.io": "0",
  });
  expect(used()).toEqual({ pods: "0", "requests.cpu": "0", "count/leases.coordination.k8s.io": "0" });
  ask("create", `${inDefault}/pods`, pod("a", "600m"));
  expect(used()).toMatchObject({ pods: "1", "requests.cpu": "600m" });
  expect(outcome("create", `${inDefault}/pods`, pod("b", "600m"))).toBe(
    '403 pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1',
  );
  ask("delete", `${inDefault}/pods/a`);
  await clock.advance(1);
  expect(used()).toMatchObject({ pods: "0", "requests.cpu": "0" });
  expect(outcome("create", `${inDefault}/pods`, pod("b", "600m"))).toBe("ok");
  // A pod that has ended uses nothing.
  ask("update", `${inDefault}/pods/b/status`, {
    ...ask("get", `${inDefault}/pods/b`),
    status: { phase: "Succeeded" },
  });
  await clock.advance(1);
  expect(used()).toMatchObject({ pods: "0", "requests.cpu": "0" });
  expect(
    outcome("create", "apis/coordination.k8s.io/v1/namespaces/default/leases", { metadata: { name: "a" } }),
  ).toMatch(/^403 .*exceeded quota: q, requested: count\/leases.coordination.k8s.io=1/);
});

test("what is refused for another reason, and a dry run, is not counted", async () => {
  const { ask, outcome, used } = await world({ configmaps: "5" });
  const before = used();
  expect(outcome("create", `${inDefault}/configmaps`, { metadata: { name: "A" } })).toMatch(/^422/);
  ask("create", `${inDefault}/configmaps`, { metadata: { name: "a" } }, { query: { dryRun: ["All"] } });
  expect(used()).toEqual(before);
});

test("a claim grows within its quota only", async () => {
  const { ask, outcome, used } = await world({ "requests.storage": "3Gi" });
  ask("create", "apis/storage.k8s.io/v1/storageclasses", {
    metadata: { name: "fast" },
    provisioner: "p",
    allowVolumeExpansion: true,
  });
  const made = claim("a", "1Gi");
  ask("create", `${inDefault}/persistentvolumeclaims`, {
    ...made,
    spec: { ...made.spec, storageClassName: "fast" },
  });
  const bound = ask("get", `${inDefault}/persistentvolumeclaims/a`) as { spec: object };
  ask("update", `${inDefault}/persistentvolumeclaims/a/status`, {
    ...bound,
    status: { phase: "Bound" },
  } as object);
  const grown = (storage: string) => ({
    ...ask("get", `${inDefault}/persistentvolumeclaims/a`),
    spec: { ...bound.spec, resources: { requests: { storage } } },
  });
  expect(outcome("update", `${inDefault}/persistentvolumeclaims/a`, grown("4Gi"))).toMatch(
    /^403 .*requested: requests.storage=3Gi, used: requests.storage=1Gi, limited: requests.storage=3Gi/,
  );
  expect(outcome("update", `${inDefault}/persistentvolumeclaims/a`, grown("2Gi"))).toBe("ok");
  expect(used()).toEqual({ "requests.storage": "2Gi" });
});

test("a quota with scopes is about the pods in them", async () => {
  const { outcome, used } = await world({ pods: "0" }, { scopes: ["Terminating"] });
  expect(outcome("create", `${inDefault}/pods`, pod("a", "1m"))).toBe("ok");
  expect(outcome("create", `${inDefault}/pods`, pod("b", "1m", { activeDeadlineSeconds: 5 }))).toMatch(
    /^403/,
  );
  expect(used()).toEqual({ pods: "0" });
});
