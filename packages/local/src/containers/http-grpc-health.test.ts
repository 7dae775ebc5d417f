/** Probes of gRPC, against a real server of health checks. */
import { Server, ServerCredentials, type ServiceDefinition, status } from "@grpc/grpc-js";
import { afterEach, beforeEach, expect, it } from "vitest";
import { checkGrpcHealth } from "./http-grpc-health.ts";

const never = new AbortController().signal;
const definition: ServiceDefinition = {
  check: {
    path: "/grpc.health.v1.Health/Check",
    requestStream: false,
    responseStream: false,
    requestSerialize: (bytes: Buffer) => bytes,
    requestDeserialize: (bytes: Buffer) => bytes,
    responseSerialize: (bytes: Buffer) => bytes,
    responseDeserialize: (bytes: Buffer) => bytes,
  },
};

let server: Server;
let port: number;
let asked: string[];
let answer: (done: (error: object | null, bytes?: Buffer) => void) => void;
beforeEach(async () => {
  asked = [];
  server = new Server();
  server.addService(definition, {
    check: (call: { readonly request: Buffer }, done: Parameters<typeof answer>[0]) => {
      asked.push(call.request.toString("hex"));
      answer(done);
    },
  });
  port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
});
afterEach(() => server.forceShutdown());

const check = (service = "", signal = never) => checkGrpcHealth({ host: "127.0.0.1", port, service }, signal);

it.each([
  ["SERVING", Buffer.of(8, 1)],
  ["NOT_SERVING", Buffer.of(8, 2)],
  ["UNKNOWN", Buffer.alloc(0)],
  ["9", Buffer.of(8, 9)],
])("the answer %s", async (expected, bytes) => {
  answer = (done) => done(null, bytes);
  expect(await check()).toBe(expected);
  expect(asked).toEqual([""]);
});

it("names the service that it asks for, also a long one", async () => {
  answer = (done) => done(null, Buffer.of(8, 1));
  await check("db");
  await check("x".repeat(200));
  expect(asked[0]).toBe("0a026462");
  expect(asked[1]?.slice(0, 6)).toBe("0ac801");
});

it("a service that is not known fails with the code", async () => {
  answer = (done) => done({ code: status.NOT_FOUND, details: "unknown service" });
  await expect(check("x")).rejects.toThrow("gRPC NOT_FOUND: unknown service");
});

it("no answer, and nothing that listens", async () => {
  const late = new AbortController();
  answer = () => late.abort(new Error("too late"));
  await expect(check("", late.signal)).rejects.toThrow("too late");
  server.forceShutdown();
  await expect(check()).rejects.toThrow("UNAVAILABLE");
});
