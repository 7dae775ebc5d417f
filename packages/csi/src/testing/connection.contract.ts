/** What every form of the CSI seams must do; run against gRPC over real sockets and in process. */
import { describe, expect, it } from "vitest";
import { CsiCallError, type CsiServices, CsiStatusError } from "../index.ts";
import { answersContract } from "./answers.contract.ts";
import type { CsiForm } from "./csi-form.ts";

const never = new AbortController().signal;
const options = { signal: never, timeoutMs: 5_000 };
/** A deadline that passes in a test: time enough for a busy machine to connect and reach the handler before it. */
const callMs = 1_000;

/** A driver whose controller half shows every kind of ending. */
function driver(over: CsiServices["controller"] = {}): CsiServices {
  return {
    identity: {
      getPluginInfo: async () => ({ name: "demo.csi", vendorVersion: "1" }),
      probe: async () => ({}),
    },
    controller: {
      createVolume: async (request) => ({
        volume: {
          volumeId: `vol-${request.name}`,
          capacityBytes: request.capacityRange?.requiredBytes ?? 0n,
          volumeContext: request.parameters,
        },
      }),
      ...over,
    },
  };
}

async function failure(call: Promise<unknown>): Promise<CsiCallError> {
  const error = await call.then(
    () => undefined,
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(CsiCallError);
  return error as CsiCallError;
}

export function csiContract(name: string, form: () => CsiForm): void {
  describe(`CSI connections: ${name}`, () => {
    answersContract(form);

    it("carries requests and answers, 64-bit sizes included", async () => {
      const { connector, listener, endpoint } = form();
      const at = endpoint();
      const server = await listener.serve(at, driver());
      const connection = connector.connect(`unix://${at}`);
      const { volume } = await connection.controller.createVolume(
        { name: "a", capacityRange: { requiredBytes: 2n ** 60n }, parameters: { type: "gp3" } },
        options,
      );
      expect(volume?.volumeId).toBe("vol-a");
      expect(volume?.capacityBytes).toBe(2n ** 60n);
      expect(volume?.volumeContext).toEqual({ type: "gp3" });
      expect((await connection.identity.probe({}, options)).ready).toBeUndefined();
      connection.close();
      await server.close();
    });

    it("hands on the status that a driver answers with", async () => {
      const { connector, listener, endpoint } = form();
      const at = endpoint();
      const server = await listener.serve(
        at,
        driver({
          deleteVolume: async () => {
            throw new CsiStatusError("FAILED_PRECONDITION", "volume is in use");
          },
        }),
      );
      const connection = connector.connect(at);
      const error = await failure(connection.controller.deleteVolume({ volumeId: "v" }, options));
      expect(error).toMatchObject({
        rpc: "DeleteVolume",
        code: "FAILED_PRECONDITION",
        detail: "volume is in use",
        answered: true,
      });
      connection.close();
      await server.close();
    });

    it.each([
      ["a service that is not served", "node"],
      ["a method that is not implemented", "controller"],
    ] as const)("answers UNIMPLEMENTED to %s", async (_, service) => {
      const { connector, listener, endpoint } = form();
      const at = endpoint();
      const server = await listener.serve(at, driver());
      const connection = connector.connect(at);
      const call =
        service === "node"
          ? connection.node.nodeGetInfo({}, options)
          : connection.controller.listVolumes({}, options);
      const error = await failure(call);
      expect(error.code).toBe("UNIMPLEMENTED");
      connection.close();
      await server.close();
    });

    it("answers INTERNAL to a handler's defect, without its text", async () => {
      const { connector, listener, endpoint } = form();
      const at = endpoint();
      const server = await listener.serve(
        at,
        driver({
          deleteVolume: async () => {
            throw new TypeError("password is hunter2");
          },
        }),
      );
      const connection = connector.connect(at);
      const error = await failure(connection.controller.deleteVolume({ volumeId: "v" }, options));
      expect(error.code).toBe("INTERNAL");
      expect(error.answered).toBe(true);
      expect(error.message).not.toContain("hunter2");
      connection.close();
      await server.close();
    });

    it("fails with answered: false when no server listens", async () => {
      const { connector, endpoint } = form();
      const connection = connector.connect(endpoint());
      const error = await failure(connection.identity.probe({}, options));
      expect(error).toMatchObject({ code: "UNAVAILABLE", answered: false });
      connection.close();
    });

    it("ends a call at its deadline, and aborts the handler's signal", async () => {
      const { connector, listener, endpoint } = form();
      const at = endpoint();
      let onAborted: () => void = () => {};
      const handlerAborted = new Promise<void>((resolve) => {
        onAborted = resolve;
      });
      const server = await listener.serve(at, driver({ deleteVolume: hanging(() => onAborted()) }));
      const connection = connector.connect(at);
      const error = await failure(
        connection.controller.deleteVolume({ volumeId: "v" }, { signal: never, timeoutMs: callMs }),
      );
      expect(error).toMatchObject({ code: "DEADLINE_EXCEEDED", answered: false });
      await handlerAborted;
      connection.close();
      await server.close();
    });

    it("ends a call when its signal aborts, and aborts the handler's signal", async () => {
      const { connector, listener, endpoint } = form();
      const at = endpoint();
      const abort = new AbortController();
      let onAborted: () => void = () => {};
      const handlerAborted = new Promise<void>((resolve) => {
        onAborted = resolve;
      });
      const server = await listener.serve(
        at,
        driver({
          deleteVolume: (request, signal) => {
            queueMicrotask(() => abort.abort());
            return hanging(() => onAborted())(request, signal);
          },
        }),
      );
      const connection = connector.connect(at);
      const error = await failure(
        connection.controller.deleteVolume({ volumeId: "v" }, { signal: abort.signal, timeoutMs: 5_000 }),
      );
      expect(error).toMatchObject({ code: "CANCELLED", answered: false });
      await handlerAborted;
      const before = await failure(
        connection.controller.deleteVolume({ volumeId: "v" }, { signal: abort.signal, timeoutMs: 5_000 }),
      );
      expect(before).toMatchObject({ code: "CANCELLED", answered: false });
      connection.close();
      await server.close();
    });

    it("leaves the outcome open when the server ends during a call", async () => {
      const { connector, listener, endpoint } = form();
      const at = endpoint();
      let arrived: () => void = () => {};
      const inHandler = new Promise<void>((resolve) => {
        arrived = resolve;
      });
      const server = await listener.serve(
        at,
        driver({
          deleteVolume: (request, signal) => {
            arrived();
            return hanging(() => {})(request, signal);
          },
        }),
      );
      const connection = connector.connect(at);
      const call = failure(connection.controller.deleteVolume({ volumeId: "v" }, options));
      await inHandler;
      await server.close();
      expect((await call).answered).toBe(false);
      connection.close();
    });

    it("finds a driver again that was restarted", async () => {
      const { connector, listener, endpoint } = form();
      const at = endpoint();
      const connection = connector.connect(at);
      await failure(connection.identity.probe({}, options));
      for (let restart = 0; restart < 2; restart++) {
        const server = await listener.serve(at, driver());
        const answer = await untilAnswered(() => connection.identity.getPluginInfo({}, options));
        expect(answer.name).toBe("demo.csi");
        await server.close();
      }
      connection.close();
    });

    it("refuses an endpoint that a live server has, and leaves that server alone", async () => {
      const { connector, listener, endpoint } = form();
      const at = endpoint();
      const server = await listener.serve(at, driver());
      await expect(listener.serve(at, driver())).rejects.toThrow(/in use by a live server/);
      const connection = connector.connect(at);
      expect((await connection.identity.getPluginInfo({}, options)).name).toBe("demo.csi");
      connection.close();
      await server.close();
    });

    it("refuses a path that no socket can have, in one sentence", async () => {
      const { listener } = form();
      const long = `/tmp/${"x".repeat(110)}/csi.sock`;
      await expect(listener.serve(long, driver())).rejects.toThrow(/a unix socket takes 107: use a shorter/);
      await expect(listener.serve("csi.sock", driver())).rejects.toThrow(/absolute path/);
    });

    it("reports the loss of an established connection, and of no other", async () => {
      const { connector, listener, endpoint } = form();
      const at = endpoint();
      const lost: string[] = [];
      const vain = connector.connect(endpoint());
      vain.onLost(() => lost.push("never reached"));
      await failure(vain.identity.probe({}, options));
      const unused = connector.connect(at);
      unused.onLost(() => lost.push("never used"));

      const first = await listener.serve(at, driver());
      const connection = connector.connect(at);
      let resolveLost = () => {};
      const onAborted = new Promise<void>((resolve) => {
        resolveLost = resolve;
      });
      connection.onLost(() => {
        lost.push("established");
        resolveLost();
      });
      connection.onLost(() => lost.push("taken off"))();
      await connection.identity.probe({}, options);
      expect(lost).toEqual([]);
      const closed = connector.connect(at);
      closed.onLost(() => lost.push("closed by us"));
      await closed.identity.probe({}, options);
      closed.close();
      await first.close();
      await onAborted;

      const second = await listener.serve(at, driver());
      // A listener that is added too late is called at once.
      connection.onLost(() => lost.push("late"));
      await connection.identity.probe({}, options);
      await second.close();
      expect(lost).toEqual(["established", "late"]);
      vain.close();
      unused.close();
      connection.close();
    });

    it("carries a stream of answers in order, to its end", async () => {
      const { connection, stop } = await streaming(form(), async function* (request) {
        for (let at = request.startingOffset; at < 5n; at++) yield tuples(at);
      });
      const answers = connection.snapshotMetadata.getMetadataAllocated(
        { snapshotId: "s", startingOffset: 2n },
        options,
      );
      expect(await offsetsOf(answers)).toEqual([2n, 3n, 4n]);
      const missing = await failure(offsetsOf(connection.snapshotMetadata.getMetadataDelta({}, options)));
      expect(missing).toMatchObject({ rpc: "GetMetadataDelta", code: "UNIMPLEMENTED", answered: true });
      await stop();
    });

    it("ends a stream with the status that the driver fails with, without the text of a defect", async () => {
      const taken = gate();
      const { connection, stop } = await streaming(form(), async function* ({ snapshotId }) {
        if (snapshotId === "unknown") throw new CsiStatusError("NOT_FOUND", "no such snapshot");
        if (snapshotId === "defect") throw new TypeError("password is hunter2");
        yield tuples(0n);
        await taken.opened;
        throw new CsiStatusError("OUT_OF_RANGE", "beyond the end");
      });
      const { getMetadataAllocated } = connection.snapshotMetadata;
      const unknown = await failure(offsetsOf(getMetadataAllocated({ snapshotId: "unknown" }, options)));
      expect(unknown).toMatchObject({
        rpc: "GetMetadataAllocated",
        code: "NOT_FOUND",
        detail: "no such snapshot",
        answered: true,
      });
      const defect = await failure(offsetsOf(getMetadataAllocated({ snapshotId: "defect" }, options)));
      expect(defect).toMatchObject({ code: "INTERNAL", answered: true });
      expect(defect.message).not.toContain("hunter2");
      const seen: bigint[] = [];
      const late = await failure(
        (async () => {
          for await (const { blockMetadata } of getMetadataAllocated({ snapshotId: "s" }, options)) {
            seen.push(...blockMetadata.map(({ byteOffset }) => byteOffset));
            taken.open();
          }
        })(),
      );
      expect(late).toMatchObject({ code: "OUT_OF_RANGE", detail: "beyond the end" });
      expect(seen).toEqual([0n]);
      await stop();
    });

    it("has a driver produce no more of a stream than is taken, and ends the handler when its caller leaves", async () => {
      const ended = gate();
      let made = 0;
      const { connection, stop } = await streaming(form(), async function* () {
        try {
          for (;;) {
            made++;
            yield tuples(BigInt(made), 10_000);
          }
        } finally {
          ended.open();
        }
      });
      let taken = 0;
      for await (const answer of connection.snapshotMetadata.getMetadataAllocated({}, options)) {
        expect(answer.blockMetadata).toHaveLength(10_000);
        if (++taken === 3) break;
      }
      await ended.opened;
      expect(made).toBeLessThan(100);
      await stop();
    });

    it.each([
      ["at its deadline", "DEADLINE_EXCEEDED"],
      ["when its signal aborts", "CANCELLED"],
    ] as const)("ends a stream %s, and ends its handler", async (_, code) => {
      const ended = gate();
      const { connection, stop } = await streaming(form(), async function* (request, signal) {
        try {
          yield tuples(0n);
          await hanging(() => {})(request, signal);
        } finally {
          ended.open();
        }
      });
      const abort = new AbortController();
      const timeoutMs = code === "CANCELLED" ? 5_000 : callMs;
      const call = () =>
        connection.snapshotMetadata.getMetadataAllocated({}, { signal: abort.signal, timeoutMs });
      const error = await failure(
        (async () => {
          for await (const _ of call()) if (code === "CANCELLED") abort.abort();
        })(),
      );
      expect(error).toMatchObject({ code, answered: false });
      await ended.opened;
      if (code === "CANCELLED") expect(await failure(offsetsOf(call()))).toMatchObject({ code });
      await stop();
    });

    it("fails with answered: false for a stream whose server is unreachable, ends or is left", async () => {
      const parts = form();
      const at = parts.endpoint();
      const unserved = parts.connector.connect(at);
      const away = await failure(offsetsOf(unserved.snapshotMetadata.getMetadataAllocated({}, options)));
      expect(away).toMatchObject({ code: "UNAVAILABLE", answered: false });
      unserved.close();

      const { connection, server, stop } = await streaming(parts, async function* (request, signal) {
        yield tuples(0n);
        await hanging(() => {})(request, signal);
      });
      const dying = await failure(
        (async () => {
          for await (const _ of connection.snapshotMetadata.getMetadataAllocated({}, options)) {
            void server.close();
          }
        })(),
      );
      expect(dying.answered).toBe(false);
      await stop();
      const left = await failure(offsetsOf(connection.snapshotMetadata.getMetadataAllocated({}, options)));
      expect(left.answered).toBe(false);
    });

    it("speaks the registration protocol", async () => {
      const { connector, listener, endpoint } = form();
      const at = endpoint();
      const heard: unknown[] = [];
      const server = await listener.serveRegistration(at, {
        getInfo: async () => ({
          type: "CSIPlugin",
          name: "demo.csi",
          endpoint: "/csi/csi.sock",
          supportedVersions: ["1.0.0"],
        }),
        notifyRegistrationStatus: async (status) => {
          heard.push({ pluginRegistered: status.pluginRegistered, error: status.error });
        },
      });
      const registrar = connector.connectRegistration(at);
      expect(await registrar.getInfo(options)).toMatchObject({
        type: "CSIPlugin",
        name: "demo.csi",
        endpoint: "/csi/csi.sock",
        supportedVersions: ["1.0.0"],
      });
      await registrar.notifyRegistrationStatus({ pluginRegistered: false, error: "no" }, options);
      expect(heard).toEqual([{ pluginRegistered: false, error: "no" }]);
      registrar.close();
      await server.close();
    });
  });
}

/** A handler that ends only when its call is given up. */
function hanging(onAborted: () => void) {
  return (_: unknown, signal: AbortSignal) =>
    new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => {
        onAborted();
        reject(new CsiStatusError("CANCELLED", "given up"));
      });
    });
}

