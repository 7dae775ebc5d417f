import { type CreateVolumeRequest, CsiCallError, CsiStatusError, lostReply } from "@longshore/csi";
import { HostError } from "@longshore/runtime";
import { allSecrets, type FakeWorld, fakeWorld, faultTable } from "@longshore/testing/conformance";
import { expect, test } from "vitest";
import type { CheckResult } from "./check-result.ts";
import {
  type ConformanceEvent,
  ConformanceInterruptedError,
  conformanceChecks,
  DriverUnreachableError,
  goneSince,
  groupOf,
  isConformant,
  junitOf,
  runConformance,
} from "./index.ts";

const never = new AbortController().signal;
const socket = "/csi/csi.sock";

/** Runs the suite in the world, all of it or what is selected. */
function runIn(world: FakeWorld, over: Partial<FakeWorld["options"]> = {}, signal = never) {
  return world.clock.run(runConformance(world.env, { ...world.options, ...over }, signal));
}

const only =
  (...ids: readonly string[]) =>
  (id: string) =>
    ids.includes(id);
const messagesOf = (results: readonly CheckResult[], outcome: CheckResult["outcome"]) =>
  results.filter((result) => result.outcome === outcome).map(({ id, message }) => `${id}: ${message}`);

/** Nothing of the suite is left in the driver or on the host. */
async function expectNothingLeft({ state, host }: FakeWorld): Promise<void> {
  expect([...state.volumes.keys(), ...state.snapshots.keys(), ...state.groups.keys()]).toEqual([]);
  for (const dir of ["/staging", "/target", "/data"]) {
    expect(await host.listMounts(dir)).toEqual([]);
    expect(await host.readDirectory(dir)).toEqual([]);
  }
}

/** Checks for drivers that lack something, by what is lacking. */
const lesserDrivers: readonly (readonly [without: readonly string[], ids: readonly string[]])[] = [
  [["GET_VOLUME"], ["controller.capabilities.undeclared-refused"]],
  [["VOLUME_ACCESSIBILITY_CONSTRAINTS"], ["controller.create-volume.no-topology"]],
  [["CLONE_VOLUME", "CREATE_DELETE_SNAPSHOT"], ["controller.create-volume.source-undeclared"]],
  [["VOLUME_EXPANSION_ONLINE"], ["controller.expand-volume.offline-only"]],
  [["GET_VOLUME_STATS", "VOLUME_CONDITION"], ["node.capabilities.undeclared-refused"]],
];
const forLesserDrivers = lesserDrivers.flatMap(([, ids]) => ids);

test("a driver that keeps the contract passes, and only what is for lesser drivers is skipped", async () => {
  const world = await fakeWorld({ maxVolumes: 8n });
  const report = await runIn(world);
  expect(messagesOf(report.results, "failed")).toEqual([]);
  expect(report.leftovers).toEqual([]);
  const skipped = report.results.filter(({ outcome }) => outcome === "skipped").map(({ id }) => id);
  expect(skipped.sort()).toEqual([...forLesserDrivers].sort());
  expect(report.results).toHaveLength(conformanceChecks.length);
  expect(report.passed + report.skipped).toBe(conformanceChecks.length);
  expect(isConformant(report)).toBe(true);
  expect(report.driver).toMatchObject({
    name: "fake.csi.longshore.dev",
    vendorVersion: "1.0.0",
    nodeId: "node-1",
  });
  await expectNothingLeft(world);
});

test.each(lesserDrivers)("a driver without %s passes, with what is for it", async (without, ids) => {
  const world = await fakeWorld({ without });
  const report = await runIn(world);
  expect(messagesOf(report.results, "failed")).toEqual([]);
  expect(report.results.filter(({ outcome }) => outcome === "passed").map(({ id }) => id)).toEqual(
    expect.arrayContaining([...ids]),
  );
  await expectNothingLeft(world);
});

