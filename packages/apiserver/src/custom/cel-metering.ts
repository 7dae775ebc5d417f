/**
 * Puts prices into a parsed expression: each of its parts pays before it is evaluated, and each operation when its
 * operands are known. This reaches into the syntax tree of the library, which is therefore of one exact version; a
 * part of a kind that is not known here makes the expression invalid, so that nothing goes unpaid.
 */
import type { ASTNode } from "@marcbachmann/cel-js";
import {
  CelCostError,
  type CostMeter,
  chargeOperator,
  chargeRange,
  functionCosts,
  methodCosts,
} from "./cel-cost.ts";

/** The meter of the evaluation under way. */
export interface Metering {
  meter: CostMeter;
}

type Evaluate = (evaluator: unknown, node: Node, context: unknown) => unknown;
type Handle = (...args: unknown[]) => unknown;

/** A part of an expression, as the library has it. */
interface Node {
  readonly op: string;
  args: unknown;
  readonly input?: string;
  readonly meta: {
    readonly evaluate?: Evaluate;
    readonly alternate?: Node;
    readonly macro?: { readonly evaluate: Evaluate; readonly bindCtx?: Variables };
  };
  evaluate: Evaluate;
  handle?: Handle;
}

/** The variables of a comprehension, which its part of the expression keeps from one evaluation to the next. */
interface Variables {
  iterValue?: unknown;
  accuValue?: unknown;
  reuse(outer: unknown): unknown;
}

interface Comprehension {
  readonly iterCtx?: Variables;
  readonly kind?: string;
  readonly step: Node;
  condition?: (accumulated: unknown) => boolean;
}

/** The cost of a single node. Nodes that are free in Kubernetes cost a little: they take time here. */
const nodeCosts: ReadonlyMap<string, number> = new Map([
  ["value", 0.25],
  ["?:", 0.25],
  ["||", 0.25],
  ["&&", 0.25],
  ["accuValue", 0.25],
  ["id", 1],
  [".", 1],
  [".?", 1],
  ["[]", 1],
  ["[?]", 1],
  ["!_", 1],
  ["-_", 1],
  ["call", 0],
  ["rcall", 0],
  ["comprehension", 2],
  ["accuInc", 2],
  ["accuPush", 11],
  ["list", 10],
  ["map", 30],
]);

const operators: ReadonlySet<string> = new Set("!= == in + - * / % < <= > >=".split(" "));

/** Each turn of a comprehension, before what is asked of the item. */
const turnCost = 2;

/** An error that is made, and caught by what is around it. */
const errorCost = (node: Node): number => 60 + (node.input?.length ?? 0) / 10;

/** The parts of an expression that has been parsed, those that macros stand for among them. */
export function nodesOf(root: ASTNode): readonly Node[] {
  const seen = new Set<unknown>();
  const nodes: Node[] = [];
  const waiting: unknown[] = [root];
  while (waiting.length > 0) {
    const one = waiting.pop();
    if (typeof one !== "object" || one === null || seen.has(one)) continue;
    seen.add(one);
    const { op, args, meta } = one as Partial<Node>;
    if (typeof op === "string" && meta !== undefined) nodes.push(one as Node);
    waiting.push(...Object.values(one), args, meta?.alternate, meta?.macro);
  }
  return nodes;
}

/** The name of the function that the part calls, or undefined. */
export function calledName({ op, args }: Node): string | undefined {
  return (op === "call" || op === "rcall") && Array.isArray(args) ? (args[0] as string) : undefined;
}

/** Why the parts cannot be paid for, or undefined. */
export function unpaidPart(nodes: readonly Node[]): string | undefined {
  for (const node of nodes) {
    if (node.meta.alternate !== undefined || node.meta.macro !== undefined) continue;
    const name = calledName(node);
    const costs = node.op === "call" ? functionCosts : methodCosts;
    if (name !== undefined && !costs.has(name)) return `undeclared reference to '${name}'`;
    if (!nodeCosts.has(node.op) && !operators.has(node.op)) return `operator ${node.op} is not known`;
  }
  return undefined;
}

