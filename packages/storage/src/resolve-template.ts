/** Templates in StorageClass parameters: `${pvc.name}` and the like, with the syntax of Go's `os.Expand`. */

/** A template names something that has no value here. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
  /** The unknown names, sorted. */
  readonly tokens: readonly string[];
  constructor(template: string, tokens: readonly string[]) {
    super(`"${template}" uses ${tokens.map((t) => `"${t}"`).join(", ")}, which is not known here`);
    this.tokens = tokens;
  }
}

const special = /^[*#$@!?\-0-9]$/;

/**
 * The name after a `$`, and how many characters it takes with its braces. No name: `width` 0 leaves
 * the dollar in place, more than 0 is bad syntax that vanishes.
 */
function nameAfterDollar(rest: string): { readonly name: string; readonly width: number } {
  if (rest.startsWith("{")) {
    if (special.test(rest.charAt(1)) && rest.charAt(2) === "}") return { name: rest.charAt(1), width: 3 };
    const end = rest.indexOf("}", 1);
    // As os.Expand: of an unclosed brace, only the dollar and the brace vanish.
    if (end < 0) return { name: "", width: 1 };
    return { name: rest.slice(1, end), width: end + 1 };
  }
  if (special.test(rest.charAt(0))) return { name: rest.charAt(0), width: 1 };
  const name = /^[a-zA-Z0-9_]*/.exec(rest)?.[0] ?? "";
  return { name, width: name.length };
}

/** The template with its tokens filled in. @throws TemplateError naming tokens without a value */
export function resolveTemplate(template: string, values: Readonly<Record<string, string>>): string {
  const unknown = new Set<string>();
  let text = "";
  let done = 0;
  for (let at = 0; at < template.length; at++) {
    // As os.Expand: a dollar at the very end stays.
    if (template[at] !== "$" || at + 1 >= template.length) continue;
    text += template.slice(done, at);
    const { name, width } = nameAfterDollar(template.slice(at + 1));
    if (name !== "") {
      if (Object.hasOwn(values, name)) text += values[name];
      else unknown.add(name);
    } else if (width === 0) text += "$";
    at += width;
    done = at + 1;
  }
  if (unknown.size > 0) throw new TemplateError(template, [...unknown].sort());
  return text + template.slice(done);
}
