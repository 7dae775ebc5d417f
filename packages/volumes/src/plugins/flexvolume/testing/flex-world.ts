/** A simulated host with Flexvolume drivers on it, under the virtual clock. */
import {
  type Host,
  noMeter,
  type ProgramOptions,
  type ProgramResult,
  recordingLogger,
  SeededRandom,
  SimulatedHost,
  VirtualClock,
} from "@longshore/runtime";
import type { VolumeHost } from "../../../framework/volume-host.ts";

/** What a driver of a test answers: a status object, or text that it prints as it is. */
export type DriverAnswer = object | string | Partial<ProgramResult>;

/** A driver of a test. */
export type TestFlexDriver = (
  command: string,
  args: readonly string[],
  signal: AbortSignal,
) => DriverAnswer | Promise<DriverAnswer>;

/** A driver that supports what it is asked. */
export const succeeds: TestFlexDriver = () => ({ status: "Success" });

/** A driver with these capabilities that supports nothing but `init`. */
export const onlyInit =
  (capabilities: object = {}): TestFlexDriver =>
  (command) =>
    command === "init" ? { status: "Success", capabilities } : { status: "Not supported" };

/** A driver that does not end before it is killed. */
export const hangs: TestFlexDriver = (_command, _args, signal) =>
  new Promise<never>((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });

/** The driver directory of the world. */
export const driverDirectory = "/flex";

/** Programs of a simulated host, by path. */
type Programs = Record<string, (o: Pick<ProgramOptions, "args" | "signal">) => Promise<ProgramResult>>;

/** Where drivers are installed, and where their calls are noted: the driver's directory, the command and its arguments. */
export interface DriverPlace {
  readonly host: Host;
  readonly programs: Programs;
  readonly calls: string[];
}

let versions = 0;

/** Installs a driver as the installer does: a dot name, then renamed. @returns the path of its program */
export async function installDriver(
  { host, programs, calls }: DriverPlace,
  directory: string,
  driver: TestFlexDriver,
): Promise<string> {
  const path = driverPath(directory);
  programs[path] = async ({ args: [command = "", ...args], signal }) => {
    calls.push([directory, command, ...args].join(" "));
    const answer = await driver(command, args, signal);
    const isResult = typeof answer === "object" && ("code" in answer || "stderr" in answer);
    const stdout = typeof answer === "string" ? answer : JSON.stringify(answer);
    return { code: 0, stderr: "", ...(isResult ? { stdout: "", ...answer } : { stdout }) };
  };
  const hidden = `${driverDirectory}/${directory}/.${directory}`;
  await host.makeDirectory(`${driverDirectory}/${directory}`, 0o755);
  await host.writeFileAtomic(hidden, `${++versions}`, { mode: 0o755 });
  await host.rename(hidden, path);
  return path;
}

const driverPath = (directory: string) => `${driverDirectory}/${directory}/${directory.split("~").at(-1)}`;

/** Makes the world. */
export function flexWorld() {
  const clock = new VirtualClock();
  const programs: Programs = {};
  const host = new SimulatedHost({ programs });
  const logger = recordingLogger();
  /** Each call: the driver's directory, the command and its arguments. */
  const calls: string[] = [];
  const env = { clock, random: new SeededRandom(1), logger, meter: noMeter, host };
  const secrets = new Map<string, object>();
  const kube = {
    get: async (_resource: unknown, { namespace, name }: { namespace: string; name: string }) =>
      secrets.get(`${namespace}/${name}`),
  };
  const volumeHost = {
    ...env,
    kube,
    kubelet: { nodeName: "node-1", rootDir: "/kubelet", host, setKubeletError: () => {} },
  } as unknown as VolumeHost;
  return {
    clock,
    host,
    logger,
    calls,
    env,
    secrets,
    volumeHost,
    programs,
    /** What was logged as an error. */
    errors: () =>
      logger.lines.filter(({ level }) => level === "error").map(({ fields }) => String(fields?.error)),
    path: driverPath,
    install: (directory: string, driver: TestFlexDriver) =>
      installDriver({ host, programs, calls }, directory, driver),
  };
}
