/** Plugin registration with registrars that fail, hang and come again, under the virtual clock. */
import type { CsiConnector } from "@longshore/csi";
import { noMeter, recordingLogger, SeededRandom, SimulatedHost, VirtualClock } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import type { PluginCandidate, RegistrationHandler } from "./csi-registration-handler.ts";
import { startPluginRegistration } from "./plugin-registration.ts";

const directory = "/kubelet/plugins_registry";
const path = (name: string) => `${directory}/${name}.sock`;

/** What happens, with the second at which it does: questions, reports, calls of the handler, closed connections. */
async function registrationWorld() {
  const clock = new VirtualClock();
  const host = new SimulatedHost();
  await host.makeDirectory(directory);
  const logger = recordingLogger();
  const story: string[] = [];
  // In tenths of a second: a look begins some milliseconds after the one before.
  const note = (line: string) => story.push(`${Math.floor(clock.monotonicMs() / 100) / 10} ${line}`);
  const world = {
    clock,
    host,
    story,
    mayRegister: true,
    /** By the name of the socket: what it answers to GetInfo; nothing: its own name as the driver's. */
    getInfo: new Map<string, (signal: AbortSignal) => Promise<string>>(),
    validate: (_candidate: PluginCandidate) => {},
    register: async (_candidate: PluginCandidate, _signal: AbortSignal) => {},
    deRegister: async (_name: string) => {},
    /** What stands before each report. */
    beforeReport: async () => {},
    warnings: () => logger.lines.filter(({ level }) => level === "warn").map(({ message }) => message),
    async removeSocket(name: string) {
      await host.removeFile(path(name));
    },
    async recreateSocket(name: string) {
      await host.removeFile(path(name));
      host.placeSocket(path(name));
    },
  };
  let connections = 0;
  const connector: Pick<CsiConnector, "connectRegistration"> = {
    connectRegistration(socketPath) {
      const name = socketPath.slice(directory.length + 1, -".sock".length);
      const connection = ++connections;
      return {
        async getInfo({ signal }) {
          note(`ask ${name}`);
          const driver = await (world.getInfo.get(name)?.(signal) ?? Promise.resolve(name));
          return { type: "CSIPlugin", name: driver, endpoint: "/d.sock", supportedVersions: ["1.0.0"] };
        },
        async notifyRegistrationStatus({ pluginRegistered, error }, { signal }) {
          signal.throwIfAborted();
          await world.beforeReport();
          note(`report ${pluginRegistered ? "registered" : error} to ${name} on connection ${connection}`);
        },
        close: () => note(`close connection ${connection}`),
      };
    },
  };
  const handler: RegistrationHandler = {
    validatePlugin: (candidate) => world.validate(candidate),
    async registerPlugin(candidate, signal) {
      note(`register ${candidate.name}`);
      await world.register(candidate, signal);
    },
    async deRegisterPlugin(name) {
      note(`deregister ${name}`);
      await world.deRegister(name);
    },
  };
  const env = { clock, random: new SeededRandom(1), logger, meter: noMeter, host };
  const start = () =>
    startPluginRegistration(
      { ...env, connector: connector as CsiConnector },
      { rootDir: "/kubelet", handlers: { CSIPlugin: handler }, mayRegister: () => world.mayRegister },
    );
  return Object.assign(world, { start });
}

const fails = (message: string) => async () => {
  throw new Error(message);
};
const hangs = (signal: AbortSignal) =>
  new Promise<never>((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });

const later = async <T>(clock: VirtualClock, ms: number, value: T): Promise<T> => {
  await clock.sleep(ms, new AbortController().signal);
  return value;
};

