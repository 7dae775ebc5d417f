import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Informer, Pod } from "@longshore/kube";
import { type Component, systemClock } from "@longshore/runtime";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PodRuntime } from "../containers/pod-runtime.ts";
import { startNodeServer } from "./http-node-server.ts";
import { statsSummary } from "./stats-summary.ts";

const node = { nodeName: "n1", startTime: "2026-01-01T00:00:00Z" };
const startTime = "2026-01-01T00:01:00Z";
const aPod = (name: string, status: Pod["status"] = { startTime }) => ({
  metadata: { name, namespace: "ns", uid: `uid-${name}`, resourceVersion: "1" },
  status,
});
const volume = [
  {
    time: "2026-01-01T00:02:00Z",
    name: "data",
    pvcRef: { namespace: "ns", name: "claim" },
    capacityBytes: 100,
    availableBytes: 60,
    usedBytes: 40,
    volumeHealthStats: { abnormal: true },
  },
];
const refOf = (name: string) => ({ name, namespace: "ns", uid: `uid-${name}` });

describe("the summary of a node", () => {
  it("has the figures of each pod that has begun, and no other", () => {
    const pods = [aPod("b"), aPod("new", {}), aPod("a")];
    const volumes = [
      { podRef: refOf("a"), volume },
      { podRef: refOf("gone"), volume },
    ];
    expect(statsSummary(node, pods, volumes)).toEqual({
      node,
      pods: [
        { podRef: refOf("a"), startTime, containers: [], volume },
        { podRef: refOf("b"), startTime, containers: [] },
      ],
    });
  });
});

describe("a node's server", () => {
  let dir: string;
  let server: Component;
  const summary = () => statsSummary(node, [aPod("a")], [{ podRef: refOf("a"), volume }]);

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), "longshore-node-"));
    const services = {
      clock: systemClock,
      pods: { get: () => undefined } as unknown as Informer<Pod>,
      runtime: {} as PodRuntime,
      logDir: dir,
      stats: summary,
      metrics: async () => "kubelet_volume_stats_capacity_bytes 1\n",
      onError: (error: unknown) => {
        throw error;
      },
    };
    server = await startNodeServer(services, join(dir, "node.sock"));
  });
  afterEach(async () => {
    await server.stop();
    rmSync(dir, { recursive: true });
  });

  function get(path: string) {
    return new Promise<{ code: number | undefined; type: string | undefined; text: string }>(
      (resolve, reject) => {
        const asked = request({ socketPath: join(dir, "node.sock"), path, agent: false }, async (answer) => {
          let text = "";
          for await (const chunk of answer) text += String(chunk);
          resolve({ code: answer.statusCode, type: answer.headers["content-type"], text });
        });
        asked.on("error", reject).end();
      },
    );
  }

  it("answers /stats/summary as JSON", async () => {
    const { code, type, text } = await get("/stats/summary?only_cpu_and_memory=false");
    expect([code, type]).toEqual([200, "application/json"]);
    expect(JSON.parse(text)).toEqual(summary());
  });

  it("answers /metrics as text", async () => {
    expect(await get("/metrics")).toEqual({
      code: 200,
      type: "text/plain",
      text: "kubelet_volume_stats_capacity_bytes 1\n",
    });
  });

  it("answers 404 for a pod that it does not have, and for what it does not serve", async () => {
    expect((await get("/containerLogs/ns/a/main")).code).toBe(404);
    expect((await get("/stats/other")).code).toBe(404);
  });
});
