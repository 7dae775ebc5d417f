/** Turns a pod and its mounted volumes into what the pod runtime is given. Pure. */
import type { Container, Pod, Stored } from "@longshore/kube";
import type { MountedVolume } from "@longshore/volumes";
import type { PodSandbox, SandboxMount } from "../containers/pod-runtime.ts";
import { podLogFile } from "../containers/read-pod-logs.ts";

/** The pod asks for something that this node cannot provide; the message names the field. */
export class PodSpecError extends Error {
  override readonly name = "PodSpecError";
}

/**
 * The sandbox of a pod's container.
 * @throws PodSpecError when the spec asks for more than one container, or for an unusable path
 */
export function sandboxOf(
  pod: Stored<Pod>,
  mounted: ReadonlyMap<string, MountedVolume>,
  logDir: string,
): PodSandbox {
  const containers = pod.spec?.containers ?? [];
  const container = containers[0];
  const namespace = pod.metadata.namespace ?? "default";
  if (container === undefined || containers.length > 1 || (pod.spec?.initContainers ?? []).length > 0) {
    throw new PodSpecError(
      `pod ${namespace}/${pod.metadata.name}, spec.containers: local nodes run pods of exactly one container`,
    );
  }
  const argv = [...(container.command ?? []), ...(container.args ?? [])];
  if (argv.length === 0) {
    throw new PodSpecError(
      `pod ${namespace}/${pod.metadata.name}, spec.containers[0].command: local nodes run no images; name a program of this machine`,
    );
  }
  return {
    podUID: pod.metadata.uid,
    namespace,
    podName: pod.metadata.name,
    containerName: container.name,
    argv,
    env: environmentOf(pod, container),
    mounts: [...mountsOf(pod, container, mounted), ...devicesOf(pod, container, mounted)],
    logFile: podLogFile(
      logDir,
      { namespace, name: pod.metadata.name, uid: pod.metadata.uid },
      container.name,
    ),
  };
}

function mountsOf(
  pod: Stored<Pod>,
  container: Container,
  mounted: ReadonlyMap<string, MountedVolume>,
): SandboxMount[] {
  return (container.volumeMounts ?? []).map((mount, index) => {
    const field = `pod ${pod.metadata.name}, spec.containers[0].volumeMounts[${index}]`;
    const parts = mount.mountPath.split("/");
    if (!mount.mountPath.startsWith("/") || parts.includes("..") || mount.mountPath.includes("\0")) {
      throw new PodSpecError(`${field}.mountPath: "${mount.mountPath}" must be absolute, without ".."`);
    }
    if (mount.subPath !== undefined || mount.subPathExpr !== undefined) {
      throw new PodSpecError(
        `${field}.subPath: local nodes do not support sub-paths; mount the volume whole`,
      );
    }
    const volume = mounted.get(mount.name);
    if (volume === undefined) throw new PodSpecError(`${field}.name: volume "${mount.name}" is not mounted`);
    return {
      volumeName: mount.name,
      hostPath: volume.path,
      mountPath: mount.mountPath,
      readOnly: volume.readOnly || mount.readOnly === true,
    };
  });
}

/** The volumes that the container gets as devices. */
function devicesOf(
  pod: Stored<Pod>,
  container: Container,
  mounted: ReadonlyMap<string, MountedVolume>,
): SandboxMount[] {
  return (container.volumeDevices ?? []).map(({ name, devicePath }, index) => {
    const field = `pod ${pod.metadata.name}, spec.containers[0].volumeDevices[${index}]`;
    if (!devicePath.startsWith("/") || devicePath.split("/").includes("..") || devicePath.includes("\0")) {
      throw new PodSpecError(`${field}.devicePath: "${devicePath}" must be absolute, without ".."`);
    }
    const volume = mounted.get(name);
    if (volume === undefined) throw new PodSpecError(`${field}.name: volume "${name}" is not mapped`);
    const { path: hostPath, readOnly } = volume;
    return { volumeName: name, hostPath, mountPath: devicePath, readOnly, isDevice: true };
  });
}

function environmentOf(pod: Stored<Pod>, container: Container): Record<string, string> {
  const fields: Readonly<Record<string, string | undefined>> = {
    "metadata.name": pod.metadata.name,
    "metadata.namespace": pod.metadata.namespace,
    "metadata.uid": pod.metadata.uid,
    "spec.nodeName": pod.spec?.nodeName,
  };
  const env: Record<string, string> = {};
  for (const variable of container.env ?? []) {
    const field = variable.valueFrom?.fieldRef?.fieldPath;
    const value = variable.value ?? (field === undefined ? undefined : fields[field]);
    if (value !== undefined) env[variable.name] = value;
  }
  return env;
}
