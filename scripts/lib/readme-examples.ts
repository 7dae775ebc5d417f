/** The programs in Markdown files: blocks marked `ts` that import one of our packages. ```ts no-run is left out. */

/** A program, and the line on which its block begins. */
export interface Example {
  readonly line: number;
  readonly code: string;
}

/** The programs of one Markdown text, in its order. */
export function examplesOf(markdown: string): Example[] {
  const examples: Example[] = [];
  for (const block of markdown.matchAll(/^```(?:ts|typescript)[ \t]*\n(.*?)^```/gms)) {
    const code = block[1] ?? "";
    const line = markdown.slice(0, block.index).split("\n").length;
    if (/from "@longshore\//.test(code)) examples.push({ line, code });
  }
  return examples;
}
