/** An assessment that follows the embedded API server, under exactly the role that it prints. */
import { type ApiServer, createApiServer, memoryStore } from "@longshore/apiserver";
import { type KubeObject, type Resource, resources } from "@longshore/kube";
import { type Assessment, assessmentRole, type Changes, watchCluster } from "@longshore/migration";
import { type Clock, noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { describe, expect, test } from "vitest";

const signal = new AbortController().signal;
const rbac = (kind: string, plural: string): Resource<KubeObject> => ({
  group: "rbac.authorization.k8s.io",
  versions: ["v1"],
  ...{ kind, plural },
  namespaced: false,
});
const node = (name: string, heartbeat: string) =>
  ({
    metadata: { name },
    status: {
      nodeInfo: { kubeletVersion: "v1.27.2" },
      conditions: [{ type: "Ready", status: "True", lastHeartbeatTime: heartbeat }],
    },
  }) as KubeObject;
const attachment = (name: string) =>
  ({
    metadata: { name },
    spec: { attacher: "x.csi.example", nodeName: "gone", source: { persistentVolumeName: "gone" } },
  }) as KubeObject;

async function followed(role: KubeObject, judgementMs = 0) {
  const clock = new VirtualClock(new Date("2026-01-01T00:00:00Z"));
  const runtime = { clock, random: new SeededRandom(7), logger: silentLogger, meter: noMeter };
  const server: ApiServer = createApiServer(runtime, { store: memoryStore() });
  const admin = server.client();
  await admin.create(resources.nodes, node("n1", "2026-01-01T00:00:00Z"), { signal });
  await admin.create(rbac("ClusterRole", "clusterroles"), role, { signal });
  const binding = {
    metadata: { name: "assess" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role.metadata?.name },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "auditor" }],
  };
  await admin.create(rbac("ClusterRoleBinding", "clusterrolebindings"), binding as KubeObject, { signal });
  const kube = server.client({ name: "auditor", groups: ["system:authenticated"] });
  const seen: { readonly assessment: Assessment; readonly changes: Changes | undefined }[] = [];
  const stop = new AbortController();
  // Of this clock each reading is later than the one before, as if work had taken that long.
  let worked = 0;
  const slow: Clock = Object.assign(Object.create(clock) as Clock, {
    now: () => clock.now(),
    sleep: clock.sleep.bind(clock),
    timer: clock.timer.bind(clock),
    monotonicMs: () => clock.monotonicMs() + judgementMs * worked++,
  });
  const ended = watchCluster(
    { ...runtime, clock: slow, kube },
    { onAssessment: (assessment, changes) => seen.push({ assessment, changes }) },
    stop.signal,
  ).catch((error: unknown) => error);
  await clock.advance(1000);
  return { clock, admin, seen, stop, ended };
}

describe("an assessment that follows a cluster", () => {
  test("says what has come and gone, once for many changes, and nothing for a heartbeat", async () => {
    const { clock, admin, seen, stop, ended } = await followed(assessmentRole({ watch: true }));
    expect(seen.map(({ changes }) => changes)).toEqual([undefined]);
    expect(seen[0]?.assessment.findings).toEqual([]);
    for (let index = 0; index < 20; index++) {
      await admin.create(resources.volumeAttachments, attachment(`va-${index}`), { signal });
    }
    await clock.advance(10_000);
    expect(seen).toHaveLength(2);
    const added = seen[1]?.changes?.added.map(({ code }) => code) ?? [];
    expect(added.filter((code) => code === "LS1501")).toHaveLength(20);
    await admin.updateStatus(resources.nodes, node("n1", "2026-01-01T00:01:00Z"), { signal });
    await clock.advance(20_000);
    expect(seen).toHaveLength(2);
    for (let index = 0; index < 20; index++) {
      await admin.delete(resources.volumeAttachments, { name: `va-${index}` }, { signal });
    }
    await clock.advance(10_000);
    // The first change is judged at once, those that follow together.
    expect(seen.length).toBeLessThanOrEqual(4);
    const gone = seen.slice(2).flatMap(({ changes }) => changes?.gone.map(({ code }) => code) ?? []);
    expect(gone.sort()).toEqual(added.sort());
    stop.abort(new Error("enough"));
    expect(await ended).toMatchObject({ message: "enough" });
  });

  test("judges a large cluster so seldom that it takes a tenth of the time", async () => {
    const { clock, admin, seen, stop, ended } = await followed(assessmentRole({ watch: true }), 6000);
    const judged = async (index: number, afterMs: number) => {
      await admin.create(resources.volumeAttachments, attachment(`va-${index}`), { signal });
      await clock.advance(afterMs);
      return seen.length;
    };
    expect(await judged(1, 50_000)).toBe(1);
    expect(await judged(2, 15_000)).toBe(2);
    expect(await judged(3, 40_000)).toBe(2);
    expect(await judged(4, 30_000)).toBe(3);
    stop.abort(new Error("enough"));
    expect(await ended).toMatchObject({ message: "enough" });
  });

  test("has what it may not read as a finding of every assessment", async () => {
    const role = assessmentRole({ watch: true }) as KubeObject & { rules: { resources: string[] }[] };
    const poor = {
      ...role,
      rules: role.rules.map((rule) => ({
        ...rule,
        resources: rule.resources.filter((name) => name !== "csinodes"),
      })),
    };
    const { seen, stop, ended } = await followed(poor);
    expect(seen[0]?.assessment).toMatchObject({ verdict: "CANNOT DETERMINE" });
    expect(seen[0]?.assessment.findings).toMatchObject([{ code: "LS1001", object: "kind CSINode" }]);
    stop.abort(new Error("enough"));
    await ended;
  });
});
