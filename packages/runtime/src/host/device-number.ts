/** A device number as the kernel's files write it: `major:minor`. Source: makedev(3). */
export function deviceNumberOf(dev: bigint): string {
  const major = (dev >> 8n) & 0xfffn;
  const minor = (dev & 0xffn) | ((dev >> 12n) & 0xfff00n);
  return `${major}:${minor}`;
}
