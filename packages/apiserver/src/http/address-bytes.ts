/** IP addresses as certificates name them (RFC 5280, section 4.2.1.6). */

/** The bytes of an IP address, four or sixteen; undefined for the name of a host. */
export function addressBytes(host: string): Buffer | undefined {
  // Whether it is an address shows in its characters; node:net would compile a pattern for it, at every start.
  if (!host.includes(":"))
    return /^[\d.]+$/.test(host) ? Buffer.from(host.split(".").map(Number)) : undefined;
  const [head = "", tail] = host.split("::");
  const start = groupsOf(head);
  const end = tail === undefined ? [] : groupsOf(tail);
  return Buffer.from([...start, ...new Array<number>(16 - start.length - end.length).fill(0), ...end]);
}

/** The bytes of groups of hexadecimal digits; the last of them may be an IPv4 address. */
function groupsOf(text: string): readonly number[] {
  if (text === "") return [];
  return text.split(":").flatMap((group) => {
    if (group.includes(".")) return group.split(".").map(Number);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