/** Makes the parts pay. To be called when the types of the expression have been checked. */
export function addPrices(nodes: readonly Node[], metering: Metering): void {
  for (const node of nodes) priceOperation(node, metering);
  for (const node of nodes) priceNode(node, metering);
  for (const { op, args } of nodes) {
    if (op === "map") for (const [key] of args as readonly (readonly [Node, Node])[]) onlyScalar(key);
  }
}

/** True when the part has variables. */
export function hasVariables(node: Node): boolean {
  return variablesOf(node) !== undefined;
}

function variablesOf({ op, args, meta }: Node): Variables | undefined {
  return op === "comprehension" ? (args as Comprehension).iterCtx : meta.macro?.bindCtx;
}

/** Drops the values of an evaluation, which the parts would keep until the next one. */
export function releaseValues(nodes: readonly Node[]): void {
  for (const node of nodes) {
    const variables = variablesOf(node);
    if (variables === undefined) continue;
    variables.iterValue = undefined;
    variables.accuValue = undefined;
    variables.reuse(undefined);
  }
}

function priceNode(node: Node, metering: Metering): void {
  const { meta } = node;
  const { alternate, macro } = meta;
  const cost = alternate !== undefined ? 0 : macro !== undefined ? 2 : (nodeCosts.get(node.op) ?? 0);
  const isCaught = catchers.has(node);
  node.evaluate = (evaluator, _node, context) => {
    const { meter } = metering;
    meter.charge(cost);
    if (!isCaught) return run(evaluator, context);
    try {
      return run(evaluator, context);
    } catch (error) {
      if (!(error instanceof CelCostError)) meter.charge(errorCost(node));
      throw error;
    }
  };
  const run = (evaluator: unknown, context: unknown): unknown => {
    if (alternate !== undefined) return alternate.evaluate(evaluator, alternate, context);
    if (macro !== undefined) return macro.evaluate(evaluator, macro as unknown as Node, context);
    return (meta.evaluate as Evaluate)(evaluator, node, context);
  };
}

/** Parts whose errors are caught by those around them. */
const catchers = new WeakSet<Node>();

function priceOperation(node: Node, metering: Metering): void {
  const { op, handle } = node;
  if (op === "comprehension") priceTurns(node.args as Comprehension, metering);
  if (op === "||" || op === "&&") for (const side of node.args as readonly Node[]) catchers.add(side);
  if (handle === undefined) return;
  const charge = chargeOf(node, metering);
  if (charge === undefined) return;
  node.handle = (...args) => {
    charge(args);
    return handle(...args);
  };
}

/** Pays for the operation of the part, of which the arguments are known. */
function chargeOf(node: Node, metering: Metering): ((args: readonly unknown[]) => void) | undefined {
  const { op } = node;
  if (operators.has(op)) {
    return ([a, b]) => {
      if (op === "in" && !Array.isArray(b)) assertScalar(a);
      chargeOperator(metering.meter, op, a, b);
    };
  }
  if (op === "[]") return ([, key]) => assertScalar(key);
  if (op === "[?]") {
    return ([, key]) => {
      assertScalar(key);
      metering.meter.charge(errorCost(node));
    };
  }
  if (op === "comprehension") return ([range]) => chargeRange(metering.meter, range);
  const name = calledName(node);
  if (name === undefined) return undefined;
  const charge = (op === "call" ? functionCosts : methodCosts).get(name);
  return ([args]) => charge?.(metering.meter, args as readonly unknown[]);
}

function priceTurns(comprehension: Comprehension, metering: Metering): void {
  const { condition, kind, step } = comprehension;
  if (kind === "quantifier") catchers.add(step);
  comprehension.condition = (accumulated) => {
    metering.meter.charge(turnCost);
    return condition === undefined || condition(accumulated);
  };
}

/** A list as a key would be written out as text, which may be without end. */
function onlyScalar(key: Node): void {
  const { evaluate } = key;
  key.evaluate = (evaluator, node, context) => {
    const value = evaluate(evaluator, node, context);
    assertScalar(value);
    return value;
  };
}

function assertScalar(key: unknown): void {
  if (typeof key !== "object" || key === null || key instanceof Date) return;
  if (Array.isArray(key) || key instanceof Map || Object.getPrototypeOf(key) === Object.prototype) {
    throw new Error("unsupported key type");
  }
}
