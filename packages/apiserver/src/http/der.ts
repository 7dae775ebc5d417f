/**
 * The part of DER (X.690) in which certificates are written and read. Values go in, whole elements (tag, length, content)
 * come out; nothing here knows what a certificate is.
 */

/** One element: its tag, the length of its content, its content. */
export type Element = Buffer;

const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** An element of any tag. */
export function element(tag: number, ...content: readonly Uint8Array[]): Element {
  const bytes = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag, ...lengthOf(bytes.length)]), bytes]);
}

/** One byte up to 127; beyond, the number of bytes that follow and the length in them (X.690, 8.1.3). */
function lengthOf(length: number): readonly number[] {
  if (length < 0x80) return [length];
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return [0x80 | bytes.length, ...bytes];
}

/** SEQUENCE. */
export function sequence(...members: readonly Element[]): Element {
  return element(tags.sequence, ...members);
}

/** SET of one member, the only one whose order needs no rule. */
export function setOf(member: Element): Element {
  return element(tags.set, member);
}

/** What stands at a place of its own, `[place]`, around an element. */
export function explicit(place: number, member: Element): Element {
  return element(0xa0 | place, member);
}

/** What stands at a place of its own, `[place]`, in the stead of its tag. */
export function implicit(place: number, content: Uint8Array): Element {
  return element(0x80 | place, content);
}

/** BOOLEAN; false is written nowhere in DER, where it is the default. */
export const isTrue: Element = element(tags.boolean, Buffer.from([0xff]));

/** INTEGER from the bytes of a number that is not negative, the highest first. */
export function unsignedInteger(bytes: Uint8Array): Element {
  let first = 0;
  while (first < bytes.length - 1 && bytes[first] === 0) first++;
  const digits = bytes.subarray(first);
  const sign = (digits[0] ?? 0x80) >= 0x80 ? [0] : [];
  return element(tags.integer, Buffer.from(sign), digits);
}

/** BIT STRING of whole bytes. */
export function bitString(bytes: Uint8Array): Element {
  return element(tags.bitString, Buffer.from([0]), bytes);
}

/** BIT STRING of flags, by their places; zeros at the end are left out (X.690, 11.2.2). Places are 0 to 7. */
export function flags(...places: readonly number[]): Element {
  const bits = places.reduce((all, place) => all | (0x80 >> place), 0);
  return element(tags.bitString, Buffer.from([7 - Math.max(...places), bits]));
}

/** OCTET STRING. */
export function octetString(bytes: Uint8Array): Element {
  return element(tags.octetString, bytes);
}

/** UTF8String. */
export function utf8String(text: string): Element {
  return element(tags.utf8String, Buffer.from(text));
}

/** OBJECT IDENTIFIER, `1.2.840.…`: seven bits a byte, the first two numbers in one (X.690, 8.19). */
export function objectIdentifier(dotted: string): Element {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = [first * 40 + second, ...rest].flatMap((number) => {
    const sevens = [number & 0x7f];
    for (let left = number >> 7; left > 0; left >>= 7) sevens.unshift((left & 0x7f) | 0x80);
    return sevens;
  });
  return element(tags.objectIdentifier, Buffer.from(bytes));
}

/** Time, to the second; with two digits for the years in which certificates have two (RFC 5280, section 4.1.2.5). */
export function time(date: Date): Element {
  const digits = `${date.toISOString().replace(/\D/g, "").slice(0, 14)}Z`;
  const year = date.getUTCFullYear();
  if (year >= 1950 && year < 2050) return element(tags.utcTime, Buffer.from(digits.slice(2)));
  return element(tags.generalizedTime, Buffer.from(digits));
}

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

/** The content of an element. @throws Error when it ends before its content does */
export function contentOf(whole: Element): Buffer {
  const { begin, end } = boundsOf(whole, 0);
  return whole.subarray(begin, end);
}

/** The elements in an element. @throws Error when one ends before its content does */
export function membersOf(whole: Element): readonly Element[] {
  const content = contentOf(whole);
  const members: Element[] = [];
  for (let at = 0; at < content.length; ) {
    const { end } = boundsOf(content, at);
    members.push(content.subarray(at, end));
    at = end;
  }
  return members;
}

/** Where the content of the element at `at` begins and ends. */
function boundsOf(bytes: Buffer, at: number): { readonly begin: number; readonly end: number } {
  const short = bytes[at + 1] ?? 0;
  const lengthBytes = short < 0x80 ? 0 : short & 0x7f;
  const begin = at + 2 + lengthBytes;
  // No certificate is longer than four bytes tell.
  const isReadable = begin <= bytes.length && short !== 0x80 && lengthBytes <= 4;
  const length = lengthBytes === 0 ? short : isReadable ? bytes.readUIntBE(at + 2, lengthBytes) : 0;
  if (!isReadable || begin + length > bytes.length) throw new Error("an element of DER is cut off");
  return { begin, end: begin + length };
}