test.each([
  ["CONTROLLER_SERVICE", "GROUP_CONTROLLER_SERVICE", "VOLUME_EXPANSION_OFFLINE"],
  ["NODE_SERVICE"],
  ["STAGE_UNSTAGE_VOLUME"],
  ["PUBLISH_UNPUBLISH_VOLUME", "PUBLISH_READONLY", "LIST_VOLUMES_PUBLISHED_NODES"],
  ["CREATE_DELETE_VOLUME", "CLONE_VOLUME"],
])("a driver without %s passes what it has, and each skip says why", async (...without) => {
  const world = await fakeWorld({ without });
  const report = await runIn(world);
  expect(messagesOf(report.results, "failed")).toEqual([]);
  expect(report.skipped).toBeGreaterThan(0);
  expect(report.results.filter(({ outcome, message }) => outcome === "skipped" && !message)).toEqual([]);
  await expectNothingLeft(world);
});

test("a block driver passes, its snapshot metadata included", async () => {
  const report = await runIn(await fakeWorld(), { accessType: "block" });
  expect(messagesOf(report.results, "failed")).toEqual([]);
  const metadata = report.results.filter(({ id }) => groupOf(id) === "snapshot-metadata");
  expect(metadata.length).toBeGreaterThan(19);
  expect(messagesOf(metadata, "skipped")).toEqual([]);
});

test("snapshot metadata is looked at on block volumes, also where all others are mounted", async () => {
  const world = await fakeWorld();
  const asked: unknown[] = [];
  world.csi.intercept((call, proceed) => {
    if (call.rpc === "CreateVolume") {
      const { volumeCapabilities } = call.request as unknown as CreateVolumeRequest;
      asked.push(volumeCapabilities[0]?.accessType.case);
    }
    return proceed();
  });
  await runIn(world, { select: only("snapshot-metadata.delta.works") });
  expect(asked).toEqual(["block"]);
});

test("negative numbers are sent only to what the driver declares", async () => {
  const world = await fakeWorld({ without: ["LIST_VOLUMES", "LIST_SNAPSHOTS", "EXPAND_VOLUME"] });
  const sent: string[] = [];
  world.csi.intercept(({ rpc, request }, proceed) => {
    const text = JSON.stringify(request, (_, value) => (typeof value === "bigint" ? String(value) : value));
    if (/"(maxEntries|requiredBytes|limitBytes)":"?-/.test(text)) sent.push(rpc);
    return proceed();
  });
  await runIn(world);
  expect(new Set(sent)).toEqual(new Set(["CreateVolume"]));
});

test("a plugin may find a new volume abnormal", async () => {
  const world = await fakeWorld();
  world.csi.intercept(async ({ rpc }, proceed) => {
    const answer = await proceed();
    const { volumeCondition } = answer as { readonly volumeCondition?: { abnormal: boolean } };
    if (rpc === "NodeGetVolumeStats" && volumeCondition !== undefined) volumeCondition.abnormal = true;
    return answer;
  });
  const select = only("node.get-volume-stats.condition");
  expect(await runIn(world, { select })).toMatchObject({ passed: 1, failed: 0 });
});

test("ids are unique and stable in form; every check says what and where", () => {
  const ids = conformanceChecks.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.length).toBeGreaterThan(200);
  for (const { id, sentence, spec } of conformanceChecks) {
    expect(id).toMatch(/^[a-z-]+(\.[a-z-]+){1,2}$/);
    expect(groupOf(id)).toBe(id.slice(0, id.indexOf(".")));
    expect(sentence.length).toBeGreaterThan(20);
    expect(spec).not.toBe("");
  }
});

test("what others build on runs before them", () => {
  const seen = new Set<string>();
  for (const { id, after = [] } of conformanceChecks) {
    expect(after.filter((earlier) => !seen.has(earlier))).toEqual([]);
    seen.add(id);
  }
});

