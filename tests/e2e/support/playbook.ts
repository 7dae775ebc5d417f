/**
 * A playbook as its reader has it: the console blocks of a page of Markdown, each command with the output that is to be expected.
 * The notation is described in `docs/playbooks/README.md`.
 */

/** One command of a playbook. */
export interface PlaybookStep {
  /** The heading below which it is. */
  readonly section: string;
  /** Line of the page on which the command begins. */
  readonly line: number;
  readonly command: string;
  /** Lines that are to be expected. */
  readonly expected: readonly string[];
}

/** The commands of a page, in its order. @throws Error for a block that does not begin with a command */
export function playbookSteps(markdown: string): PlaybookStep[] {
  const steps: { section: string; line: number; command: string; expected: string[] }[] = [];
  let section = "";
  let state: "text" | "block" | "command" | "output" = "text";
  let indent = 0;
  for (const [index, raw] of markdown.split("\n").entries()) {
    const text: string = state === "text" ? raw : raw.slice(Math.min(indent, raw.search(/\S|$/)));
    if (state === "text") {
      if (text.startsWith("#")) section = text.replace(/^#+ /, "");
      if (text.trim() === "```console") {
        state = "block";
        indent = text.indexOf("`");
      }
      continue;
    }
    if (text.trim() === "```") {
      state = "text";
      continue;
    }
    const last = steps.at(-1);
    if (state === "command" && last !== undefined) {
      last.command += `\n${text}`;
      if (!text.endsWith("\\")) state = "output";
    } else if (text.startsWith("$ ")) {
      steps.push({ section, line: index + 1, command: text.slice(2), expected: [] });
      state = text.endsWith("\\") ? "command" : "output";
    } else if (state === "output" && last !== undefined) {
      last.expected.push(text);
    } else {
      throw new Error(`line ${index + 1}: a console block begins with "$ " and a command`);
    }
  }
  return steps;
}

/** The command with what earlier outputs have shown in place of `<NAME>`. @throws Error for a name that none has shown */
export function filledCommand({ command, line }: PlaybookStep, values: ReadonlyMap<string, string>): string {
  return command.replace(placeholder, (_, name: string) => {
    const value = values.get(name);
    if (value === undefined) throw new Error(`line ${line}: no output has shown <${name}> yet`);
    return value;
  });
}

const placeholder = /<([A-Z][A-Z-]*)>/g;
/** Stands for any text of a line, or alone on a line for any lines. */
const anything = "…";

/**
 * Compares an output with the expected one and takes from it what `<NAME>` stands for.
 * @returns the first expected line that is not there, or the line that is there and not expected; undefined: all is well
 */
export function outputMismatch(
  expected: readonly string[],
  output: string,
  values: Map<string, string>,
): string | undefined {
  const lines = output.split("\n").map(narrowed);
  while (lines.at(-1) === "") lines.pop();
  const wanted = expected.map(narrowed);
  while (wanted.at(-1) === "") wanted.pop();
  let at = 0;
  let isGap = false;
  for (const want of wanted) {
    if (want === anything) {
      isGap = true;
      continue;
    }
    let found = matchLine(want, lines[at], values);
    while (isGap && !found && at < lines.length) {
      at += 1;
      found = matchLine(want, lines[at], values);
    }
    if (!found) return `expected: ${want}`;
    at += 1;
    isGap = false;
  }
  return isGap || at >= lines.length ? undefined : `not expected: ${lines[at]}`;
}

/** Widths of columns and indentation differ with what is in them. */
const narrowed = (line: string): string => line.trim().replace(/\s+/g, " ");

function matchLine(want: string, line: string | undefined, values: Map<string, string>): boolean {
  if (line === undefined) return false;
  const names: string[] = [];
  const pattern = want
    .split(/(<[A-Z][A-Z-]*>|…)/)
    .map((part) => {
      if (part === anything) return ".*";
      const [, name] = /^<([A-Z][A-Z-]*)>$/.exec(part) ?? [];
      if (name === undefined) return literal(part);
      const known = values.get(name);
      if (known !== undefined) return literal(known);
      if (names.includes(name)) return `\\${names.indexOf(name) + 1}`;
      names.push(name);
      return "([^\\s,;:'\"]+)";
    })
    .join("");
  const found = new RegExp(`^${pattern}$`).exec(line);
  for (const [index, name] of names.entries()) {
    const value = found?.[index + 1];
    if (value !== undefined) values.set(name, value);
  }
  return found !== null;
}

const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
