/**
 * The port through which the kubelet shell runs the containers of pods. Forms: child processes in mount namespaces of
 * their own (`process-pod-runtime.ts`) and programs in this process (`program-pod-runtime.ts`, for
 * the in-process cluster, tests and simulation). Containers outlive the node agent: a new agent finds them.
 */
import type { ContainerRuntime } from "@longshore/volumes";

/** A directory or a device of the node that a container sees at a path of its own. */
export interface SandboxMount {
  readonly volumeName: string;
  /** Where the volume is mounted on the node. */
  readonly hostPath: string;
  /** Where the container sees it. */
  readonly mountPath: string;
  readonly readOnly: boolean;
  /** The part of the volume that the container sees; it is bound to `hostPath` before the container starts. */
  readonly subPath?: string;
  /** It is a device, which the container sees in place of a file. */
  readonly isDevice?: true;
}

/** The user of a node's containers, unless they ask for another one. */
export interface NodeUser {
  readonly uid: number;
  readonly gid: number;
  /** They may ask for another user or group. */
  readonly mayChange: boolean;
}

/** The user that a container runs as. */
export interface ContainerUser {
  readonly uid: number;
  /** Absent: the user's own group in the machine's list of users, or 0 where it is not in the list. */
  readonly gid?: number;
  /** Further groups. */
  readonly groups: readonly number[];
}

/** One run of a container, ready to start. */
export interface ContainerConfig {
  readonly podUID: string;
  readonly namespace: string;
  readonly podName: string;
  readonly containerName: string;
  /** Number of the run: 0 for the first, one more for each restart. */
  readonly attempt: number;
  /** Restarts in a row, up to this run, without a run that has lasted; the pause before the next restart grows with it. */
  readonly quickRestarts: number;
  /** Program and arguments; `$(NAME)` in them is replaced from the environment. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Left out: the user of the node. */
  readonly user?: ContainerUser;
  /** Nothing in its root can be changed, but for its volumes and its `/dev`; only where it has a root of its own. */
  readonly readOnlyRoot?: true;
  /** What it mounts is to be seen on the node (`mountPropagation: Bidirectional`): it has the machine's root and mounts. */
  readonly mountsOnNode?: true;
  /** It never gets more rights than it begins with. */
  readonly noNewPrivileges?: true;
  /** Directory that the program starts in; default `/`. Made where it is missing. */
  readonly workingDir?: string;
  readonly mounts: readonly SandboxMount[];
  /** The file that lines of standard output and error are appended to, with their times (`log-line.ts`); it outlives the pod. */
  readonly logFile: string;
  /** It has a standard input, to which clients attach: always open, or ended with the first of them. */
  readonly stdin?: "kept" | "once";
  /** The file of the container's root whose text becomes the message of its end. */
  readonly terminationMessagePath?: string;
  /** Where it has left no message and has failed, the end of its log is the message. */
  readonly isMessageFromLog?: true;
}

/** What is known of any run of a container. */
interface ContainerRun {
  readonly attempt: number;
  readonly quickRestarts: number;
  /** ISO 8601. */
  readonly startedAt: string;
}

/** A container that runs. */
export interface RunningContainer extends ContainerRun {
  readonly kind: "running";
  /** The run before this one. */
  readonly previous?: EndedContainer;
}

/** A container whose last run has ended; the runtime keeps it until the next run or the end of the pod. */
export interface EndedContainer extends ContainerRun {
  readonly kind: "ended";
  readonly exitCode: number;
  /** ISO 8601. */
  readonly finishedAt: string;
  /** What the container has left at its `terminationMessagePath`. */
  readonly message?: string;
  /** The run before this one. */
  readonly previous?: EndedContainer;
}

/** How a container is. One that the runtime does not know has never run, or has been lost. */
export type ContainerState = RunningContainer | EndedContainer;

/** The containers of a pod that the runtime knows, by name. */
export type ContainerStates = ReadonlyMap<string, ContainerState>;

