/** Text of others (drivers, registrars, programs) made fit for logs, events, statuses and terminals. */

/** Most characters of such a text that are shown; an event holds 1024, a status some more. */
const foreignTextMax = 2048;

// Control characters (C0, DEL, C1), separators of lines and paragraphs, marks that turn the direction of writing around,
// the byte order mark, and halves of surrogate pairs.
const unfit =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to be escaped
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const short: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/**
 * The text on one line, without characters that steer a terminal or hide what is written, and no longer than `max`.
 * @param max most characters (UTF-16) that are kept; for the rest, only its length is reported
 */
export function foreignText(text: string, max = foreignTextMax): string {
  const visible = text.replace(unfit, escaped);
  if (visible.length <= max) return visible;
  // A cut inside a surrogate pair would leave one of the characters that `unfit` excludes.
  const isHalf = /[\ud800-\udbff]/.test(visible.charAt(max - 1));
  const kept = visible.slice(0, isHalf ? max - 1 : max);
  return `${kept}… (${visible.length - kept.length} more characters)`;
}

/** Likewise, of a text of several lines, each of which may have `max` characters. */
export function foreignLines(text: string, max = foreignTextMax): string {
  if (!hasUnfitCharacters(text) && text.length <= max) return text;
  return text
    .split("\n")
    .map((line) => foreignText(line, max))
    .join("\n");
}

/** Whether the text holds a character that {@link foreignText} escapes. */
export function hasUnfitCharacters(text: string): boolean {
  return text.search(unfit) >= 0;
}

function escaped(char: string): string {
  const code = char.charCodeAt(0);
  return short[char] ?? (code < 0x100 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`);
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, "0");
}
