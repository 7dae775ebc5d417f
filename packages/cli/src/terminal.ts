/** Live progress on a terminal, plain lines elsewhere. All of it goes to stderr; results go to stdout. */
import { type CrossingEvent, findingWords, waitWords } from "@longshore/migration";
import pc from "picocolors";
import { clusterFields, inFlags } from "./field-flags.ts";

/**
 * Shows the progress of a command on stderr, so that stdout holds results only. A status is one line that the next one
 * replaces; `line` clears it first. The command calls `clear` before it ends. Nothing here throws.
 */
export interface Progress {
  /** A status can be shown: it is a terminal that can take a line back. */
  readonly live: boolean;
  /** A line that stays. */
  line(text: string): void;
  /**
   * What is being waited for now; replaced by the next, and shown on a terminal only. With `sinceMs`, how long it has
   * gone on already, the seconds are counted next to it.
   */
  status(text: string, sinceMs?: number): void;
  /** Takes the status away. */
  clear(): void;
}

/** Progress on stderr; silent with `quiet`. */
export function createProgress(quiet = false): Progress {
  if (quiet) return { live: true, line() {}, status() {}, clear() {} };
  // A dumb terminal cannot take a line back.
  const live = process.stderr.isTTY === true && process.env.TERM !== "dumb";
  let shown = false;
  let ticking: NodeJS.Timeout | undefined;
  const clear = () => {
    clearInterval(ticking);
    if (shown) process.stderr.write("\r\u001b[2K");
    shown = false;
  };
  const draw = (text: string, end: string) => {
    // One line at most: the escape below clears no more than that.
    const width = (process.stderr.columns || 80) - 1 - end.length;
    const cut = text.length > width ? `${text.slice(0, width - 1)}…` : text;
    process.stderr.write(`\r\u001b[2K${pc.dim(`${cut}${end}`)}`);
    shown = true;
  };
  return {
    live,
    line(text) {
      clear();
      process.stderr.write(`${text}\n`);
    },
    status(text, sinceMs) {
      if (!live) return;
      clear();
      draw(text, "");
      if (sinceMs === undefined) return;
      const startMs = performance.now() - sinceMs;
      ticking = setInterval(() => draw(text, ` ${Math.round((performance.now() - startMs) / 1000)} s`), 1000);
      ticking.unref();
    },
    clear,
  };
}

/** Seconds with one decimal. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** A wait that lasts this long, in milliseconds, is worth a line that stays, also on a terminal. */
export const lastingMs = 25_000;

/**
 * Shows a crossing's events. What is waited for is a status on a terminal and a line elsewhere; where it lasts, it is
 * a line everywhere, as often as the crossing reports it.
 */
export function showCrossing(progress: Progress): (event: CrossingEvent) => void {
  const name = (event: { readonly step: string; readonly nodeName?: string }) =>
    event.nodeName === undefined ? event.step : `${event.nodeName}: ${event.step}`;
  return (event) => {
    if (event.kind === "warning")
      progress.line(`  ${pc.yellow("!")} ${inFlags(findingWords(event.finding), clusterFields)}`);
    if (event.kind === "stepStarted") progress.status(`  … ${name(event)}`);
    if (event.kind === "waiting") {
      const text = `  … ${name(event)} waits for ${waitWords(event.wait)}`;
      const lasts = event.waitedMs >= lastingMs;
      const times = `, for ${wholeSeconds(event.waitedMs)} now; given up in ${wholeSeconds(event.leftMs)}`;
      if (lasts || !progress.live) progress.line(`${text}${lasts ? times : ""}`);
      progress.status(text, event.waitedMs);
    }
    if (event.kind === "stepDone") {
      progress.line(`  ${pc.green("✓")} ${name(event)} ${pc.dim(seconds(event.ms))}`);
    }
  };
}

/** `90 s`. */
export function wholeSeconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}

/** Columns padded to their widest cell, as kubectl prints tables. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  }
  return rows
    .map(
      (row) =>
        `${row
          .map((c, i) => c.padEnd(widths[i] ?? 0))
          .join("   ")
          .trimEnd()}\n`,
    )
    .join("");
}
