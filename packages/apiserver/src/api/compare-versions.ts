/** The order of the versions of a group: `v1`, then betas, then alphas, newer ones first, others by name. */

/** The order of apimachinery's version.CompareKubeAwareVersionStrings, the highest first. */
export function compareVersions(a: string, b: string): number {
  const [x, y] = [versionRank(a), versionRank(b)];
  if (x === undefined || y === undefined) return x === y ? (a < b ? -1 : 1) : x === undefined ? 1 : -1;
  for (const [i, rank] of x.entries()) if (rank !== y[i]) return (y[i] as number) - rank;
  return 0;
}

function versionRank(version: string): readonly number[] | undefined {
  const match = /^v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?$/.exec(version);
  if (match === null) return undefined;
  const stability = match[2] === undefined ? 2 : match[2] === "beta" ? 1 : 0;
  return [stability, Number(match[1]), Number(match[3] ?? 0)];
}
