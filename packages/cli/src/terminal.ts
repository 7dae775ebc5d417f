/** Live progress on a terminal, plain lines elsewhere. All of it goes to stderr; results go to stdout. */
import type { CrossingEvent } from "@longshore/migration";
import pc from "picocolors";

/** Shows what is going on. */
export interface Progress {
  /** A line that stays. */
  line(text: string): void;
  /** What is being waited for now; replaced by the next, and shown on a terminal only. */
  status(text: string): void;
  /** Takes the status away. */
  clear(): void;
}

/** Progress on stderr; silent with `quiet`. */
export function createProgress(quiet = false): Progress {
  if (quiet) return { line() {}, status() {}, clear() {} };
  const live = process.stderr.isTTY === true;
  let shown = false;
  const clear = () => {
    if (shown) process.stderr.write("\r\u001b[2K");
    shown = false;
  };
  return {
    line(text) {
      clear();
      process.stderr.write(`${text}\n`);
    },
    status(text) {
      if (!live) return;
      clear();
      const width = (process.stderr.columns || 80) - 1;
      process.stderr.write(pc.dim(text.length > width ? `${text.slice(0, width - 1)}…` : text));
      shown = true;
    },
    clear,
  };
}

/** Seconds with one decimal. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** Shows a crossing's events. */
export function showCrossing(progress: Progress): (event: CrossingEvent) => void {
  const name = (event: CrossingEvent) =>
    event.nodeName === undefined ? event.step : `${event.nodeName}: ${event.step}`;
  return (event) => {
    if (event.kind === "stepStarted") progress.status(`  … ${name(event)}`);
    if (event.kind === "waiting") progress.status(`  … ${name(event)}, waiting for ${event.for}`);
    if (event.kind === "stepDone") {
      progress.line(`  ${pc.green("✓")} ${name(event)} ${pc.dim(seconds(event.ms))}`);
    }
  };
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
