/** Tables of text, as `kubectl` prints them. */
import { foreignText } from "@longshore/runtime/basics";

/** The rows with their columns aligned, three spaces apart, one a line. Cells are sanitized: they may hold text of servers. */
export function textTable(rows: readonly (readonly string[])[]): string {
  const clean = rows.map((cells) => cells.map((cell) => foreignText(cell, Number.POSITIVE_INFINITY)));
  const widths: number[] = [];
  for (const cells of clean) {
    for (const [at, cell] of cells.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length);
  }
  const line = (cells: readonly string[]) =>
    cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("   ");
  return clean.map((cells) => `${line(cells).trimEnd()}\n`).join("");
}