test("when a call that everything needs is broken, that is one failure and not hundreds", async () => {
  const world = await fakeWorld({
    fault: (services) => ({
      ...services,
      controller: {
        ...services.controller,
        createVolume: async () => {
          throw new CsiStatusError("INTERNAL", "no");
        },
      },
    }),
  });
  const { results } = await runIn(world);
  const failed = results.filter(({ outcome }) => outcome === "failed").map(({ id }) => id);
  expect(failed).toContain("controller.create-volume.works");
  expect(failed.filter((id) => !id.startsWith("controller.create-volume."))).toEqual([]);
  expect(messagesOf(results, "skipped").join("\n")).toContain(
    "node.publish-volume.works: it says nothing while controller.create-volume.works fails",
  );
});

test("no driver at the endpoint is no result but an error", async () => {
  const world = await fakeWorld();
  world.csi.crash(socket);
  await expect(runIn(world)).rejects.toBeInstanceOf(DriverUnreachableError);
});

test("a server that is not a CSI driver is reported", async () => {
  const world = await fakeWorld({ fault: () => ({ identity: {} }) });
  await expect(runIn(world)).rejects.toThrow("is not a CSI driver");
});

test("a driver that dies fails one check, skips the rest with the reason, and says what is left", async () => {
  const world = await fakeWorld({
    fault: (services) => ({
      ...services,
      controller: {
        ...services.controller,
        controllerPublishVolume: async () => {
          world.csi.crash(socket);
          throw new Error("unreached");
        },
      },
    }),
  });
  const { restartDriver: _, ...options } = world.options;
  const report = await world.clock.run(runConformance(world.env, options, never));
  const failed = report.results.filter(({ outcome }) => outcome === "failed");
  expect(failed).toHaveLength(1);
  expect(failed[0]?.message).toBe(
    "the driver did not answer ControllerPublishVolume: the connection was lost (it is gone)",
  );
  const after = report.results
    .slice(report.results.findIndex(({ outcome }) => outcome === "failed") + 1)
    .filter(({ id }) => groupOf(id) !== "protocol");
  expect(new Set(after.map(({ message }) => message))).toEqual(
    new Set([`the driver has been gone since ${failed[0]?.id}`]),
  );
  expect(isConformant(report)).toBe(false);
});

test("what a CO never sends comes last, so that a driver that dies of it has been looked at in all else", async () => {
  const world = await fakeWorld({
    fault: (services) => ({
      ...services,
      controller: {
        ...services.controller,
        async listVolumes(request, signal) {
          if (request.maxEntries >= 0)
            return (await services.controller?.listVolumes?.(request, signal)) ?? {};
          world.csi.crash(socket);
          throw new Error("unreached");
        },
      },
    }),
  });
  const { restartDriver: _, ...options } = world.options;
  const { results } = await world.clock.run(runConformance(world.env, options, never));
  const failed = results.findIndex(({ outcome }) => outcome === "failed");
  expect(results[failed]?.id).toBe("controller.list-volumes.negative-max-entries");
  const lost = results.filter(({ message = "" }) => message.startsWith(goneSince));
  expect(lost.length).toBeLessThan(4);
  expect(results.filter(({ id }) => groupOf(id) === "protocol").map(({ outcome }) => outcome)).toContain(
    "passed",
  );
});

test("a plugin that expands OFFLINE only has its volumes expanded before they are published", async () => {
  const world = await fakeWorld({ without: ["VOLUME_EXPANSION_ONLINE"] });
  const ids = ["node.expand-volume.works", "node.expand-volume.idempotent"];
  const { results } = await runIn(world, { select: (id) => ids.includes(id) });
  expect(results.map(({ id, outcome }) => [id, outcome])).toEqual(ids.map((id) => [id, "passed"]));
});

