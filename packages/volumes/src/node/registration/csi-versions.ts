/** Which of the versions that a driver offers is used. Source: docs/behaviour/csi-plugin.md 14. */

/** The driver cannot be used with any version that it offers. */
export class DriverVersionError extends Error {
  override readonly name = "DriverVersionError";
}

type Version = readonly [number, number, number];

/** The highest 1.x version offered, e.g. `1.0.0`. @throws DriverVersionError when there is none */
export function highestSupportedVersion(driverName: string, versions: readonly string[]): string {
  const candidates = versions
    .map(parseVersion)
    .filter((version): version is Version => version !== undefined && version[0] <= 1)
    .sort(compareVersions);
  const highest = candidates.at(-1);
  if (highest === undefined || highest[0] !== 1) {
    throw new DriverVersionError(
      `CSI driver ${driverName} supports versions [${versions.join(", ")}]; one of 1.x is needed`,
    );
  }
  return highest.join(".");
}

/** Whether `a` is strictly lower than `b`; both are from {@link highestSupportedVersion}. */
export function isLowerVersion(a: string, b: string): boolean {
  const [versionA, versionB] = [parseVersion(a), parseVersion(b)];
  return versionA !== undefined && versionB !== undefined && compareVersions(versionA, versionB) < 0;
}

/** `1`, `v1.2`, `1.2.3-rc1` → numbers. */
function parseVersion(text: string): Version | undefined {
  const match = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:[-+].*)?$/.exec(text.trim());
  return match === null ? undefined : [Number(match[1]), Number(match[2] ?? 0), Number(match[3] ?? 0)];
}

function compareVersions(a: Version, b: Version): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}
