/** Warnings that go with an answer, as headers (RFC 7234, 5.5; apimachinery util/net NewWarningHeader). */
import type { ServerResponse } from "node:http";
import type { Response } from "./exchange.ts";

/** Longest warning, and all warnings of an answer together, in characters (apiserver filters/warning.go). */
const warningLengthMax = 256;
const warningsLengthMax = 4 * 1024;

/** Collects the warnings of one answer; the same one is said once. */
export class Warnings {
  readonly #texts = new Set<string>();

  readonly add = (text: string): void => {
    this.#texts.add(text);
  };

  /** Puts the warnings into the head of the answer, before it is sent. */
  announce(response: Response): void {
    if (this.#texts.size === 0) return;
    const all = [...this.#texts];
    const tooMuch = all.reduce((sum, text) => sum + text.length, 0) > warningsLengthMax;
    const headers: string[] = [];
    let length = 0;
    for (const text of all) {
      const shown = tooMuch && text.length > warningLengthMax ? text.slice(0, warningLengthMax) : text;
      length += shown.length;
      if (length > warningsLengthMax) break;
      headers.push(`299 - ${quoted(shown)}`);
    }
    (response as ServerResponse).setHeader("warning", headers);
  }
}

/** The text as a quoted string of a header; what headers cannot hold is replaced. */
function quoted(text: string): string {
  const plain = text.replace(/[^\x20-\x7e]/g, "?");
  return `"${plain.replace(/["\\]/g, (character) => `\\${character}`)}"`;
}