/** Repeats a call until a server answers; the channel reconnects on its own, at most a second later. */
async function untilAnswered<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof CsiCallError) || error.answered) throw error;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

type AllocatedHandler = NonNullable<NonNullable<CsiServices["snapshotMetadata"]>["getMetadataAllocated"]>;

/** A driver that streams, and a connection to it. */
async function streaming({ connector, listener, endpoint }: CsiForm, getMetadataAllocated: AllocatedHandler) {
  const at = endpoint();
  const server = await listener.serve(at, { ...driver(), snapshotMetadata: { getMetadataAllocated } });
  const connection = connector.connect(at);
  const stop = async () => {
    connection.close();
    await server.close();
  };
  return { connection, server, stop };
}

function tuples(byteOffset: bigint, count = 1) {
  return { blockMetadata: Array.from({ length: count }, () => ({ byteOffset, sizeBytes: 1n })) };
}

interface Tuples {
  readonly blockMetadata: readonly { readonly byteOffset: bigint }[];
}

async function offsetsOf(stream: AsyncIterable<Tuples>): Promise<readonly bigint[]> {
  const seen: bigint[] = [];
  for await (const { blockMetadata } of stream) seen.push(...blockMetadata.map((tuple) => tuple.byteOffset));
  return seen;
}

/** Something that is waited for. */
function gate() {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open: () => open(), opened };
}