/** A program to run beside a container. */
export interface ExecRequest {
  readonly podUID: string;
  readonly containerName: string;
  readonly argv: readonly string[];
  /** It gets a terminal of its own. */
  readonly tty?: boolean;
  /** Ends the program. */
  readonly signal: AbortSignal;
}

/** The size of a terminal, in characters. */
export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** A container to whose standard input a client attaches. */
export interface AttachRequest {
  readonly podUID: string;
  readonly containerName: string;
  /** Lets go of the input. */
  readonly signal: AbortSignal;
}

/** The standard input of a program. */
export interface ContainerInput {
  /** Resolves once there is room for more, or no reader is left. */
  write(bytes: Uint8Array): Promise<void>;
  /** Nothing more comes from this client. */
  endInput(): void;
}

/** A program that runs beside a container. */
export interface ExecProcess extends ContainerInput {
  /** Changes the size of its terminal; absent where it has none. */
  resize?(size: TerminalSize): void;
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly stderr: AsyncIterable<Uint8Array>;
  /** Its exit code; 128 and the number of the signal where one has ended it. Never rejects. */
  readonly exitCode: Promise<number>;
}

/**
 * Runs the containers of pods. Pods are known by UID, containers by name. The pod worker calls it, for one pod one call at
 * a time; a call that failed or was aborted may have taken effect, and is repeated.
 */
export interface PodRuntime extends ContainerRuntime {
  /** The user of its containers. */
  readonly user: NodeUser;
  /**
   * Starts that run of the container; resolves once it runs or has ended. A run that was started before, or a later one, is
   * left as it is.
   *
   * @throws Error when the container does not start in time
   */
  startContainer(config: ContainerConfig, signal: AbortSignal): Promise<void>;
  /** How the pod's containers are now; empty for a pod that was never started or has been terminated. */
  state(podUID: string, signal: AbortSignal): Promise<ContainerStates>;
  /** Ends one container (SIGTERM, SIGKILL after `graceMs`, in milliseconds) and keeps how it has ended. */
  stopContainer(podUID: string, containerName: string, graceMs: number, signal: AbortSignal): Promise<void>;
  /**
   * Ends the pod (SIGTERM to each container, SIGKILL after `graceMs`, in milliseconds) and forgets it; resolves when nothing
   * of it runs or holds a mount. Fine for a pod it does not know.
   */
  terminate(podUID: string, graceMs: number, signal: AbortSignal): Promise<void>;
  /** Starts a program beside a running container, with its files and environment. @throws Error when it does not run */
  exec(request: ExecRequest): Promise<ExecProcess>;
  /** The container's standard input; undefined where it has none, or has had all of it. */
  attachInput(request: AttachRequest): Promise<ContainerInput | undefined>;
  /**
   * Calls `listener` with the pod's UID each time one of its containers has ended. Returns a function that unsubscribes.
   * Absent where the runtime does not learn of it by itself: then `state` has to be asked.
   */
  onEnd?(listener: (podUID: string) => void): () => void;
  /** UIDs of all pods it knows, running or ended. */
  list(signal: AbortSignal): Promise<readonly string[]>;
}

/** The error of a program that is to run beside a container which does not run. */
export function notRunning({ podUID, containerName }: ExecRequest): Error {
  return new Error(`container "${containerName}" of pod ${podUID} does not run: wait until it does`);
}

/** One run before is kept, not all of them. */
export function withoutPast({ previous: _, ...ended }: EndedContainer): EndedContainer {
  return ended;
}

/** The environment variable that holds the path of a volume for a container. */
export function mountVariable(volumeName: string): string {
  return `LONGSHORE_MOUNT_${volumeName.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}`;
}

/** Replaces `$(NAME)` by the variable's value; `$$(` stands for `$(`; unknown names stay as they are. */
export function expandVariables(text: string, env: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)/g, (whole, name?: string) => {
    if (name === undefined) return "$";
    return env[name] ?? whole;
  });
}
