/** One thing that an assessment has found. */
import { type Code, findingCode, type Severity } from "./finding-codes.ts";

/** To which version of the cluster a finding belongs: the one it has, the one it is to get, or both. */
export type When = "now" | "target" | "both";

/** One field of an object beside what it becomes. */
export interface Becomes {
  /** Path of the field as it is; "" where it is added. */
  readonly field: string;
  readonly value?: string;
  /** Path of the field that it becomes; "" where it is dropped. */
  readonly to: string;
  readonly toValue?: string;
  readonly fate: "kept" | "renamed" | "moved" | "added" | "dropped" | "rejected";
  /** The rule, in one phrase. */
  readonly why: string;
}

/** What a rule reports. */
export interface RuleFinding {
  readonly code: Code;
  readonly severity: Severity;
  /** e.g. `PersistentVolume pv-1`, `Pod default/web-0`. */
  readonly object: string;
  /** The field of the object that shows it, where it is one. */
  readonly field?: string;
  /** The values that were seen, in a sentence. */
  readonly evidence: string;
  /** What to do about this object, with names and commands. */
  readonly remedy: string;
  /** The object beside what it becomes, field by field, where the finding is about that. */
  readonly becomes?: readonly Becomes[];
}

/** A finding of an assessment. */
export interface AssessmentFinding extends RuleFinding {
  readonly when: When;
}

/** What a rule gives of a finding; the table of codes has the rest. */
interface FindingParts {
  readonly object: string;
  readonly field?: string;
  readonly evidence: string;
  /** Default: the remedy of the code. */
  readonly remedy?: string;
  /** Default: the severity of the code. */
  readonly severity?: Severity;
  readonly becomes?: readonly Becomes[];
}

/** A finding of this code. */
export function found(code: Code, { severity, remedy, ...parts }: FindingParts): RuleFinding {
  const entry = findingCode(code);
  return {
    code,
    ...parts,
    severity: severity ?? entry?.severity ?? "warning",
    remedy: remedy ?? entry?.remedy ?? "",
  };
}
