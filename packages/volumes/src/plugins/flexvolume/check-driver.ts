/**
 * Does a driver keep the Flexvolume protocol? Its calls are made in the order in which controller and node make them, each twice
 * where a crash makes them be repeated, and taken back whatever fails. Source: docs/behaviour/flexvolume.md 4.
 */
import { errorChain, type Host } from "@longshore/runtime";
import {
  type DriverCommand,
  FlexVolumeDriver,
  type FlexVolumeDriverEnv,
  type FlexVolumeDriverOptions,
} from "./driver-calls.ts";
import type { DriverCapabilities, DriverStatus } from "./driver-status.ts";
import { initDriver } from "./init-driver.ts";

/** How one check has ended. */
export interface FlexVolumeCheck {
  /** What was checked, as a sentence that says what must hold. */
  readonly check: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** Why it failed or was skipped; what was found, where it passed. */
  readonly message: string;
}

/** What is checked, and with what. */
export interface FlexVolumeCheckOptions extends FlexVolumeDriverOptions {
  /** What is known against the program without running it. */
  readonly problem: string | undefined;
  /** An empty directory for mounts. */
  readonly scratchDir: string;
  readonly nodeName: string;
  /** The user's options of the volume. */
  readonly options: Readonly<Record<string, string>>;
  /** Sizes to grow the volume from and to. Undefined: it is left as it is, since growth cannot be taken back. */
  readonly expansion?: FlexVolumeExpansion | undefined;
  /** Called with each result as it comes. */
  readonly onCheck?: (result: FlexVolumeCheck) => void;
}

/** Growth of a volume, in bytes. */
export interface FlexVolumeExpansion {
  readonly oldSizeBytes: bigint;
  readonly newSizeBytes: bigint;
}

/** Name of the volume that the driver is asked for. */
const volumeName = "longshore-check";

/** Runs the checks. Expected failures are results; it throws the reason of `signal`, after the calls were taken back. */
export async function checkFlexVolumeDriver(
  env: FlexVolumeDriverEnv & { readonly host: Host },
  options: FlexVolumeCheckOptions,
  signal: AbortSignal,
): Promise<readonly FlexVolumeCheck[]> {
  const run = new CheckRun(env, options, signal);
  await run.everything();
  signal.throwIfAborted();
  return run.results;
}

class CheckRun {
  readonly results: FlexVolumeCheck[] = [];
  readonly #host: Host;
  readonly #options: FlexVolumeCheckOptions;
  readonly #signal: AbortSignal;
  readonly #driver: FlexVolumeDriver;
  readonly #json: string;
  /** Calls that printed something on standard error. */
  readonly #noisy = new Set<string>();

