/** Turns a container of a pod and its mounted volumes into what the runtime is given. Pure. */
import type { Container, Pod, Stored } from "@longshore/kube";
import type { MountedVolume } from "@longshore/volumes";
import type { ContainerConfig, NodeUser, SandboxMount } from "../containers/pod-runtime.ts";
import { podLogFile } from "../containers/read-pod-logs.ts";
import type { NextRun } from "./container-plan.ts";
import { containerUserOf } from "./container-user.ts";
import { PodSpecError } from "./pod-spec-error.ts";
import { subPathOf } from "./sub-paths.ts";

/** What a container is started with beside its spec. */
export interface ContainerSetting {
  readonly env: Readonly<Record<string, string>>;
  readonly mounted: ReadonlyMap<string, MountedVolume>;
  readonly logDir: string;
  /** The user of the node's containers. */
  readonly nodeUser: NodeUser;
}

/** A run of one of the pod's containers. @throws PodSpecError when the spec asks for an unusable path or user, or for no program */
export function containerConfigOf(
  pod: Stored<Pod>,
  { container, attempt, quickRestarts }: NextRun,
  { env, mounted, logDir, nodeUser }: ContainerSetting,
): ContainerConfig {
  const namespace = pod.metadata.namespace ?? "default";
  const field = `pod ${namespace}/${pod.metadata.name}, ${fieldOf(pod, container)}`;
  const argv = [...(container.command ?? []), ...(container.args ?? [])];
  if (argv.length === 0) {
    throw new PodSpecError(`${field}.command: local nodes run no images; name a program of this machine`);
  }
  const { workingDir, terminationMessagePath } = container;
  if (workingDir !== undefined && workingDir !== "") checkPath(workingDir, `${field}.workingDir`);
  if (terminationMessagePath !== undefined) {
    checkPath(terminationMessagePath, `${field}.terminationMessagePath`);
  }
  const user = containerUserOf(pod, { container, field: fieldOf(pod, container) }, nodeUser);
  const { readOnlyRootFilesystem, allowPrivilegeEscalation } = container.securityContext ?? {};
  const mountsOnNode = container.volumeMounts?.some((one) => one.mountPropagation === "Bidirectional");
  return {
    podUID: pod.metadata.uid,
    namespace,
    podName: pod.metadata.name,
    containerName: container.name,
    attempt,
    quickRestarts,
    argv,
    env,
    ...(user === undefined ? {} : { user }),
    ...(readOnlyRootFilesystem === true ? { readOnlyRoot: true } : {}),
    ...(mountsOnNode === true ? { mountsOnNode } : {}),
    ...(allowPrivilegeEscalation === false ? { noNewPrivileges: true } : {}),
    ...(workingDir === undefined || workingDir === "" ? {} : { workingDir }),
    ...(terminationMessagePath === undefined ? {} : { terminationMessagePath }),
    ...(container.terminationMessagePolicy === "FallbackToLogsOnError" ? { isMessageFromLog: true } : {}),
    ...(container.stdin === true ? { stdin: container.stdinOnce === true ? "once" : "kept" } : {}),
    mounts: [...mountsOf(field, container, env, mounted), ...devicesOf(field, container, mounted)],
    logFile: podLogFile(
      logDir,
      { namespace, name: pod.metadata.name, uid: pod.metadata.uid },
      container.name,
      attempt,
    ),
  };
}

/** The field of the pod's spec that holds the container. */
function fieldOf({ spec }: Pod, { name }: Container): string {
  const init = spec?.initContainers?.findIndex((one) => one.name === name) ?? -1;
  if (init >= 0) return `spec.initContainers[${init}]`;
  return `spec.containers[${spec?.containers.findIndex((one) => one.name === name)}]`;
}

function checkPath(path: string, field: string): void {
  if (!path.startsWith("/") || path.split("/").includes("..") || path.includes("\0")) {
    throw new PodSpecError(`${field}: "${path}" must be absolute, without ".."`);
  }
}

function mountsOf(
  field: string,
  container: Container,
  env: Readonly<Record<string, string>>,
  mounted: ReadonlyMap<string, MountedVolume>,
): SandboxMount[] {
  return (container.volumeMounts ?? []).map((mount, index) => {
    const at = `${field}.volumeMounts[${index}]`;
    checkPath(mount.mountPath, `${at}.mountPath`);
    const subPath = subPathOf(mount, env, at);
    const volume = mounted.get(mount.name);
    if (volume === undefined) throw new PodSpecError(`${at}.name: volume "${mount.name}" is not mounted`);
    return {
      volumeName: mount.name,
      hostPath: volume.path,
      mountPath: mount.mountPath,
      readOnly: volume.readOnly || mount.readOnly === true,
      ...(subPath !== undefined && { subPath }),
    };
  });
}

/** The volumes that the container gets as devices. */
function devicesOf(
  field: string,
  container: Container,
  mounted: ReadonlyMap<string, MountedVolume>,
): SandboxMount[] {
  return (container.volumeDevices ?? []).map(({ name, devicePath }, index) => {
    const at = `${field}.volumeDevices[${index}]`;
    checkPath(devicePath, `${at}.devicePath`);
    const volume = mounted.get(name);
    if (volume === undefined) throw new PodSpecError(`${at}.name: volume "${name}" is not mapped`);
    const { path: hostPath, readOnly } = volume;
    return { volumeName: name, hostPath, mountPath: devicePath, readOnly, isDevice: true };
  });
}
