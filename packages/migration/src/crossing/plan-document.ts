/** The document of a plan: its form, its JSON Schema, and how a file of it is read. */
import type { CrossingDirection } from "./crossing-subject.ts";
import type { Finding } from "./finding.ts";

/** One step. */
export interface PlanStep {
  readonly name: string;
  readonly nodeName?: string;
  /** Which batch of nodes it belongs to, from 1: the nodes of a batch cross at the same time. */
  readonly batch?: number;
  /** What holds before it begins. */
  readonly before: string;
  /** Exactly what it changes, one change each; empty for a step that only waits. */
  readonly changes: readonly string[];
  /** What holds once it is done. */
  readonly after: string;
  /** An estimate: how long it takes where no budget and no provider holds it up. */
  readonly expectedSeconds: number;
}

/** A node that is to cross. */
export interface PlanNode {
  readonly name: string;
  readonly uid: string;
  readonly batch: number;
}

/** The plan of one plugin in one cluster. */
export interface CrossingPlan {
  readonly version: 1;
  /** UID of the namespace kube-system. */
  readonly clusterId: string;
  /** In-tree name. */
  readonly plugin: string;
  readonly direction: CrossingDirection;
  /** RFC 3339. */
  readonly madeAt: string;
  /** Nodes that cross at the same time at most. */
  readonly maxUnavailable: number;
  /** Who cordons, drains and restarts the nodes: the crossing, or the platform by itself, as OpenShift and Gardener do. */
  readonly nodesRolledBy: "crossing" | "platform";
  /** The nodes in the order in which they cross. */
  readonly nodes: readonly PlanNode[];
  readonly steps: readonly PlanStep[];
  /** Of all steps, where the nodes of a batch cross at the same time. */
  readonly expectedSeconds: number;
  /** Blockers first, PodDisruptionBudgets among them. */
  readonly findings: readonly Finding[];
}

/** The plan cannot be used with this cluster, or is none. */
export class PlanError extends Error {
  override readonly name = "PlanError";
}

const text = { type: "string" } as const;
const count = { type: "integer", minimum: 1 } as const;
const seconds = { type: "number", minimum: 0 } as const;
const objectOf = (properties: Readonly<Record<string, object>>, optional: readonly string[] = []) => ({
  type: "object",
  additionalProperties: false,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  properties,
});

/** JSON Schema (2020-12) of a plan. */
export const planSchema: object = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "longshore plan",
  ...objectOf({
    version: { const: 1 },
    clusterId: text,
    plugin: text,
    direction: { enum: ["migrate", "rollback"] },
    madeAt: text,
    maxUnavailable: count,
    nodesRolledBy: { enum: ["crossing", "platform"] },
    nodes: { type: "array", items: objectOf({ name: text, uid: text, batch: count }) },
    steps: {
      type: "array",
      items: objectOf(
        {
          name: text,
          nodeName: text,
          batch: count,
          before: text,
          changes: { type: "array", items: text },
          after: text,
          expectedSeconds: seconds,
        },
        ["nodeName", "batch"],
      ),
    },
    expectedSeconds: seconds,
    findings: {
      type: "array",
      items: objectOf(
        { severity: { enum: ["blocker", "warning"] }, object: text, field: text, reason: text, remedy: text },
        ["field"],
      ),
    },
  }),
};

/** The plan that a document holds. @throws PlanError naming the field that is not that of a plan of version 1 */
export function readPlan(value: unknown): CrossingPlan {
  const wrong = wrongField(value);
  if (wrong === undefined) return value as CrossingPlan;
  throw new PlanError(`it is not a plan of version 1 (${wrong}): write a new one with \`longshore plan\``);
}

type Members = Readonly<Record<string, unknown>>;
type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) > 0;
const isNumber: Check = (value) => typeof value === "number" && value >= 0;
const oneOf =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value);
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const has =
  (fields: Readonly<Record<string, Check>>): Check =>
  (value) =>
    typeof value === "object" &&
    value !== null &&
    Object.entries(fields).every(([name, check]) => check((value as Members)[name]));

const planFields: Readonly<Record<keyof CrossingPlan, Check>> = {
  version: oneOf(1),
  clusterId: isText,
  plugin: isText,
  direction: oneOf("migrate", "rollback"),
  madeAt: isText,
  maxUnavailable: isCount,
  nodesRolledBy: oneOf("crossing", "platform"),
  nodes: listOf(has({ name: isText, uid: isText, batch: isCount })),
  steps: listOf(
    has({
      name: isText,
      nodeName: optional(isText),
      batch: optional(isCount),
      before: isText,
      changes: listOf(isText),
      after: isText,
      expectedSeconds: isNumber,
    }),
  ),
  expectedSeconds: isNumber,
  findings: listOf(
    has({
      severity: oneOf("blocker", "warning"),
      object: isText,
      field: optional(isText),
      reason: isText,
      remedy: isText,
    }),
  ),
};

function wrongField(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return "it is no object";
  const plan = value as Members;
  const wrong = Object.entries(planFields).find(([name, check]) => !check(plan[name]));
  return wrong === undefined ? undefined : `field ${wrong[0]}`;
}