test("a driver that crashes on one call is restarted, and the run goes on", async () => {
  const world = await fakeWorld({
    fault: (services) => ({
      ...services,
      controller: {
        ...services.controller,
        getCapacity: async () => {
          world.csi.crash(socket);
          throw new Error("unreached");
        },
      },
    }),
  });
  const report = await runIn(world);
  expect(messagesOf(report.results, "failed")).toEqual([
    expect.stringMatching(/^controller\.get-capacity\.works: .*\(it answers again\)$/),
  ]);
  expect(messagesOf(report.results, "skipped").join()).not.toContain("gone");
  await expectNothingLeft(world);
});

test("a call without an answer fails its check with the time that was waited", async () => {
  const world = await fakeWorld({
    fault: (services) => ({
      ...services,
      controller: { ...services.controller, getCapacity: () => new Promise(() => {}) },
    }),
  });
  const { results } = await runIn(world, { select: only("controller.get-capacity.works") });
  expect(messagesOf(results, "failed")).toEqual([
    "controller.get-capacity.works: GetCapacity got no answer within 60000 ms",
  ]);
});

test("a volume whose creation got no answer is found by repeating the call, and removed", async () => {
  const world = await fakeWorld();
  let lost = 0;
  world.csi.intercept(async ({ rpc }, proceed) => {
    const answer = await proceed();
    if (rpc === "CreateVolume" && lost++ === 0) throw lostReply(rpc);
    return answer;
  });
  const { results, leftovers } = await runIn(world, { select: only("controller.create-volume.works") });
  expect(messagesOf(results, "failed")).toHaveLength(1);
  expect(leftovers).toEqual([]);
  expect(world.state.next).toBeGreaterThan(1);
  await expectNothingLeft(world);
});

test.each([1, 5, 50, 300, 900])("interrupted at call %d, all that was made is removed", async (at) => {
  const world = await fakeWorld();
  const controller = new AbortController();
  let calls = 0;
  world.csi.intercept((_call, proceed) => {
    if (++calls === at) controller.abort(new Error("Ctrl-C"));
    return proceed();
  });
  await expect(runIn(world, {}, controller.signal)).rejects.toThrow("Ctrl-C");
  await expectNothingLeft(world);
});

test("interrupted, the report has the results until then, and how many checks were not run", async () => {
  const controller = new AbortController();
  const ended: string[] = [];
  const onEvent = (event: ConformanceEvent) => {
    if (event.kind === "checkEnded") ended.push(event.result.id);
    if (ended.length === 7) controller.abort(new Error("Ctrl-C"));
  };
  const error = await runIn(await fakeWorld(), { onEvent }, controller.signal).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(ConformanceInterruptedError);
  const { report } = error as ConformanceInterruptedError;
  expect(report.results.map(({ id }) => id)).toEqual(ended);
  expect(report.notRun).toBe(conformanceChecks.length - 7);
  expect(junitOf(report)).toContain(`<failure message="${report.notRun} checks were not run">`);
});

test("interrupted while a volume is staged, the directory goes only after that call has ended", async () => {
  const controller = new AbortController();
  let isStaging = false;
  const world: FakeWorld = await fakeWorld({
    fault: (services, host) => ({
      ...services,
      node: {
        ...services.node,
        async nodeStageVolume(request, signal) {
          isStaging = true;
          controller.abort(new Error("Ctrl-C"));
          await world.clock.sleep(100, never);
          // As a driver does that was asked while the directory was there.
          await host.makeDirectory(request.stagingTargetPath);
          isStaging = false;
          return (await services.node?.nodeStageVolume?.(request, signal)) ?? {};
        },
        async nodeUnstageVolume(request, signal) {
          if (isStaging) throw new CsiStatusError("ABORTED", "another call is under way");
          return (await services.node?.nodeUnstageVolume?.(request, signal)) ?? {};
        },
      },
    }),
  });
  const stage = { select: only("node.stage-volume.works") };
  await expect(runIn(world, stage, controller.signal)).rejects.toThrow("Ctrl-C");
  await expectNothingLeft(world);
});

