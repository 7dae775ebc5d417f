/**
 * Expressions of validation rules: compiled once, and run with a bound on what they may cost. Every operation is paid
 * for before it is done, so that none of them can make the server stand still or take its memory; patterns are those
 * of RE2, which no text can slow down.
 */
import { createRequire } from "node:module";
import type { Environment, Optional } from "@marcbachmann/cel-js";
import { CelCostError, CostMeter } from "./cel-cost.ts";
import { ourNames, registerFunctions } from "./cel-functions.ts";
import {
  addPrices,
  calledName,
  hasVariables,
  type Metering,
  nodesOf,
  releaseValues,
  unpaidPart,
} from "./cel-metering.ts";
import { flattenTypes } from "./cel-types.ts";

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

/** What an expression sees: the values of its variables. */
export type ExpressionScope = Readonly<Record<string, unknown>>;

/** What rules of custom resources see. */
const ruleVariables: readonly string[] = ["self", "oldSelf"];

/** What conditions of webhooks see (apiserver plugin/webhook/matchconditions). */
export const conditionVariables: readonly string[] = ["object", "oldObject", "request"];

/** An expression that can be run. */
export interface Expression {
  /** Its type, as far as that is known without running it: `dyn` where it is not. */
  readonly type: string;
  /** True when it asks what the value was before. */
  readonly usesOldSelf: boolean;
  /** @throws CelCostError when it costs more than the meter allows, Error when it cannot be evaluated */
  run(scope: ExpressionScope, meter: CostMeter): unknown;
}

const require = createRequire(import.meta.url);

/** Loaded with the first expression: most servers have none, and are there the sooner. */
const library = (): typeof import("@marcbachmann/cel-js") => require("@marcbachmann/cel-js");

const environments = new Map<readonly string[], Environment>();

/** Expressions are not run within one another: what is under way is one for all. */
const metering: Metering = { meter: new CostMeter(0) };

function environment(variables: readonly string[]): Environment {
  let known = environments.get(variables);
  if (known === undefined) {
    const options = { enableOptionalTypes: true, homogeneousAggregateLiterals: false, limits };
    known = registerFunctions(new (library().Environment)(options), metering);
    for (const variable of variables) known = known.registerVariable(variable, "dyn");
    flattenTypes(evaluatorOf(known, variables[0] as string));
    environments.set(variables, known);
  }
  return known;
}

/** The evaluator of an environment. The library passes it only to the nodes of an expression. */
function evaluatorOf(of: Environment, variable: string): unknown {
  const parsed = of.parse(variable);
  let found: unknown;
  Object.assign(parsed.ast, { checkedType: "dyn", evaluate: (evaluator: unknown) => (found = evaluator) });
  parsed({ [variable]: null });
  return found;
}

/** The value as expressions see one that need not be there. */
export function optionalValue(value: unknown): Optional {
  const { Optional } = library();
  return value === undefined ? Optional.none() : Optional.of(value);
}

const compiled = new Map<string, Expression | Error>();

/** Most characters of all expressions that are kept: what they are compiled to takes some hundred times as much. */
const keptMax = 300_000;
let keptLength = 0;

/** The expression, or why it is none. @param variables that it may use; the same list means the same each time */
export function compileExpression(text: string, variables = ruleVariables): Expression | Error {
  const key = variables === ruleVariables ? text : `${variables.join()}: ${text}`;
  let made = compiled.get(key);
  if (made === undefined) {
    made = compile(text, variables);
    // Not kept: one text of any length would push out all others.
    if (text.length > lengthMax) return made;
    compiled.set(key, made);
    keptLength += key.length;
    for (const oldest of compiled.keys()) {
      if (keptLength <= keptMax) break;
      compiled.delete(oldest);
      keptLength -= oldest.length;
    }
  }
  return made;
}

function compile(text: string, variables: readonly string[]): Expression | Error {
  if (text.length > lengthMax) return new Error(`it is longer than ${lengthMax} characters`);
  try {
    const parsed = environment(variables).parse(text);
    const nodes = nodesOf(parsed.ast);
    const unpaid = unpaidPart(nodes);
    if (unpaid !== undefined) return new Error(unpaid);
    for (const node of nodes) {
      const ours = ourNames.get(calledName(node) ?? "");
      if (ours !== undefined) (node.args as unknown[])[0] = ours;
    }
    const { valid, type = "dyn", error } = parsed.check();
    if (!valid) return firstLine(error);
    addPrices(nodes, metering);
    const withVariables = nodes.filter(hasVariables);
    return {
      type,
      usesOldSelf: nodes.some(({ op, args }) => op === "id" && args === "oldSelf"),
      run(scope, meter) {
        metering.meter = meter;
        try {
          const value: unknown = parsed({ ...scope });
          // The expression may have caught the error, and be none the wiser.
          if (meter.isExceeded) throw new CelCostError();
          return value;
        } finally {
          releaseValues(withVariables);
        }
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
