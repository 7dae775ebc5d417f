/**
 * Parts of a pod's volumes, bound for single mounts of its containers. Source: docs/behaviour/pod-volumes.md 9.
 *
 *     <root>/pods/<podUID>/volume-subpaths/<volume name>/<container>/<index of the mount>
 *
 * Invariants
 *  - What a container is given lies in the volume, whatever links a workload makes in it meanwhile.
 *  - No part outlives the volume's own mount: parts go first, also those that an earlier agent has bound.
 */
import { type Host, HostError } from "@longshore/runtime";
import { kubeletPaths } from "../../framework/volume-host.ts";

/** A mount of a container that has a part of a volume. */
export interface SubPathUse {
  /** The name of the volume in the pod's spec. */
  readonly volume: string;
  readonly containerName: string;
  /** The index of the mount in the container's `volumeMounts`. */
  readonly index: number;
  /** Relative to the volume, without variables. */
  readonly subPath: string;
}

/** A part of a volume cannot be given to a container; names volume, sub-path and container. */
export class SubPathError extends Error {
  override readonly name = "SubPathError";
}

const reasons: Readonly<Record<string, string>> = {
  EXDEV: "a link in it leads out of the volume: correct the link, or mount the volume whole",
  ELOOP: "links in it go round in a circle, or have just come: correct them",
  ENOENT: "a link in it leads nowhere: correct the link",
  ENOTDIR: "a file is where a directory should be: correct the sub-path",
  EINVAL: 'it must be relative, without "..": correct the sub-path',
  EROFS: "it is not there, and the volume refuses writes: make it, or mount the volume whole",
};

/** Binds the part of a volume that is mounted at `volumePath`. @returns where. @throws SubPathError */
export async function bindSubPath(
  env: { readonly host: Host; readonly rootDir: string },
  podUID: string,
  mounted: { readonly path: string; readonly volumeName: string },
  use: SubPathUse,
): Promise<string> {
  const directory = kubeletPaths.podSubPathsDir(env.rootDir, podUID, mounted.volumeName);
  const target = `${directory}/${use.containerName}/${use.index}`;
  try {
    await env.host.bindSubPath(mounted.path, use.subPath, target);
    return target;
  } catch (cause) {
    const reason = cause instanceof HostError ? reasons[cause.code] : undefined;
    throw subPathError(
      use,
      reason ?? `it cannot be bound: ${cause instanceof Error ? cause.message : cause}`,
      cause,
    );
  }
}

/** The error of a part. */
export function subPathError(use: SubPathUse, reason: string, cause?: unknown): SubPathError {
  const { volume, subPath, containerName } = use;
  const what = `volume "${volume}", sub-path "${subPath}" of container ${containerName}`;
  return new SubPathError(`${what}: ${reason}`, { cause });
}

/** Unmounts all parts of a pod's volume and removes their places; fine when there are none. */
export async function removeSubPaths(
  { host, rootDir }: { readonly host: Host; readonly rootDir: string },
  podUID: string,
  volumeName: string,
): Promise<void> {
  const directory = kubeletPaths.podSubPathsDir(rootDir, podUID, volumeName);
  for (const container of (await host.readDirectory(directory)) ?? []) {
    for (const index of (await host.readDirectory(`${directory}/${container}`)) ?? []) {
      const place = `${directory}/${container}/${index}`;
      while (await host.isMountPoint(place)) await host.unmount(place);
      if ((await host.stat(place))?.kind === "directory") await host.removeDirectory(place);
      else await host.removeFile(place);
    }
    await host.removeDirectory(`${directory}/${container}`);
  }
  await host.removeDirectory(directory);
}