test("what cannot be removed is named", async () => {
  const world = await fakeWorld({
    fault: (services) => ({
      ...services,
      controller: {
        ...services.controller,
        deleteVolume: async () => {
          throw new CsiStatusError("INTERNAL", "never");
        },
      },
    }),
  });
  const report = await runIn(world, { select: only("controller.create-volume.works") });
  expect(report.failed).toBe(0);
  expect(report.leftovers).toEqual([
    expect.stringMatching(/^volume vol-\d+: DeleteVolume failed with INTERNAL: never$/),
  ]);
  expect(isConformant(report)).toBe(false);
});

test("no secret value is in a report, also when the driver returns it", async () => {
  const world = await fakeWorld({
    fault: (services) => ({
      ...services,
      controller: {
        ...services.controller,
        createVolume: async ({ secrets }) => {
          throw new CsiStatusError("INTERNAL", `bad token ${secrets.token}`);
        },
      },
    }),
  });
  const report = await runIn(world);
  const text = JSON.stringify(report);
  for (const { token } of Object.values(allSecrets)) expect(text).not.toContain(token);
  expect(text).toContain("bad token ***stripped***");
  expect(messagesOf(report.results, "failed").join()).toContain("protocol.secrets-in-answers");
});

test("secrets are sent with the calls that they are for, and with no others", async () => {
  const world = await fakeWorld();
  const sent = new Map<string, Set<string>>();
  world.csi.intercept((call, proceed) => {
    const { secrets } = call.request as { readonly secrets?: Record<string, string> };
    if (secrets?.token !== undefined)
      sent.set(call.rpc, (sent.get(call.rpc) ?? new Set()).add(secrets.token));
    return proceed();
  });
  await runIn(world);
  expect(Object.fromEntries([...sent].map(([rpc, tokens]) => [rpc, [...tokens]]))).toEqual(
    Object.fromEntries(Object.entries(allSecrets).map(([rpc, { token }]) => [rpc, [token]])),
  );
});

