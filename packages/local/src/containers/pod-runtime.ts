/**
 * The port through which the kubelet shell runs pods. Forms: child processes in mount namespaces of
 * their own (`process-pod-runtime.ts`) and programs in this process (`program-pod-runtime.ts`, for
 * the in-process cluster, tests and simulation). Pods outlive the node agent: a new agent finds them.
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
  /** It is a device, which the container sees in place of a file. */
  readonly isDevice?: true;
}

/** A pod, ready to run. */
export interface PodSandbox {
  readonly podUID: string;
  readonly namespace: string;
  readonly podName: string;
  readonly containerName: string;
  /** Program and arguments; `$(NAME)` in them is replaced from the environment. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly mounts: readonly SandboxMount[];
  /** The file that standard output and error are appended to; it outlives the pod. */
  readonly logFile: string;
}

/** How a pod's container is. */
export type PodState =
  | { readonly kind: "absent" }
  | { readonly kind: "running" }
  | { readonly kind: "ended"; readonly exitCode: number };

/**
 * Runs pods, one container each. Pods are known by UID. The pod worker calls it, for one pod one call at a time; a call
 * that failed or was aborted may have taken effect, and is repeated.
 */
export interface PodRuntime extends ContainerRuntime {
  /**
   * Starts the pod, or finds it running; resolves once its container runs or has ended. Idempotent; an ended pod is
   * started again.
   *
   * @throws Error when the container does not start in time
   */
  ensureRunning(sandbox: PodSandbox, signal: AbortSignal): Promise<void>;
  /** How its container is now; `absent` for a pod that was never started or has been terminated. */
  state(podUID: string, signal: AbortSignal): Promise<PodState>;
  /**
   * Ends the pod (SIGTERM, SIGKILL after `graceMs`, in milliseconds) and forgets it; resolves when nothing of it runs or
   * holds a mount. Fine for a pod it does not know.
   */
  terminate(podUID: string, graceMs: number, signal: AbortSignal): Promise<void>;
  /** UIDs of all pods it knows, running or ended. */
  list(signal: AbortSignal): Promise<readonly string[]>;
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
