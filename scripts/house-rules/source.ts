/** A parsed source file, and the few questions that the house rules ask of it. */
import { type Comment, parseSync } from "oxc-parser";

/** A node of the syntax tree, as far as walking it needs. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [property: string]: unknown;
}

/** A source file of the repository. */
export interface Source {
  /** Relative to the repository, with forward slashes. */
  readonly path: string;
  readonly text: string;
  readonly program: Node;
  readonly comments: readonly Comment[];
}

/** Something that breaks a rule. */
export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

/** Parses TypeScript; throws when it is none. */
export function parse(path: string, text: string): Source {
  const { program, comments, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  return { path, text, program: program as unknown as Node, comments };
}

/** The line, from 1, of an offset. */
export function lineAt(source: Source, offset: number): number {
  return source.text.slice(0, offset).split("\n").length;
}

/** True for a node of a syntax tree. */
export function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as Node).type === "string";
}

/** Visits a node and all below it, parents first; `key` is the property of the parent that holds the node. */
export function walk(
  node: Node,
  visit: (node: Node, parent: Node | undefined, key: string) => void,
  parent?: Node,
  key = "",
): void {
  visit(node, parent, key);
  for (const [property, value] of Object.entries(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) walk(child, visit, node, property);
    }
  }
}
