/** Versions of Kubernetes as Gardener compares them. Source: docs/behaviour/migration-controllers.md A5. */

/** `~`: the same minor version and not lower; with a missing patch, `>` and `<=` compare minor versions. */
export type VersionOperator = "~" | ">=" | ">" | "<" | "<=";

/** A version that cannot be read. */
export class VersionError extends Error {
  override readonly name = "VersionError";
}

interface Version {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
  /** How many numbers were given, 1 to 3. */
  readonly given: number;
}

/**
 * Whether `version operator other` holds. A `v`, what follows the first `-` or `+`, and blanks around count for nothing:
 * `v1.18.9-gke.100+abc` is 1.18.9.
 *
 * @throws VersionError naming the text that is no version
 */
export function compareVersions(version: string, operator: VersionOperator, other: string): boolean {
  const [a, b] = [parse(version), parse(other)];
  const order = orderOf(a, b);
  switch (operator) {
    case "~":
      return order >= 0 && a.major === b.major && (b.given === 1 || a.minor === b.minor);
    case ">=":
      return order >= 0;
    case "<":
      return order < 0;
    case ">":
      return order > 0 && !isWithin(a, b);
    case "<=":
      return order <= 0 || isWithin(a, b);
  }
}

/** Whether {@link compareVersions} can read the text. */
export function isVersion(text: string): boolean {
  return numbersOf(text) !== null;
}

/** Whether `a` is one of the versions that a `b` with missing numbers stands for. */
function isWithin(a: Version, b: Version): boolean {
  return b.given < 3 && a.major === b.major && (b.given === 1 || a.minor === b.minor);
}

function orderOf(a: Version, b: Version): number {
  return a.major - b.major || a.minor - b.minor || a.patch - b.patch;
}

/** Longer numbers are no versions, and would lose digits. */
const pattern = /^(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?$/;

function numbersOf(text: string): RegExpExecArray | null {
  const [bare = ""] = text.replaceAll("v", "").split(/[-+]/, 1);
  return pattern.exec(bare.trim());
}

function parse(text: string): Version {
  const found = numbersOf(text);
  if (found === null) {
    throw new VersionError(`"${text.slice(0, 64)}" is not a version: give one like 1.18.5`);
  }
  const [, major, minor, patch] = found;
  return {
    major: Number(major),
    minor: Number(minor ?? 0),
    patch: Number(patch ?? 0),
    given: patch !== undefined ? 3 : minor !== undefined ? 2 : 1,
  };
}
