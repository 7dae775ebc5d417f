/** What every answer must keep; looked for in all calls of the run, so these come last. */
import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { CheckFailure } from "../check-result.ts";
import { secretValuesOf } from "../driver-secrets.ts";
import type { ObservedRule } from "../observations.ts";

const someSecret: NonNullable<Check["needs"]>[number] = ({ options }) =>
  secretValuesOf(options.secrets).length > 0 ? undefined : "no secrets are given (`secrets`)";

function mustKeep(context: CheckContext, rule: ObservedRule): void {
  const problems = context.observations.problemsOf(rule);
  if (problems.length > 0) throw new CheckFailure(problems.join("; "));
}

/** The checks over all calls. */
export const protocolChecks: readonly Check[] = [
  {
    id: "protocol.status-message",
    sentence: "a status other than OK has a message for people",
    spec: "Error Scheme",
    async run(context) {
      if (context.observations.refusals === 0) context.skip("no call of this run was refused");
      mustKeep(context, "statusMessage");
    },
  },
  {
    id: "protocol.status-details",
    sentence: "a status has no details: its code and its message say all",
    spec: "Error Scheme",
    async run(context) {
      if (context.observations.refusals === 0) context.skip("no call of this run was refused");
      mustKeep(context, "statusDetails");
    },
  },
  {
    id: "protocol.secrets-in-answers",
    sentence: "no secret is returned in a status message, a context or any other answer",
    spec: "Secrets Requirements",
    needs: [someSecret],
    async run(context) {
      mustKeep(context, "secrets");
    },
  },
  {
    id: "protocol.string-size",
    sentence: "strings in answers have at most 128 bytes, ids of nodes 256",
    spec: "Size Limits",
    async run(context) {
      if (context.observations.answers === 0) context.skip("no call of this run was answered");
      mustKeep(context, "strings");
    },
  },
  {
    id: "protocol.map-size",
    sentence: "maps in answers have at most 4 KiB",
    spec: "Size Limits",
    async run(context) {
      if (context.observations.answers === 0) context.skip("no call of this run was answered");
      mustKeep(context, "maps");
    },
  },
  {
    id: "protocol.negative-numbers",
    sentence: "sizes and counts in answers are not negative",
    spec: "Interface",
    async run(context) {
      if (context.observations.answers === 0) context.skip("no call of this run was answered");
      mustKeep(context, "numbers");
    },
  },
];
