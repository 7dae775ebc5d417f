/** What the readers of manifests hand on: pieces of the input, each with its place. */

/**
 * Receives the pieces of the input (YAML documents, items of lists, lines of JSON) in order, from the splitter. Lines count
 * from 1. A method that throws ends the conversion with that error.
 */
export interface PieceSink {
  /** One line that looks like a whole JSON object. False: it is none after all, and will come another way. */
  jsonLine(text: string, line: number): boolean;
  /** The text of one JSON value, over any number of lines. */
  json(text: string, line: number): void;
  /** The text of one YAML document with its separator, directives and comments. */
  yaml(text: string, line: number): void;
  /** The opening of a list: its text up to the first item. */
  listStart(form: "json" | "yaml", head: string): void;
  /** One item of the list. In YAML its lines, which begin with `indent` and a dash. */
  listItem(form: "json" | "yaml", text: string, line: number, indent: string): void;
  /**
   * Text that looks like whole items of a JSON list, with the commas between them. False: it is none after all, and will come
   * another way. Left out: items are looked for bracket by bracket.
   */
  jsonItems?(text: string, line: number): boolean;
  /** The end of the list: its text after the last item. */
  listEnd(form: "json" | "yaml", tail: string, line: number): void;
  /** Text that is no manifest. Reading goes on behind it. */
  malformed(text: string, line: number, reason: string): void;
}
