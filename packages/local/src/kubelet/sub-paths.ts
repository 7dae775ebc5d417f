/** The parts of volumes that containers see instead of the whole. Source: docs/behaviour/pod-volumes.md 9. */
import type { Container } from "@longshore/kube";
import type { NodeVolumes } from "@longshore/volumes";
import type { ContainerConfig } from "../containers/pod-runtime.ts";
import { PodSpecError } from "./pod-spec-error.ts";

type Mount = NonNullable<Container["volumeMounts"]>[number];

/**
 * The sub-path of a mount with its variables replaced; undefined: the volume whole.
 * @throws PodSpecError when it is absolute, has `..` in it or names a variable that the container does not have
 */
export function subPathOf(
  { subPath = "", subPathExpr }: Mount,
  env: Readonly<Record<string, string>>,
  field: string,
): string | undefined {
  const path = subPathExpr === undefined ? subPath : expanded(subPathExpr, env, `${field}.subPathExpr`);
  if (path.startsWith("/") || path.split("/").includes("..") || path.includes("\0")) {
    throw new PodSpecError(`${field}.subPath: "${path}" must be relative, without ".."`);
  }
  return path.split("/").every((name) => name === "" || name === ".") ? undefined : path;
}

/** Unlike in arguments, a variable that is missing is an error here: the container would see another part. */
function expanded(text: string, env: Readonly<Record<string, string>>, field: string): string {
  return text.replaceAll(/\$\$|\$\(([^)]*)\)/g, (whole, name?: string) => {
    if (name === undefined) return "$";
    const value = env[name];
    if (value === undefined) throw new PodSpecError(`${field}: "${whole}" is no variable of the container`);
    return value;
  });
}

/** What a container is started with, with all of its parts bound. @throws SubPathError for one that cannot be */
export async function withSubPaths<T extends Pick<ContainerConfig, "podUID" | "containerName" | "mounts">>(
  volumes: Pick<NodeVolumes, "bindSubPath">,
  container: T,
): Promise<T> {
  const { podUID, containerName, mounts } = container;
  const bound = mounts.map(async (mount, index) => {
    const { subPath, ...whole } = mount;
    if (subPath === undefined) return mount;
    const use = { volume: mount.volumeName, containerName, index, subPath };
    return { ...whole, hostPath: await volumes.bindSubPath(podUID, use) };
  });
  return { ...container, mounts: await Promise.all(bound) };
}
