/** Conditions of webhooks in CEL (`matchConditions`; apiserver plugin/webhook/matchconditions/matcher.go). */
import { forbidden } from "../api/errors.ts";
import { spendTime } from "../api/work-time.ts";
import { CostMeter } from "../custom/cel-cost.ts";
import { type ReviewQuestion, reviewRequest } from "./admission-review.ts";
import type { Webhook } from "./webhook.ts";

/** Most that all conditions of a webhook may cost for one request (RuntimeCELCostBudgetMatchConditions). */
const costMax = 2_500_000;

/**
 * Whether all conditions hold. One that does not, decides; where one cannot be evaluated, the webhook's failure policy does.
 * @throws KubeApiError 403 when one cannot be evaluated and failures are not ignored
 */
export function conditionsHold(webhook: Webhook, question: ReviewQuestion): boolean {
  if (webhook.conditions.length === 0) return true;
  const { object: _, oldObject: _old, ...request } = reviewRequest("", question);
  const scope = {
    object: celValue(question.object ?? null),
    oldObject: celValue(question.old ?? null),
    request: celValue(request),
  };
  const meter = new CostMeter(costMax);
  const problems: string[] = [];
  for (const { name, expression } of webhook.conditions) {
    try {
      if (expression instanceof Error) throw expression;
      const value = expression.run(scope, meter);
      if (value === false) return false;
      if (value !== true) throw new Error("cel evaluated to non-boolean value");
    } catch (error) {
      const why = ((error as Error).message.split("\n")[0] ?? "").slice(0, 500);
      problems.push(`match condition ${JSON.stringify(name)}: ${why}`);
      if (meter.isExceeded) break;
    }
  }
  spendTime(Math.ceil(meter.used));
  if (problems.length === 0) return true;
  if (webhook.ignoresFailures) return false;
  const { group, resource } = question.requested;
  throw forbidden({ group, resource }, question.name, problems.join(", "));
}

/** A value of JSON as expressions see it: a Map, in which a member is found at once and none is inherited; integers. */
function celValue(value: unknown): unknown {
  if (typeof value === "number") return Number.isInteger(value) ? BigInt(value) : value;
  if (typeof value !== "object" || value === null) return value;
  spendTime();
  if (Array.isArray(value)) return value.map(celValue);
  return new Map(
    Object.entries(value).flatMap(([key, member]) =>
      member === undefined ? [] : [[key, celValue(member)] as const],
    ),
  );
}
