/**
 * Calls of one Flexvolume driver: a program that is run with a command and prints a status object.
 *
 * Invariants
 *  - A call that does not end is killed.
 *  - A command that the driver does not support is run once, until the driver is replaced.
 *  - No secret that was passed is in an error, nor is anything else of what the driver was given.
 * Source: docs/behaviour/flexvolume.md 4 and 4.3.
 */
import {
  type Clock,
  DeadlineError,
  foreignText,
  type Host,
  type ProgramResult,
  withDeadline,
} from "@longshore/runtime";
import { DriverOutputError, type DriverStatus, parseDriverStatus } from "./driver-status.ts";

/** The commands of the protocol, with the longest time of each in milliseconds. */
export const driverCommands = {
  init: 10_000,
  getvolumename: 10_000,
  attach: 120_000,
  detach: 120_000,
  waitforattach: 600_000,
  isattached: 20_000,
  mountdevice: 600_000,
  unmountdevice: 120_000,
  mount: 600_000,
  unmount: 120_000,
  expandvolume: 110_000,
  expandfs: 600_000,
  /** Not of the protocol: a check asks whether a driver refuses it. */
  "longshore-unknown": 10_000,
} as const;

/** One of {@link driverCommands}. */
export type DriverCommand = keyof typeof driverCommands;

/** A call of a driver has failed; the message names driver, command and remedy. */
export class DriverCallError extends Error {
  override readonly name = "DriverCallError";
  /** The driver was stopped before it had ended: what it was asked for may be done, or half done. */
  readonly isUncertain: boolean;
  constructor(message: string, isUncertain = false) {
    super(message);
    this.isUncertain = isUncertain;
  }
}

/** What a driver is run with. */
export interface FlexVolumeDriverOptions {
  readonly pluginName: string;
  /** Path of the program. */
  readonly executable: string;
}

/** The seams of a driver. */
export interface FlexVolumeDriverEnv {
  readonly clock: Clock;
  readonly host: Pick<Host, "runProgram">;
}

/** An installed driver. It stays the same object when its program is replaced, for the sake of the volumes in use. */
export class FlexVolumeDriver {
  readonly pluginName: string;
  readonly executable: string;
  readonly #env: FlexVolumeDriverEnv;
  #unsupported = new Set<DriverCommand>();

  constructor(env: FlexVolumeDriverEnv, { pluginName, executable }: FlexVolumeDriverOptions) {
    this.#env = env;
    this.pluginName = pluginName;
    this.executable = executable;
  }

  /** The program may have been replaced: what it did not support is asked of it again. */
  forgetUnsupported(): void {
    // A new set: an answer of the old program that is still to come is noted in the old one.
    this.#unsupported = new Set();
  }

  /**
   * Runs the driver. @returns its status, or undefined when it does not support the command
   * @param secrets values among the arguments that no error may show
   * @throws DriverCallError, or the reason of `signal`
   */
  async call(
    command: DriverCommand,
    args: readonly string[],
    signal: AbortSignal,
    secrets: readonly string[] = [],
  ): Promise<DriverStatus | undefined> {
    const unsupported = this.#unsupported;
    if (unsupported.has(command)) return undefined;
    const result = await this.#run(command, args, signal);
    const status = this.#statusOf(command, result, secrets);
    if (status === undefined) unsupported.add(command);
    return status;
  }

  async #run(command: DriverCommand, args: readonly string[], signal: AbortSignal): Promise<ProgramResult> {
    const limitMs = driverCommands[command];
    const { clock, host } = this.#env;
    try {
      return await withDeadline(clock, limitMs, signal, (within) =>
        host.runProgram(this.executable, { args: [command, ...args], signal: within }),
      );
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof DeadlineError) {
        const seconds = `${limitMs / 1000} s`;
        throw this.#error(
          command,
          `did not end within ${seconds} and was killed: see what it waits for`,
          true,
        );
      }
      // The error of the host is not passed on: it may hold the arguments.
      const code = error instanceof Object && "code" in error ? String(error.code) : "unknown error";
      throw this.#error(command, `${this.executable} cannot be run (${code}): install the driver again`);
    }
  }

  #statusOf(
    command: DriverCommand,
    result: ProgramResult,
    secrets: readonly string[],
  ): DriverStatus | undefined {
    const status = this.#parsed(command, result);
    if (status.status === "Not supported") return undefined;
    if (status.status !== "Success") {
      const reason = withoutSecrets(status.message, secrets);
      const text = `status: ${foreignText(status.status, 64)}, reason: ${reason}`;
      throw this.#error(command, `command failed, ${text}`);
    }
    if (result.code === 0) return status;
    throw this.#error(
      command,
      `reported Success but ended with ${endOf(result)}: correct the driver`,
      result.code < 0,
    );
  }

  #parsed(command: DriverCommand, { code, stdout, stderr }: ProgramResult): DriverStatus {
    try {
      return parseDriverStatus(stdout.trim() === "" ? stderr : stdout);
    } catch (error) {
      if (!(error instanceof DriverOutputError)) throw error;
      const end = `(it ended with ${endOf({ code })})`;
      const remedy =
        'it must print one JSON object such as {"status": "Success"}: correct or update the driver';
      throw this.#error(command, `${error.message} ${end}; ${remedy}`, code < 0);
    }
  }

  #error(command: DriverCommand, what: string, isUncertain = false): DriverCallError {
    return new DriverCallError(`Flexvolume driver ${this.pluginName}: ${command} ${what}`, isUncertain);
  }
}

function endOf({ code }: Pick<ProgramResult, "code">): string {
  return code < 0 ? "a signal" : `exit code ${code}`;
}

/** The text of a driver without what it may repeat of its arguments. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  const values = secrets.filter((secret) => secret !== "").sort((a, b) => b.length - a.length);
  if (values.length === 0) return foreignText(text);
  const literal = values.map((value) => value.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return foreignText(text.replace(new RegExp(literal.join("|"), "g"), "***"));
}
