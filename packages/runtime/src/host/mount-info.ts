/** Reading /proc/self/mountinfo. Source: proc(5), "/proc/[pid]/mountinfo". */
import type { Mount } from "./host.ts";
import { isAtOrBelow } from "./host-paths.ts";

/** One line of the file. */
export interface MountInfo {
  /** `major:minor` of the device. */
  readonly deviceNumber: string;
  /** What of the file system is seen at the mount point; `/` is all of it. */
  readonly root: string;
  readonly target: string;
  readonly fsType: string;
  readonly source: string;
  readonly readOnly: boolean;
}

/** Parses the whole file, in mount order. A line that is not understood is left out. */
export function parseMountInfo(text: string): readonly MountInfo[] {
  return text.split("\n").flatMap((line) => {
    const [left, right] = line.split(" - ", 2);
    const [, , deviceNumber, root, target, options] = (left ?? "").split(" ");
    const [fsType, source, superOptions] = (right ?? "").split(" ");
    if (deviceNumber === undefined || root === undefined || target === undefined) return [];
    if (fsType === undefined || source === undefined) return [];
    const readOnly = isReadOnly(options) || isReadOnly(superOptions);
    return [
      {
        deviceNumber,
        root: unescaped(root),
        target: unescaped(target),
        fsType,
        source: unescaped(source),
        readOnly,
      },
    ];
  });
}

function isReadOnly(options: string | undefined): boolean {
  return options?.split(",").includes("ro") === true;
}

/** `\040` and its like stand for spaces, tabs, newlines and backslashes. */
function unescaped(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}

/** The mounts at or below `prefix` as the Host seam shows them. */
export function mountsBelow(infos: readonly MountInfo[], prefix: string): readonly Mount[] {
  return infos
    .filter((info) => isAtOrBelow(info.target, prefix))
    .map((info) => {
      const { target, fsType, readOnly } = info;
      return { source: sourceOf(infos, info), target, fsType, readOnly };
    });
}

/** A bind mount of a part shows as the path of that part, where the whole file system is mounted somewhere. */
function sourceOf(infos: readonly MountInfo[], info: MountInfo): string {
  if (info.root === "/") return info.source;
  const whole = infos.find(
    (other) =>
      other !== info && other.deviceNumber === info.deviceNumber && isAtOrBelow(info.root, other.root),
  );
  if (whole === undefined) return info.source;
  const rest = whole.root === "/" ? info.root : info.root.slice(whole.root.length);
  return whole.target === "/" ? rest : `${whole.target}${rest}`;
}
