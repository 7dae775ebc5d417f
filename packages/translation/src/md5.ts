/**
 * MD5 (RFC 1321) of a text's UTF-8 bytes, in lower-case hexadecimal. It names Ceph clusters by their
 * monitors; nothing secret rests on it. Written here because translation has no dependency and
 * browsers offer no MD5.
 */

import { utf8Bytes } from "./go-text.ts";

const SHIFTS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
const SINES = Int32Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32));

/** The MD5 of `text` as 32 hexadecimal digits. */
export function md5Hex(text: string): string {
  const words = paddedWords(utf8Bytes(text));
  const state = Int32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
  for (let block = 0; block < words.length; block += 16) mixBlock(state, words, block);
  let hex = "";
  // MD5's words are little-endian; a Uint8Array over them would have the byte order of the machine.
  for (const word of state)
    for (let shift = 0; shift < 32; shift += 8)
      hex += ((word >>> shift) & 0xff).toString(16).padStart(2, "0");
  return hex;
}

/** The message with its terminating bit and length in bits, as little-endian words. */
function paddedWords(bytes: readonly number[]): Int32Array {
  const words = new Int32Array(((bytes.length + 8) >> 6) * 16 + 16);
  for (const [i, byte] of bytes.entries())
    words[i >> 2] = (words[i >> 2] as number) | (byte << ((i & 3) * 8));
  words[bytes.length >> 2] = (words[bytes.length >> 2] as number) | (0x80 << ((bytes.length & 3) * 8));
  // The length in bits takes two words: an Int32Array keeps the low 32 bits, and 2^29 bytes count one in the high word.
  words[words.length - 2] = bytes.length * 8;
  words[words.length - 1] = Math.floor(bytes.length / 2 ** 29);
  return words;
}

function mixBlock(state: Int32Array, words: Int32Array, block: number): void {
  let [a, b, c, d] = state as unknown as [number, number, number, number];
  for (let i = 0; i < 64; i++) {
    const round = i >> 4;
    const [mixed, index] =
      round === 0
        ? [(b & c) | (~b & d), i]
        : round === 1
          ? [(d & b) | (~d & c), 5 * i + 1]
          : round === 2
            ? [b ^ c ^ d, 3 * i + 5]
            : [c ^ (b | ~d), 7 * i];
    const sum = (a + mixed + (SINES[i] as number) + (words[block + (index & 15)] as number)) | 0;
    const shift = SHIFTS[round * 4 + (i & 3)] as number;
    [a, b, c, d] = [d, (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0, b, c];
  }
  state[0] = (state[0] as number) + a;
  state[1] = (state[1] as number) + b;
  state[2] = (state[2] as number) + c;
  state[3] = (state[3] as number) + d;
}