  constructor(
    env: FlexVolumeDriverEnv & { readonly host: Host },
    options: FlexVolumeCheckOptions,
    signal: AbortSignal,
  ) {
    this.#host = env.host;
    this.#options = options;
    this.#signal = signal;
    const runProgram: Host["runProgram"] = async (program, request) => {
      const result = await env.host.runProgram(program, request);
      if (result.stderr !== "") this.#noisy.add(request.args[0] ?? "");
      return result;
    };
    this.#driver = new FlexVolumeDriver({ clock: env.clock, host: { runProgram } }, options);
    this.#json = JSON.stringify({
      "kubernetes.io/fsType": "",
      "kubernetes.io/readwrite": "rw",
      "kubernetes.io/pvOrVolumeName": volumeName,
      ...options.options,
    });
  }

  async everything(): Promise<void> {
    const capabilities = await this.#init();
    if (capabilities === undefined) return;
    await this.#refusesUnknown();
    await this.#call("getvolumename names the volume, or is not supported", "getvolumename", [this.#json]);
    if (capabilities.attach) await this.#attached(capabilities);
    else await this.#mounted(capabilities, "");
    if (this.#options.expansion === undefined) {
      this.#add({
        check: "expandvolume and expandfs grow the volume",
        outcome: "skipped",
        message: notGrown,
      });
    }
    const noisy = [...this.#noisy].join(", ");
    this.#note(
      "nothing is printed on standard error, which Kubernetes reads as part of the answer",
      noisy === "" ? undefined : `printed by ${noisy}: write it to a log file`,
    );
  }

  /** @returns what it can do; undefined: it cannot be used at all */
  async #init(): Promise<DriverCapabilities | undefined> {
    const check = "init succeeds and says what the driver can do";
    try {
      const capabilities = await initDriver(this.#driver, this.#options, this.#signal);
      this.#add({ check, outcome: "passed", message: JSON.stringify(capabilities) });
      return capabilities;
    } catch (error) {
      this.#note(check, errorChain(error));
      return undefined;
    }
  }

  async #refusesUnknown(): Promise<void> {
    const check = "a command that the protocol does not have is not supported";
    try {
      const status = await this.#driver.call("longshore-unknown", [], this.#signal);
      this.#note(check, status === undefined ? undefined : 'answered Success: answer "Not supported"');
    } catch (error) {
      this.#note(check, `${errorChain(error)}: answer {"status": "Not supported"}`);
    }
  }

  async #attached(capabilities: DriverCapabilities): Promise<void> {
    const { nodeName } = this.#options;
    const args = [this.#json, nodeName];
    const attach = await this.#twice("attach", args);
    if (attach === "failed") return this.#detached();
    await this.#isAttached(true, args);
    const device = attach?.device ?? "";
    const ready = await this.#call("waitforattach names the device", "waitforattach", [device, this.#json]);
    if (ready !== "failed") await this.#deviceMounted(capabilities, ready?.device || device);
    await this.#detached();
    await this.#isAttached(false, args);
  }

  async #detached(): Promise<void> {
    await this.#twice("detach", [volumeName, this.#options.nodeName], "takes the volume from the node");
  }

  async #isAttached(is: boolean, args: readonly string[]): Promise<void> {
    const check = `isattached says ${is} after ${is ? "attach" : "detach"}`;
    await this.#call(check, "isattached", args, ({ attached }) =>
      attached === is ? undefined : `says ${attached === undefined ? "nothing" : attached}`,
    );
  }

  async #deviceMounted(capabilities: DriverCapabilities, device: string): Promise<void> {
    const path = `${this.#options.scratchDir}/device`;
    await this.#host.makeDirectory(path);
    const mounted = await this.#mountedAt(path, "mountdevice", [path, device, this.#json]);
    if (mounted !== "failed") {
      const mountPath = mounted === undefined ? undefined : path;
      await this.#mounted(capabilities, device, mountPath);
    }
    if (mounted !== undefined) await this.#call("unmountdevice unmounts", "unmountdevice", [path]);
    await this.#nothingLeft(path);
  }

  /** @param deviceMountPath where the driver has mounted the device, if it has */
  async #mounted(capabilities: DriverCapabilities, device: string, deviceMountPath?: string): Promise<void> {
    const path = `${this.#options.scratchDir}/pod`;
    await this.#host.makeDirectory(path);
    const mounted = await this.#mountedAt(path, "mount", [path, this.#json]);
    if (mounted !== "failed") {
      const isMounted = deviceMountPath !== undefined || mounted !== undefined;
      await this.#expanded(capabilities, device, isMounted ? (deviceMountPath ?? path) : undefined);
    }
    if (mounted !== undefined) await this.#call("unmount unmounts", "unmount", [path]);
    await this.#nothingLeft(path);
  }

  /**
   * The calls of the expand controller and of the kubelet, each with its repetition.
   *
   * @param mountPath where the driver has mounted the volume, if it has: elsewhere the kubelet grows the file system
   */
  async #expanded(
    { requiresFSResize }: DriverCapabilities,
    device: string,
    mountPath: string | undefined,
  ): Promise<void> {
    const { expansion } = this.#options;
    if (expansion === undefined) return;
    const { newSizeBytes, oldSizeBytes } = expansion;
    const sizes = [`${newSizeBytes}`, `${oldSizeBytes}`];
    // A controller mounts nothing, so it has no path to name.
    const expand = ["expandvolume", [this.#json, "", ...sizes]] as const;
    const smallerThanAsked = ({ volumeNewSize }: DriverStatus) =>
      volumeNewSize !== undefined && volumeNewSize < newSizeBytes
        ? `says ${volumeNewSize} bytes, fewer than the ${newSizeBytes} asked for`
        : undefined;
    const grown = await this.#call("expandvolume grows the volume", ...expand, smallerThanAsked);
    if (grown === "failed") return;
    if (grown !== undefined)
      await this.#call("expandvolume succeeds when it is repeated", ...expand, smallerThanAsked);
    if (!requiresFSResize) return;
    const check = "expandfs grows the file system";
    if (mountPath === undefined) {
      this.#add({ check, outcome: "skipped", message: "the driver mounts nothing: the kubelet does it" });
      return;
    }
    const args = [this.#json, device, mountPath, ...sizes];
    const resized = await this.#call(check, "expandfs", args);
    if (resized !== undefined && resized !== "failed")
      await this.#call("expandfs succeeds when it is repeated", "expandfs", args);
  }

  /** Repeated only where nothing is mounted then: the node does not ask for what is mounted. */
  async #mountedAt(
    path: string,
    command: "mount" | "mountdevice",
    args: readonly string[],
  ): Promise<DriverStatus | "failed" | undefined> {
    const mounted = await this.#call(`${command} succeeds`, command, args);
    if (mounted === undefined || mounted === "failed") return mounted;
    if (!(await this.#host.isMountPoint(path)))
      await this.#call(`${command} succeeds when it is repeated`, command, args);
    return mounted;
  }

  /** The directory is what the kubelet removes in the end. */
  async #nothingLeft(path: string): Promise<void> {
    const check = `nothing is left in ${path.slice(this.#options.scratchDir.length + 1)}`;
    try {
      await this.#host.removeDirectory(path);
      this.#note(check, undefined);
    } catch (error) {
      this.#note(check, `${errorChain(error)}: unmount and empty it`);
    }
  }

  /** A call and its repetition, as after a crash. */
  async #twice(
    command: DriverCommand,
    args: readonly string[],
    what = "succeeds",
  ): Promise<DriverStatus | "failed" | undefined> {
    const first = await this.#call(`${command} ${what}`, command, args);
    if (first === undefined || first === "failed") return first;
    const again = await this.#call(`${command} succeeds when it is repeated`, command, args, ({ device }) =>
      device === first.device ? undefined : `names another device then: ${device}`,
    );
    return again === "failed" ? first : again;
  }

  /** One call. @returns undefined: it is not supported */
  async #call(
    check: string,
    command: DriverCommand,
    args: readonly string[],
    problemOf: (status: DriverStatus) => string | undefined = () => undefined,
  ): Promise<DriverStatus | "failed" | undefined> {
    try {
      // What has been made is taken back also when the caller ends.
      const status = await this.#driver.call(command, args, takesBack(command) ? never : this.#signal);
      if (status === undefined)
        this.#add({ check, outcome: "skipped", message: `${command} is not supported` });
      else this.#note(check, problemOf(status));
      return status;
    } catch (error) {
      this.#note(check, errorChain(error));
      return "failed";
    }
  }

  #note(check: string, problem: string | undefined): void {
    this.#add({ check, outcome: problem === undefined ? "passed" : "failed", message: problem ?? "" });
  }

  #add(result: FlexVolumeCheck): void {
    this.results.push(result);
    this.#options.onCheck?.(result);
  }
}

const never = new AbortController().signal;
const notGrown = "growth cannot be taken back: name the old and the new size to have the volume grown";

function takesBack(command: DriverCommand): boolean {
  return command === "unmount" || command === "unmountdevice" || command === "detach";
}