describe("plugin registration", () => {
  it("asks, registers and reports on one connection, and deregisters when the socket goes (node-agent.md 1.1, 1.3)", async () => {
    const world = await registrationWorld();
    const registration = world.start();
    world.host.placeSocket(path("a"));
    await world.clock.advance(60_000);
    expect(world.story).toEqual([
      "0 ask a",
      "0 register a",
      "0 report registered to a on connection 1",
      "0 close connection 1",
    ]);
    await world.removeSocket("a");
    await world.clock.advance(60_000);
    expect(world.story.slice(4)).toEqual(["60 deregister a"]);
    await registration.stop();
  });

  it("asks a registrar again that could not be informed of a failed registration (node-agent.md 1.3)", async () => {
    const world = await registrationWorld();
    world.register = fails("NodeGetInfo: the answer was lost");
    world.beforeReport = fails("the report was lost");
    const registration = world.start();
    world.host.placeSocket(path("a"));
    await world.clock.advance(100);
    expect(world.story).toEqual(["0 ask a", "0 register a", "0 close connection 1"]);
    world.register = async () => {};
    world.beforeReport = async () => {};
    await world.clock.advance(60_000);
    expect(world.story.slice(3)).toEqual([
      "0.5 ask a",
      "0.5 register a",
      "0.5 report registered to a on connection 2",
      "0.5 close connection 2",
    ]);
    await registration.stop();
  });

  it("deregisters at once what it has registered by a socket that went meanwhile (node-agent.md 1.3)", async () => {
    const world = await registrationWorld();
    world.getInfo.set("a", () => later(world.clock, 5_700, "d"));
    world.host.placeSocket(path("a"));
    const registration = world.start();
    await world.clock.advance(1_000);
    await world.removeSocket("a");
    await world.clock.advance(60_000);
    expect(world.story.filter((line) => line.includes("register"))).toEqual([
      "5.7 register d",
      "5.7 report registered to a on connection 1",
      "5.7 deregister d",
    ]);
    await registration.stop();
  });

  it("keeps a driver that moves to another socket while it is asked (node-agent.md 1.3)", async () => {
    const world = await registrationWorld();
    const drivers = new Set<string>();
    world.validate = ({ name }) => {
      if (drivers.has(name)) throw new Error("already registered");
    };
    world.register = async ({ name }) => {
      drivers.add(await later(world.clock, 2_000, name));
    };
    world.deRegister = async (name) => {
      drivers.delete(name);
    };
    for (const socket of ["a", "z"]) world.getInfo.set(socket, () => later(world.clock, 1_000, "d"));
    world.host.placeSocket(path("z"));
    const registration = world.start();
    await world.clock.advance(500);
    const removed = world.removeSocket("z");
    world.host.placeSocket(path("a"));
    await removed;
    await world.clock.advance(60_000);
    expect([...drivers]).toEqual(["d"]);
    await registration.stop();
  });

  it("asks one that does not answer again with growing delays, and reports nothing to it (node-agent.md 1.3)", async () => {
    const world = await registrationWorld();
    world.getInfo.set("a", fails("not yet"));
    world.host.placeSocket(path("a"));
    const registration = world.start();
    await world.clock.advance(4_000);
    expect(world.story.filter((line) => line.includes("ask"))).toEqual([
      "0 ask a",
      "0.5 ask a",
      "1.5 ask a",
      "3.5 ask a",
    ]);
    expect(world.story.filter((line) => line.includes("report"))).toEqual([]);
    world.getInfo.delete("a");
    await world.clock.advance(10_000);
    expect(world.story.slice(-4)).toEqual([
      "7.5 ask a",
      "7.5 register a",
      "7.5 report registered to a on connection 5",
      "7.5 close connection 5",
    ]);
    expect(world.story.filter((line) => line.includes("close"))).toHaveLength(5);
    await registration.stop();
  });

  it("keeps the delay of a socket that is made again, and starts from the first one for one that was registered (node-agent.md 1.3)", async () => {
    const world = await registrationWorld();
    world.getInfo.set("a", fails("not yet"));
    world.host.placeSocket(path("a"));
    const registration = world.start();
    await world.clock.advance(2_000);
    await world.recreateSocket("a");
    await world.clock.advance(1_000);
    expect(world.story.filter((line) => line.includes("ask"))).toEqual(["0 ask a", "0.5 ask a", "1.5 ask a"]);
    world.getInfo.delete("a");
    await world.clock.advance(1_000);
    world.getInfo.set("a", fails("not yet"));
    await world.recreateSocket("a");
    await world.clock.advance(1_000);
    expect(world.story.filter((line) => line.includes("ask")).slice(3)).toEqual([
      "3.5 ask a",
      "4 ask a",
      "4.5 ask a",
    ]);
    await registration.stop();
  });

  it("reports a refusal, and asks the refused registrar again after its delay (node-agent.md 1.3)", async () => {
    const world = await registrationWorld();
    world.validate = () => {
      throw new Error("refused");
    };
    world.host.placeSocket(path("a"));
    const registration = world.start();
    await world.clock.advance(600);
    expect(world.story).toEqual([
      "0 ask a",
      "0 report refused to a on connection 1",
      "0 close connection 1",
      "0.5 ask a",
      "0.5 report refused to a on connection 2",
      "0.5 close connection 2",
    ]);
    await registration.stop();
  });

  it("does not try a failed registration again before its socket is made again (node-agent.md 1.3)", async () => {
    const world = await registrationWorld();
    world.register = fails("no node ID");
    world.host.placeSocket(path("a"));
    const registration = world.start();
    await world.clock.advance(600_000);
    expect(world.story).toEqual([
      "0 ask a",
      "0 register a",
      "0 report no node ID to a on connection 1",
      "0 close connection 1",
    ]);
    world.register = async () => {};
    await world.recreateSocket("a");
    await world.clock.advance(1000);
    expect(world.story.slice(4)).toEqual([
      "600 deregister a",
      "600 ask a",
      "600 register a",
      "600 report registered to a on connection 2",
      "600 close connection 2",
    ]);
    await registration.stop();
  });

  it("begins at once where the socket is made again, also right after a failure (node-agent.md 1.3)", async () => {
    const world = await registrationWorld();
    world.register = fails("no node ID");
    world.host.placeSocket(path("a"));
    const registration = world.start();
    await world.clock.advance(100);
    world.register = async () => {};
    await world.recreateSocket("a");
    await world.clock.advance(200);
    expect(world.story.slice(4, 7)).toEqual(["0.1 deregister a", "0.1 ask a", "0.1 register a"]);
    await registration.stop();
  });

  it("of a socket that is made again meanwhile reports to the registrar that was asked, then begins again (node-agent.md 1.3)", async () => {
    const world = await registrationWorld();
    world.register = () => world.clock.sleep(30_000, new AbortController().signal);
    world.host.placeSocket(path("a"));
    const registration = world.start();
    await world.clock.advance(10_000);
    await world.recreateSocket("a");
    await world.clock.advance(60_000);
    expect(world.story).toEqual([
      "0 ask a",
      "0 register a",
      "30 report registered to a on connection 1",
      "30 close connection 1",
      "30 deregister a",
      "30 ask a",
      "30 register a",
      "60 report registered to a on connection 2",
      "60 close connection 2",
    ]);
    await registration.stop();
  });

  it("registers after a failed deregistration, half a second later; that one is not repeated (node-agent.md 1.3)", async () => {
    const world = await registrationWorld();
    world.host.placeSocket(path("a"));
    const registration = world.start();
    await world.clock.advance(1000);
    world.deRegister = async () => {
      await world.clock.sleep(100, new AbortController().signal);
      throw new Error("the API server is down");
    };
    await world.recreateSocket("a");
    await world.clock.advance(1000);
    expect(world.story.slice(4)).toEqual([
      "1 deregister a",
      "1.6 ask a",
      "1.6 register a",
      "1.6 report registered to a on connection 2",
      "1.6 close connection 2",
    ]);
    expect(world.warnings()).toEqual(["plugin_deregistration failed"]);
    await registration.stop();
  });

  it("lets a driver go from its old socket before it asks the new one (node-agent.md 1.3)", async () => {
    const world = await registrationWorld();
    world.getInfo.set("z", async () => "driver");
    world.getInfo.set("a", async () => "driver");
    world.host.placeSocket(path("z"));
    const registration = world.start();
    await world.clock.advance(1000);
    const moved = world.removeSocket("z");
    world.host.placeSocket(path("a"));
    await moved;
    await world.clock.advance(1000);
    expect(world.story.slice(4, 7)).toEqual(["1 deregister driver", "1 ask a", "1 register driver"]);
    await registration.stop();
  });

  describe("of two sockets of one driver", () => {
    const registrationsOf = (story: readonly string[]) =>
      story.filter((line) => / (de)?register /.test(line));

    async function twoSockets(registerSecond = async () => {}) {
      const world = await registrationWorld();
      world.getInfo.set("a", async () => "driver");
      world.getInfo.set("b", async () => "driver");
      world.host.placeSocket(path("a"));
      const registration = world.start();
      await world.clock.advance(1000);
      world.register = registerSecond;
      world.host.placeSocket(path("b"));
      await world.clock.advance(1000);
      world.register = async () => {};
      return { world, registration };
    }

    it("the one that another has replaced deregisters nothing (node-agent.md 1.3)", async () => {
      const { world, registration } = await twoSockets();
      await world.removeSocket("a");
      await world.clock.advance(60_000);
      expect(registrationsOf(world.story)).toEqual(["0 register driver", "1 register driver"]);
      await world.removeSocket("b");
      await world.clock.advance(60_000);
      expect(registrationsOf(world.story).slice(2)).toEqual(["62 deregister driver"]);
      await registration.stop();
    });

    it("the one that remains serves when the registered one goes (node-agent.md 1.3)", async () => {
      const { world, registration } = await twoSockets();
      await world.removeSocket("b");
      await world.clock.advance(60_000);
      expect(registrationsOf(world.story).slice(2)).toEqual(["2 deregister driver", "2 register driver"]);
      await world.removeSocket("a");
      await world.clock.advance(60_000);
      expect(registrationsOf(world.story).slice(4)).toEqual(["62 deregister driver"]);
      await registration.stop();
    });

    it("the one whose registration failed deregisters nothing, and takes over when the other goes (node-agent.md 1.3)", async () => {
      const { world, registration } = await twoSockets(fails("no node ID"));
      await world.recreateSocket("b");
      world.register = fails("no node ID");
      await world.clock.advance(1000);
      expect(registrationsOf(world.story).slice(1)).toEqual(["1 register driver", "2 register driver"]);
      world.register = async () => {};
      await world.removeSocket("a");
      await world.clock.advance(60_000);
      expect(registrationsOf(world.story).slice(3)).toEqual(["3 deregister driver", "3 register driver"]);
      await registration.stop();
    });
  });

  it("waits for no registrar but its own: forty that hang delay none (node-agent.md 1.3)", async () => {
    const world = await registrationWorld();
    for (let n = 0; n < 40; n++) {
      world.getInfo.set(`hangs-${n}`, hangs);
      world.host.placeSocket(path(`hangs-${n}`));
    }
    world.host.placeSocket(path("z"));
    const registration = world.start();
    await world.clock.advance(100);
    expect(world.story).toContain("0 report registered to z on connection 41");
    await registration.stop();
  });

  it("asks no registrar while nothing may be registered, and deregisters nevertheless (node-agent.md 1.3)", async () => {
    const world = await registrationWorld();
    world.host.placeSocket(path("a"));
    const registration = world.start();
    await world.clock.advance(1000);
    world.mayRegister = false;
    await world.removeSocket("a");
    world.host.placeSocket(path("b"));
    await world.clock.advance(60_000);
    expect(world.story.slice(4)).toEqual(["1 deregister a"]);
    world.mayRegister = true;
    registration.wake();
    await world.clock.settle();
    expect(world.story.slice(5, 7)).toEqual(["61 ask b", "61 register b"]);
    await registration.stop();
  });

  it.each(["ask", "register"] as const)(
    "ends a %s in flight when it is stopped, and is silent then (node-agent.md 1.3)",
    async (during) => {
      const world = await registrationWorld();
      if (during === "ask") world.getInfo.set("a", hangs);
      else world.register = (_candidate, signal) => hangs(signal);
      world.host.placeSocket(path("a"));
      const registration = world.start();
      await world.clock.advance(1000);
      await registration.stop();
      registration.wake();
      await world.clock.advance(600_000);
      const before = during === "ask" ? ["0 ask a"] : ["0 ask a", "0 register a"];
      expect(world.story).toEqual([...before, "1 close connection 1"]);
    },
  );
});