test("what this process may not look at is skipped with the remedy, and no fault of the driver", async () => {
  const world = await fakeWorld();
  const refuse = (operation: string) => async (path: string) => {
    throw new HostError(operation, path, "EACCES");
  };
  const host = new Proxy(world.host, {
    get(target, name) {
      if (name === "stat" || name === "writeFileAtomic") return refuse(name);
      const value = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const select = (id: string) => id.startsWith("node.data.") || id === "node.unpublish-volume.removes-target";
  const report = await world.clock.run(
    runConformance({ ...world.env, host }, { ...world.options, select }, never),
  );
  expect(report).toMatchObject({ passed: 0, failed: 0 });
  expect(new Set(report.results.map(({ message }) => message))).toEqual(
    new Set([
      "this process may not look at what the driver makes, or change it (EACCES): run as the driver's user",
    ]),
  );
});

test("status details are seen", async () => {
  const world = await fakeWorld();
  world.csi.intercept(async ({ rpc }, proceed) => {
    try {
      return await proceed();
    } catch (error) {
      const { code, detail } = error as CsiCallError;
      throw new CsiCallError(rpc, code, detail, { hasDetails: true });
    }
  });
  const select = only("controller.create-volume.name-required", "protocol.status-details");
  expect(messagesOf((await runIn(world, { select })).results, "failed")).toEqual([
    "protocol.status-details: CreateVolume: status INVALID_ARGUMENT has details",
  ]);
});

test("the same seed gives the same run", async () => {
  const trace = async () => {
    const world = await fakeWorld({ maxVolumes: 8n });
    const calls: string[] = [];
    world.csi.intercept((call, proceed) => {
      calls.push(
        `${call.rpc} ${JSON.stringify(call.request, (_key, v) => (typeof v === "bigint" ? `${v}` : v))}`,
      );
      return proceed();
    });
    await runIn(world);
    return calls;
  };
  expect(await trace()).toEqual(await trace());
});

test.each([
  ["controller.expand-volume.already-larger", "SHOULD"],
  ["controller.list-volumes.paging-while-deleting", "ADVICE"],
  ["controller.create-volume.negative-size", "ADVICE"],
  ["controller.expand-volume.negative-size", "ADVICE"],
  ["controller.list-volumes.negative-max-entries", "ADVICE"],
  ["controller.list-snapshots.negative-max-entries", "ADVICE"],
  ["controller.create-snapshot.unknown-source", "ADVICE"],
  ["group-controller.create-group-snapshot.unknown-source", "ADVICE"],
  ["node.unpublish-volume.removes-empty-target", "ADVICE"],
  ["node.expand-volume.unknown-path", "ADVICE"],
  ["identity.plugin-capabilities.known", "ADVICE"],
  ["controller.capabilities.known", "ADVICE"],
  ["group-controller.capabilities.known", "ADVICE"],
  ["node.capabilities.known", "ADVICE"],
])("%s is no MUST: a driver without it keeps the contract, with a warning", async (id, verb) => {
  const { fault, hook, without = [] } = faultTable[id] ?? {};
  const world = await fakeWorld({ without, ...(fault === undefined ? {} : { fault: fault() }) });
  if (hook !== undefined) world.csi.intercept(hook);
  const report = await runIn(world, { select: only(id) });
  expect(report).toMatchObject({
    passed: 0,
    failed: 0,
    warned: 1,
    results: [{ id, verb, outcome: "warned" }],
  });
  expect(report.results[0]?.calls).not.toEqual([]);
  expect(isConformant(report)).toBe(true);
});

test.each(["node.stage-volume.relative-path", "node.publish-volume.relative-path"])(
  "%s: the code of the refusal is free",
  async (id) => {
    const absolute = (path: string) => {
      if (!path.startsWith("/")) throw new CsiStatusError("INTERNAL", "no such path");
    };
    const world = await fakeWorld({
      fault: ({ node, ...services }) => ({
        ...services,
        node: {
          ...node,
          async nodeStageVolume(request, signal) {
            absolute(request.stagingTargetPath);
            return (await node?.nodeStageVolume?.(request, signal)) ?? {};
          },
          async nodePublishVolume(request, signal) {
            absolute(request.targetPath);
            return (await node?.nodePublishVolume?.(request, signal)) ?? {};
          },
        },
      }),
    });
    const report = await runIn(world, { select: only(id) });
    expect(report).toMatchObject({ failed: 0, warned: 1, leftovers: [], results: [{ id, verb: "ADVICE" }] });
    expect(isConformant(report)).toBe(true);
  },
);

test("a driver that returns the parameter that was too long by our doing is not at fault", async () => {
  const world = await fakeWorld();
  world.csi.intercept(async (call, proceed) => {
    const answer = await proceed();
    const { volume } = answer as { readonly volume?: { readonly volumeContext: object } };
    const { parameters } = call.request as { readonly parameters?: object };
    if (volume !== undefined) Object.assign(volume.volumeContext, parameters);
    return answer;
  });
  const select = only("controller.create-volume.overlong-parameters", "protocol.map-size");
  const report = await runIn(world, { select });
  expect(messagesOf(report.results, "failed")).toEqual([]);
  expect(report.passed).toBe(2);
});

test("an answer that never came fails a check, whatever its verb", async () => {
  const id = "controller.expand-volume.already-larger";
  const world: FakeWorld = await fakeWorld();
  world.csi.intercept((call, proceed) => {
    if (call.rpc === "ControllerExpandVolume") throw lostReply(call.rpc);
    return proceed();
  });
  const report = await runIn(world, { select: only(id) });
  expect(report).toMatchObject({
    failed: 1,
    warned: 0,
    results: [{ id, verb: "SHOULD", outcome: "failed" }],
  });
});
