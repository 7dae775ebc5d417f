/** What a probe of gRPC asks for, and what its answers mean. */
import type { Pod, Stored } from "@longshore/kube";
import { VirtualClock } from "@longshore/runtime";
import { expect, it } from "vitest";
import { type GrpcHealthRequest, noProbeNetwork } from "../containers/probe-network.ts";
import { runHandler } from "./run-probe.ts";

const target = { pod: { metadata: { name: "p", uid: "u" } } as Stored<Pod>, container: { name: "c" } };
const signal = new AbortController().signal;

function probe(clock: VirtualClock, grpcHealth: typeof noProbeNetwork.grpcHealth, grpc: object = {}) {
  const runtime = { exec: () => Promise.reject(new Error("no program is run")) };
  const parts = { clock, runtime, network: { ...noProbeNetwork, grpcHealth } };
  return runHandler(parts, target, { grpc: { port: 9000, ...grpc } }, 1000, signal);
}

it("only SERVING is a success; the service is named", async () => {
  const clock = new VirtualClock();
  const asked: GrpcHealthRequest[] = [];
  const says = (status: string) => async (request: GrpcHealthRequest) => {
    asked.push(request);
    return status;
  };
  expect(await probe(clock, says("SERVING"), { service: "db" })).toBeUndefined();
  expect(await probe(clock, says("NOT_SERVING"))).toContain('"NOT_SERVING"');
  expect(asked).toEqual([
    { host: "127.0.0.1", port: 9000, service: "db" },
    { host: "127.0.0.1", port: 9000, service: "" },
  ]);
});

it("a server without an answer fails the probe with its error, or at its deadline", async () => {
  const clock = new VirtualClock();
  expect(await probe(clock, noProbeNetwork.grpcHealth)).toContain("nothing listens");
  const hung = probe(
    clock,
    (_request, within) =>
      new Promise((_resolve, reject) => {
        within.addEventListener("abort", () => reject(within.reason));
      }),
  );
  await clock.advance(1000);
  expect(await hung).toBe("no answer within 1 seconds");
});
