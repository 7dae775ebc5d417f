/**
 * How a driver's answers are cleaned, in every form of the CSI seams: the half of the contract that `guarded-connection.ts` keeps.
 */
import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { csiMethods, methodsWithSecrets, placesOfText, requestWithSecrets } from "@longshore/testing/csi";
import { describe, expect, it } from "vitest";
import { CsiCallError, type CsiConnection, type CsiConnectOptions, CsiStatusError } from "../index.ts";
import type { CsiForm } from "./csi-form.ts";

const options = { signal: new AbortController().signal, timeoutMs: 5_000 };
const password = `p"ss/w+rd ü${"\\"}7 $&.*`;
const secrets = { username: "operator", password };

type Message = MessageShape<DescMessage>;
type Method = (typeof csiMethods)[number];

/** What the driver does with each call. */
type Behaviour = (method: Method, request: Message) => Message | Promise<Message>;

const clients: Readonly<Record<string, keyof CsiConnection>> = {
  "csi.v1.Identity": "identity",
  "csi.v1.Controller": "controller",
  "csi.v1.GroupController": "groupController",
  "csi.v1.SnapshotMetadata": "snapshotMetadata",
  "csi.v1.Node": "node",
};

/** Cases of the contract. */
export function answersContract(form: () => CsiForm): void {
  describe("what a driver says", () => {
    it.each(methodsWithSecrets.map((method) => [method.name, method] as const))(
      "holds no secret when %s fails with it, nor when a later call does",
      async (_, method) => {
        const { call, stop } = await driverThat(form(), (_method) => {
          throw new CsiStatusError(
            "INTERNAL",
            `no entry with ${JSON.stringify(secrets)}, nor ${encoded(password)}`,
          );
        });
        const failures = [await failureOf(call(method, requestWithSecrets(method, secrets)))];
        for (const later of csiMethods) failures.push(await failureOf(call(later)));
        for (const failure of failures) {
          expectNoSecret(failure);
          expect(failure.detail).toMatch(/^no entry with \{"username":"\*\*\*stripped\*\*\*","password":/);
          expect(failure).toMatchObject({ code: "INTERNAL", answered: true });
        }
        await stop();
      },
    );

    it.each(
      methodsWithSecrets.flatMap((method) =>
        placesOfText(method.output, `x-${password}-y`).map(
          (place) => [`${method.name}: ${place.path}`, method, place] as const,
        ),
      ),
    )("is refused, or masked, with a secret in %s", async (_, method, place) => {
      const { call, stop } = await driverThat(form(), (asked) => place.plantIn(create(asked.output)));
      const ended = await call(method, requestWithSecrets(method, secrets)).then(
        (answer) => ({ answer }),
        (error: unknown) => ({ error }),
      );
      if ("error" in ended) {
        expectNoSecret(ended.error as Error);
        expect(ended.error).toMatchObject({ code: "INTERNAL", answered: false });
        const field = place.path.split(" ")[0] ?? "";
        expect((ended.error as Error).message).toContain(`${field} holds a secret of the request`);
      } else {
        expect(place.path).toMatch(/message$/);
        expect(JSON.stringify(ended.answer, plain)).toContain("x-***stripped***-y");
      }
      // Unchanged, for tests of a driver.
      const raw = await driverThat(form(), (asked) => place.plantIn(create(asked.output)), {
        answers: "raw",
      });
      const answer = await raw.call(method, requestWithSecrets(method, secrets));
      expect(JSON.stringify(answer, plain)).toContain(JSON.stringify(`x-${password}-y`));
      await Promise.all([stop(), raw.stop()]);
    });

    it("keeps words that stood beside a credential once, and bounds what is remembered", async () => {
      const { connection, stop } = await driverThat(form(), (method, request) => {
        const { secrets: own = {} } = request as { secrets?: Record<string, string> };
        const given = own.key ?? "";
        throw new CsiStatusError(
          "INTERNAL",
          `${method.name}: admin cannot log in with ${given} of key-000-secret`,
        );
      });
      const detailFor = async (given: Record<string, string>) =>
        (await failureOf(connection.controller.deleteVolume({ secrets: given }, options))).detail;
      expect(await detailFor({ user: "admin" })).toContain(": ***stripped*** cannot");
      expect(await detailFor({ key: "key-000-secret" })).toMatch(
        /: admin cannot log in with \*\*\*stripped\*\*\* of \*/,
      );
      for (let n = 1; n <= 255; n++) await detailFor({ key: `key-${n}-secret` });
      expect(await detailFor({})).toMatch(/of \*\*\*stripped\*\*\*$/);
      // One more, and the one used longest ago is forgotten; that of the call itself never is.
      expect(await detailFor({ key: "key-256-secret" })).toMatch(
        /with \*\*\*stripped\*\*\* of key-000-secret$/,
      );
      await stop();
    });

    it("may have a user's name, a short password or what the request says in the open in an id", async () => {
      for (const { given, volumeId } of [
        {
          given: { user: "operator", endpoint: "https://store.local" },
          volumeId: "operator#https://store.local",
        },
        { given: { password: "short-7" }, volumeId: "vol-short-7" },
        { given: { key: "pvc-0123456789" }, volumeId: "pvc-0123456789" },
      ]) {
        const driver = await driverThat(form(), (method) => answerOf(method, { volume: { volumeId } }));
        const { volume } = await driver.connection.controller.createVolume(
          { name: "pvc-0123456789", secrets: given },
          options,
        );
        expect(volume?.volumeId).toBe(volumeId);
        await driver.stop();
      }
    });

    it("is passed on with a credential in a context where a caller asks for it", async () => {
      const publishContext = { chap: password };
      const { connection, stop } = await driverThat(
        form(),
        (method) => answerOf(method, { publishContext }),
        { answers: "masked" },
      );
      const answer = await connection.controller.controllerPublishVolume({ secrets }, options);
      expect(answer.publishContext).toEqual(publishContext);
      await stop();
    });

    it("is on one line, steers no terminal, and is bounded", async () => {
      const said = `a\r\nb\x1b[2J\u202ec\u2028d${"e".repeat(50_000)}`;
      const { connection, stop } = await driverThat(form(), (method) => {
        if (method.name === "DeleteVolume") throw new CsiStatusError("INTERNAL", said.slice(0, 4000));
        return answerOf(method, { volumeCondition: { abnormal: true, message: said } });
      });
      const failure = await failureOf(connection.controller.deleteVolume({}, options));
      const { volumeCondition } = await connection.node.nodeGetVolumeStats({}, options);
      for (const text of [failure.detail, volumeCondition?.message ?? ""]) {
        expect(text).toMatch(/^a\\r\\nb\\x1b\[2J\\u202ec\\u2028deee/);
        expect(text).toMatch(/e… \(\d+ more characters\)$/);
        expect(text.length).toBeLessThan(2100);
      }
      await stop();
    });

    it.each([
      [
        "an id that is too long",
        { volume: { volumeId: "v".repeat(4097) } },
        "volume.volume_id has 4097 characters",
      ],
      [
        "an id of several lines",
        { volume: { volumeId: "v\nw" } },
        "volume.volume_id holds control characters",
      ],
      [
        "a context that is too large",
        { volume: { volumeId: "v", volumeContext: { a: "x".repeat(40_000), b: "x".repeat(40_000) } } },
        "volume.volume_context has more than 65536 characters",
      ],
      [
        "topology that steers a terminal",
        { volume: { volumeId: "v", accessibleTopology: [{ segments: { zone: "\x1b[2J" } }] } },
        "volume.accessible_topology.segments holds control characters",
      ],
    ])("is refused with %s, and what became of the call is open", async (_, answer, words) => {
      const { connection, stop } = await driverThat(form(), (method) => answerOf(method, answer));
      const failure = await failureOf(connection.controller.createVolume({ name: "a" }, options));
      expect(failure).toMatchObject({ code: "INTERNAL", answered: false });
      expect(failure.message).toContain(`the answer cannot be used: ${words}`);
      expect(failure.message).toContain("driver bug: ");
      await stop();
    });

    it("has ids as long as those of well-known drivers", async () => {
      const volumeId = `/subscriptions/${"x".repeat(300)}`;
      const { connection, stop } = await driverThat(form(), (method) =>
        answerOf(method, { volume: { volumeId } }),
      );
      const { volume } = await connection.controller.createVolume({ name: "a" }, options);
      expect(volume?.volumeId).toBe(volumeId);
      await stop();
    });

    it("is refused at registration too, where it steers a terminal", async () => {
      const { connector, listener, endpoint } = form();
      const at = endpoint();
      const server = await listener.serveRegistration(at, {
        getInfo: async () => ({
          type: "CSIPlugin",
          name: "a\x1b[2Jb",
          endpoint: "",
          supportedVersions: ["1.0.0"],
        }),
        async notifyRegistrationStatus() {
          throw new CsiStatusError("INTERNAL", "a\nb");
        },
      });
      const registrar = connector.connectRegistration(at);
      const failure = await failureOf(registrar.getInfo(options));
      expect(failure.message).toContain("name holds control characters");
      const failed = await failureOf(
        registrar.notifyRegistrationStatus({ pluginRegistered: true, error: "" }, options),
      );
      expect(failed.detail).toBe("a\\nb");
      registrar.close();
      await server.close();
    });
  });
}

/** A driver that answers every RPC by one function, and a connection to it. */
async function driverThat(
  { connector, listener, endpoint }: CsiForm,
  behave: Behaviour,
  connectOptions: CsiConnectOptions = {},
) {
  const services: Record<string, Record<string, unknown>> = { identity: {} };
  for (const method of csiMethods) {
    const service = clients[method.parent.typeName] ?? "";
    services[service] ??= {};
    const handlers = services[service] as Record<string, unknown>;
    handlers[method.localName] =
      method.methodKind === "server_streaming"
        ? async function* (request: Message) {
            yield await behave(method, request);
          }
        : async (request: Message) => behave(method, request);
  }
  const at = endpoint();
  const server = await listener.serve(at, services as never);
  const connection = connector.connect(at, connectOptions);
  return {
    connection,
    /** Returns the answer; of a stream, the first one. */
    async call(method: Method, request: Message = create(method.input)): Promise<Message> {
      const client = connection[clients[method.parent.typeName] ?? "identity"] as unknown as Record<
        string,
        (request: Message, call: typeof options) => unknown
      >;
      const made = client[method.localName]?.(request, options);
      if (method.methodKind !== "server_streaming") return made as Promise<Message>;
      for await (const answer of made as AsyncIterable<Message>) return answer;
      throw new Error("an empty stream");
    },
    async stop() {
      connection.close();
      await server.close();
    },
  };
}

const answerOf = (method: Method, answer: object) => create(method.output, answer as never);

async function failureOf(call: Promise<unknown>): Promise<CsiCallError> {
  const error = await call.then(
    () => undefined,
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(CsiCallError);
  return error as CsiCallError;
}

const encoded = (value: string) =>
  [
    encodeURIComponent(value),
    new URLSearchParams({ value }).toString(),
    Buffer.from(`user:${value}`).toString("base64"),
    Buffer.from(value).toString("base64url"),
    Buffer.from(value).toString("hex"),
    JSON.stringify(JSON.stringify(value)),
  ].join(" ");

function expectNoSecret(error: Error): void {
  const text = `${error.message} ${error.stack} ${JSON.stringify(error, plain)} ${String((error.cause as Error)?.message)}`;
  for (const form of [...encoded(password).split(" "), password, "operator"])
    expect(text).not.toContain(form);
}

const plain = (_key: string, value: unknown) => (typeof value === "bigint" ? `${value}` : value);
