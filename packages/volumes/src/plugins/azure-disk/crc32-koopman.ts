/** The checksum that upstream names global mounts of Azure disks by. */

/** Koopman's polynomial, lowest bit first. Source: Go hash/crc32, Koopman. */
const polynomial = 0xeb31d82e;

/** CRC-32 of the text's UTF-8 form with Koopman's polynomial, in decimal. */
export function crc32Koopman(text: string): string {
  let crc = 0xffffffff;
  for (const byte of new TextEncoder().encode(text)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ polynomial : crc >>> 1;
  }
  return String((crc ^ 0xffffffff) >>> 0);
}
