/**
 * Flexvolume drivers of the in-process cluster: files on its simulated machines. What their programs do is the matter of
 * the cluster's owner.
 */
import { HostError, type ProgramOptions, type ProgramResult, type SimulatedHost } from "@longshore/runtime";
import { withPrograms } from "../components/host-programs.ts";

/** A driver's program is run. */
export interface DriverProgramRun<Seams> {
  /** Who runs it, e.g. a node's name. */
  readonly componentName: string;
  /** Those of the component before they are isolated: a program is a process of its own. */
  readonly seams: Seams;
  /** Path of the program, which is there and may be executed. */
  readonly path: string;
  readonly options: ProgramOptions;
}

/** Flexvolume drivers on every machine. */
export interface InProcessFlexVolumes<Seams> {
  /** Where they are looked for. None is there at first: who installs one writes its file. */
  readonly directory: string;
  /** Runs a program. It must end when the signal of its options is aborted, as one that is killed. */
  readonly run: (program: DriverProgramRun<Seams>) => Promise<ProgramResult>;
}

/** The host of a component, with programs that are files on it. */
export function hostWithDrivers(
  host: SimulatedHost,
  run: (path: string, options: ProgramOptions) => Promise<ProgramResult>,
): SimulatedHost {
  return withPrograms(host, async (path, options) => {
    options.signal.throwIfAborted();
    const file = await host.stat(path);
    if (file?.kind !== "file") throw new HostError("runProgram", path, "ENOENT");
    if ((file.mode & 0o111) === 0) throw new HostError("runProgram", path, "EACCES");
    return run(path, options);
  });
}
