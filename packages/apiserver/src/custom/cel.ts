/**
 * Expressions of validation rules: compiled once, and run with a bound on what they may cost. Every step of a
 * comprehension counts, so nested ones over long lists end with an error and not with a server that stands still;
 * patterns are those of RE2, which no text can slow down.
 */
import { createRequire } from "node:module";
import type { ASTNode, Environment, Optional } from "@marcbachmann/cel-js";
import { registerFunctions } from "./cel-functions.ts";
import { patternMatches, patternProblem } from "./pattern.ts";

/** Most steps of comprehensions that one expression may take. */
const stepsMax = 1_000_000;

/** Most parts that an expression may have, and how deep they may be nested. */
const limits = {
  maxAstNodes: 10_000,
  maxDepth: 100,
  maxListElements: 1000,
  maxMapEntries: 1000,
  maxCallArguments: 32,
};

/** Longest expression, in characters. */
const lengthMax = 10_000;

/** What an expression sees. */
export interface ExpressionScope {
  readonly self: unknown;
  readonly oldSelf?: unknown;
}

/** An expression that can be run. */
export interface Expression {
  /** Its type, as far as that is known without running it: `dyn` where it is not. */
  readonly type: string;
  /** True when it asks what the value was before. */
  readonly usesOldSelf: boolean;
  /** @throws Error when it cannot be evaluated */
  run(scope: ExpressionScope): unknown;
}

const require = createRequire(import.meta.url);

/** Loaded with the first expression: most servers have none, and are there the sooner. */
const library = (): typeof import("@marcbachmann/cel-js") => require("@marcbachmann/cel-js");

let known: Environment | undefined;

function environment(): Environment {
  if (known === undefined) {
    const options = { enableOptionalTypes: true, homogeneousAggregateLiterals: false, limits };
    known = registerFunctions(new (library().Environment)(options))
      .registerFunction("string.matchesRe2(string): bool", matchesRe2)
      .registerVariable("self", "dyn")
      .registerVariable("oldSelf", "dyn");
  }
  return known;
}

/** The value as expressions see one that need not be there. */
export function optionalValue(value: unknown): Optional {
  const { Optional } = library();
  return value === undefined ? Optional.none() : Optional.of(value);
}

const compiled = new Map<string, Expression | Error>();

/** Most expressions that are kept. */
const expressionsMax = 2000;

/** The expression, or why it is none. */
export function compileExpression(text: string): Expression | Error {
  let made = compiled.get(text);
  if (made === undefined) {
    made = compile(text);
    if (compiled.size >= expressionsMax) compiled.clear();
    compiled.set(text, made);
  }
  return made;
}

function compile(text: string): Expression | Error {
  if (text.length > lengthMax) return new Error(`it is longer than ${lengthMax} characters`);
  try {
    const parsed = environment().parse(text);
    const bound = { steps: 0 };
    const usesOldSelf = prepare(parsed.ast, bound);
    const { valid, type = "dyn", error } = parsed.check();
    if (!valid) return firstLine(error);
    return {
      type,
      usesOldSelf,
      run(scope) {
        bound.steps = 0;
        return parsed({ ...scope });
      },
    };
  } catch (error) {
    return firstLine(error);
  }
}

function firstLine(error: unknown): Error {
  const text = error instanceof Error ? error.message : String(error);
  return new Error(text.split("\n")[0], { cause: error });
}

interface Prepared {
  readonly op?: string;
  readonly args?: unknown;
  readonly meta?: { readonly alternate?: unknown; readonly macro?: unknown };
}

/** Puts the bound into every comprehension, and our patterns in the place of the library's. Tells whether oldSelf is asked for. */
function prepare(root: ASTNode, bound: { steps: number }): boolean {
  let usesOldSelf = false;
  const seen = new Set<unknown>();
  const waiting: unknown[] = [root];
  while (waiting.length > 0) {
    const node = waiting.pop();
    if (typeof node !== "object" || node === null || seen.has(node)) continue;
    seen.add(node);
    const { op, args, meta } = node as Prepared;
    if (op === "id" && args === "oldSelf") usesOldSelf = true;
    if (op === "rcall" && Array.isArray(args) && args[0] === "matches") args[0] = "matchesRe2";
    if (op === "comprehension") boundSteps(args as Comprehension, bound);
    waiting.push(...Object.values(node), args, meta?.alternate, meta?.macro);
  }
  return usesOldSelf;
}

interface Comprehension {
  condition?: (accumulated: unknown) => boolean;
}

function boundSteps(comprehension: Comprehension, bound: { steps: number }): void {
  const { condition } = comprehension;
  comprehension.condition = (accumulated) => {
    if (++bound.steps > stepsMax) throw new Error("operation cancelled: actual cost limit exceeded");
    return condition === undefined || condition(accumulated);
  };
}

function matchesRe2(text: string, pattern: string): boolean {
  const problem = patternProblem(pattern);
  if (problem !== undefined) throw new Error(problem);
  return patternMatches(pattern, text);
}
