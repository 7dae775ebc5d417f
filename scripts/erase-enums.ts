/**
 * Rewrites each `enum` of generated TypeScript into a constant object and a type of the same name,
 * since the sources keep to syntax that can be erased.
 *
 *   tsx scripts/erase-enums.ts FILE…
 */
import { readFileSync, writeFileSync } from "node:fs";

/** The text with its enums rewritten. */
export function eraseEnums(text: string): string {
  return text.replace(/^export enum (\w+) \{\n([\s\S]*?)^\}$/gm, (_, name: string, body: string) => {
    const members = body.replace(/^(\s+\w+) = (-?\d+),$/gm, "$1: $2,");
    return `export const ${name} = {\n${members}} as const;\n/** A value of {@link ${name}}. */\nexport type ${name} = (typeof ${name})[keyof typeof ${name}];`;
  });
}

for (const file of process.argv.slice(2)) writeFileSync(file, eraseEnums(readFileSync(file, "utf8")));
