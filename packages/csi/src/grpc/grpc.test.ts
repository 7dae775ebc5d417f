import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { silentLogger, systemClock, VirtualClock } from "@longshore/runtime";
import { afterAll, describe, expect, it } from "vitest";
import { grpcConnector, grpcListener } from "../index.ts";
import { csiContract } from "../testing/connection.contract.ts";

const directory = mkdtempSync("/tmp/ls-csi-");
afterAll(() => rmSync(directory, { recursive: true, force: true }));

let next = 0;
const endpoint = () => `${directory}/${next++}.sock`;
const connector = grpcConnector({ clock: systemClock });
const listener = grpcListener({ logger: silentLogger });
csiContract("gRPC over a unix socket", () => ({ connector, listener, endpoint }));

describe("gRPC sockets", () => {
  it("are closed to other users and gone after closing", async () => {
    const at = endpoint();
    const server = await listener.serve(at, { identity: {} });
    expect(statSync(at).mode & 0o777).toBe(0o600);
    await server.close();
    expect(statSync(at, { throwIfNoEntry: false })).toBeUndefined();
  });

  it("take the place of what a dead server left", async () => {
    const at = endpoint();
    writeFileSync(at, "");
    const server = await listener.serve(at, { identity: { probe: async () => ({ ready: true }) } });
    const connection = connector.connect(at);
    const options = { signal: new AbortController().signal, timeoutMs: 5_000 };
    expect((await connection.identity.probe({}, options)).ready).toBe(true);
    connection.close();
    await server.close();
  });

  it("leave the outcome open when a server answers nonsense", async () => {
    const at = endpoint();
    const nonsense = createServer((socket) => socket.end("HTTP/1.1 200 OK\r\n\r\n", () => socket.destroy()));
    await new Promise<void>((resolve) => nonsense.listen(at, resolve));
    const connection = connector.connect(at);
    const options = { signal: new AbortController().signal, timeoutMs: 5_000 };
    await expect(connection.identity.probe({}, options)).rejects.toMatchObject({ answered: false });
    connection.close();
    await new Promise((resolve) => nonsense.close(resolve));
  });

  it("say the same of a driver that does not answer, whichever timer is first", async () => {
    const at = endpoint();
    const silent = createServer((socket) => socket.resume());
    await new Promise<void>((resolve) => silent.listen(at, resolve));
    // Its timers do not fire, and the time at which the call is to end has long been: the library's own is first.
    const connection = grpcConnector({ clock: new VirtualClock() }).connect(at);
    const options = { signal: new AbortController().signal, timeoutMs: 3000 };
    await expect(connection.identity.probe({}, options)).rejects.toMatchObject({
      code: "DEADLINE_EXCEEDED",
      answered: false,
      detail: "no answer within 3000 ms",
      cause: { name: "DeadlineError" },
    });
    connection.close();
    await new Promise((resolve) => silent.close(resolve));
  });
});
