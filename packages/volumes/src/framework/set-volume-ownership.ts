/** Giving the files of a volume to the group of a pod. Source: docs/behaviour/volume-plugins.md 6; upstream SetVolumeOwnership. */
import { type ChownOptions, invariant } from "@longshore/runtime";
import type { VolumeHost } from "./volume-host.ts";

/** After so long, in milliseconds, the log says what the pod waits for. */
const slowMs = 30_000;

/** As `chownTree` of the node's host; where that takes long, the log says so. @throws HostError as that */
export async function setVolumeOwnership(
  { clock, logger, kubelet }: VolumeHost,
  path: string,
  gid: number,
  options: ChownOptions = {},
): Promise<void> {
  invariant(kubelet !== undefined, "files of volumes are given to groups only on a node's host");
  const done = new AbortController();
  const warn = () =>
    logger.warn(
      "the files of a volume are still being given to the pod's fsGroup: with fsGroupChangePolicy OnRootMismatch that is done once",
      { path, fsGroup: gid },
    );
  void clock.sleep(slowMs, done.signal).then(warn, () => {});
  try {
    await kubelet.host.chownTree(path, gid, options);
  } finally {
    done.abort();
  }
}
