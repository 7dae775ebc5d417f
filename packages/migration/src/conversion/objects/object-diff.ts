/** Two objects as YAML, line by line: what goes, what comes, and a few lines around it. Pure. */
import type { KubeObject } from "@longshore/kube";
import { formatYaml } from "../../convert/yaml-text.ts";
import { authoredMetadata } from "./differences.ts";

/** Lines that are the same and are shown before and after a change. */
const context = 3;
/** Above it the lines between the first and the last change are shown as all gone and all new. */
const cellsMax = 4_000_000;

/**
 * The difference in the unified form, with ` `, `-` and `+` at the start of each line, or "" when there is none. What the API
 * server writes (`status`, `metadata.uid` and the like) is not shown.
 */
export function diffOfObjects(before: KubeObject | undefined, after: KubeObject | undefined): string {
  const lines = editScript(linesOf(before), linesOf(after));
  const isShown = lines.map(() => false);
  for (const [at, line] of lines.entries()) {
    if (line.startsWith(" ")) continue;
    isShown.fill(true, Math.max(0, at - context), at + context + 1);
  }
  const shown = lines.flatMap((line, at) => {
    if (isShown[at]) return [line];
    return at === 0 || isShown[at - 1] ? ["  ..."] : [];
  });
  return isShown.includes(true) ? `${shown.join("\n")}\n` : "";
}

function linesOf(object: KubeObject | undefined): readonly string[] {
  if (object === undefined) return [];
  const { status: _status, ...rest } = object as KubeObject & { status?: unknown };
  const shown = { ...rest, metadata: authoredMetadata(object.metadata) };
  return formatYaml(shown).trimEnd().split("\n");
}

/** A longest common subsequence; what both begin and end with is not looked at. */
function editScript(before: readonly string[], after: readonly string[]): readonly string[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  const shorter = Math.min(before.length, after.length) - head;
  while (tail < shorter && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const same = (lines: readonly string[]) => lines.map((line) => ` ${line}`);
  const middle = changed(before.slice(head, before.length - tail), after.slice(head, after.length - tail));
  return [...same(before.slice(0, head)), ...middle, ...same(before.slice(before.length - tail))];
}

function changed(before: readonly string[], after: readonly string[]): readonly string[] {
  const width = after.length + 1;
  if ((before.length + 1) * width > cellsMax) {
    return [...before.map((line) => `-${line}`), ...after.map((line) => `+${line}`)];
  }
  // lengths[i * width + j]: of the longest common subsequence of what follows i and j.
  const lengths = new Uint32Array((before.length + 1) * width);
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0;
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: string[] = [];
  for (let i = 0, j = 0; i < before.length || j < after.length; ) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      lines.push(` ${before[i++]}`);
      j++;
    } else if (j >= after.length || (i < before.length && at(i + 1, j) >= at(i, j + 1))) {
      lines.push(`-${before[i++]}`);
    } else lines.push(`+${after[j++]}`);
  }
  return lines;
}
