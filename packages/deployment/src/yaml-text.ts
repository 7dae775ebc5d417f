/**
 * Writes plain values as YAML in block style: members in the order in which they are, comments above them, and texts
 * of a chart's templates as they are. Every other text that is not obviously plain is quoted, so that nothing in it
 * can be read as something else.
 */

/** A template's text in the place of a value. */
export class TemplateText {
  readonly #text: string;
  readonly #isBlock: boolean;

  /** @param isBlock the text yields lines of its own below the member, and is piped through `nindent` */
  constructor(text: string, isBlock = false) {
    this.#text = text;
    this.#isBlock = isBlock;
  }

  /** The text after the member's colon, where lines below it are indented by `indent` spaces. */
  at(indent: number): string {
    return this.#isBlock ? ` {{- ${this.#text} | nindent ${indent} }}` : ` {{ ${this.#text} }}`;
  }
}

/** One document, ending in a line break. */
export function yamlText(value: unknown, comments: ReadonlyMap<string, string> = new Map()): string {
  const lines: string[] = [];
  write(value, 0, "", comments, lines);
  return `${lines.join("\n")}\n`;
}

type Comments = ReadonlyMap<string, string>;

function write(value: unknown, indent: number, path: string, comments: Comments, lines: string[]): void {
  const pad = " ".repeat(indent);
  const comment = (at: string) => {
    const text = comments.get(at);
    if (text !== undefined) lines.push(`${pad}# ${text.replaceAll(/\s+/g, " ")}`);
  };
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const at = join(path, String(index));
      comment(at);
      if (!isFilled(item)) {
        lines.push(`${pad}-${scalar(item, indent + 2)}`);
        continue;
      }
      const below: string[] = [];
      write(item, indent + 2, at, comments, below);
      lines.push(`${pad}- ${below[0]?.slice(indent + 2) ?? ""}`, ...below.slice(1));
    }
    return;
  }
  for (const [key, member] of Object.entries(value as object)) {
    if (member === undefined) continue;
    const at = join(path, key);
    comment(at);
    if (!isFilled(member)) {
      lines.push(`${pad}${keyText(key)}:${scalar(member, indent + 2)}`);
      continue;
    }
    lines.push(`${pad}${keyText(key)}:`);
    // Items of a list stand below the list's own name, as kubectl writes them.
    write(member, Array.isArray(member) ? indent : indent + 2, at, comments, lines);
  }
}

const join = (path: string, member: string) => (path === "" ? member : `${path}.${member}`);

/** Whether the value has lines of its own. */
function isFilled(value: unknown): value is object {
  if (value === null || typeof value !== "object" || value instanceof TemplateText) return false;
  return Array.isArray(value) ? value.length > 0 : Object.keys(value).length > 0;
}

function scalar(value: unknown, indent: number): string {
  if (value instanceof TemplateText) return value.at(indent);
  if (value !== null && typeof value === "object") return Array.isArray(value) ? " []" : " {}";
  return ` ${typeof value === "string" ? textOf(value) : JSON.stringify(value)}`;
}

/** Words that some reader of YAML takes for something else than text. */
const words = new Set(["null", "true", "false", "yes", "no", "on", "off", "y", "n"]);
const plain = /^[A-Za-z/][A-Za-z0-9_./@$()=,-]*(:[A-Za-z0-9_./@$()=-]+)*$/;

function textOf(text: string): string {
  // What JSON writes in quotes, YAML reads the same.
  return plain.test(text) && !words.has(text.toLowerCase()) ? text : JSON.stringify(text);
}

function keyText(key: string): string {
  return textOf(key);
}
