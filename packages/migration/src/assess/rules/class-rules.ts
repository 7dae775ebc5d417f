/** StorageClasses of in-tree provisioners: whether they can be translated, and what becomes of their parameters. */
import type { StorageClass, Stored } from "@longshore/kube";
import { explain, type TraceStep } from "@longshore/translation";
import { type AssessView, gatesOf, stateOf } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";
import { subjectOf } from "../inventory.ts";
import { translationFault } from "../translation-fault.ts";

/** Findings about StorageClasses. */
export function classRules(view: AssessView): RuleFinding[] {
  return view.inventory.classes.flatMap((storageClass): RuleFinding[] => {
    const gates = gatesOf(storageClass.provisioner);
    if (gates === undefined) return [];
    const state = stateOf(view, gates);
    if (state === "gone") return [];
    const object = subjectOf("StorageClass", storageClass);
    let steps: readonly TraceStep[] = [];
    const fault = translationFault(() => {
      steps = explainedSteps(storageClass);
    });
    if (fault !== undefined) {
      return [found("LS1301", { object, severity: state === "redirected" ? "error" : "warning", ...fault })];
    }
    const changes = steps.filter(isChange).map(changeText);
    return changes.length === 0
      ? []
      : [found("LS1302", { object, field: "parameters", evidence: changes.join("; ") })];
  });
}

function explainedSteps(storageClass: Stored<StorageClass>): readonly TraceStep[] {
  type Translated = Parameters<typeof explain.translateInTreeStorageClassToCSI>[1];
  return explain.translateInTreeStorageClassToCSI(storageClass.provisioner, storageClass as Translated).steps;
}

const isChange = ({ from, to }: TraceStep): boolean => from !== to;

function changeText({ from, to, value, why }: TraceStep): string {
  if (to === "") return `${from} is dropped: ${why}`;
  const written =
    value === undefined ? "" : ` = ${typeof value === "object" ? value.join(",") : String(value)}`;
  return from === "" ? `${to}${written} is added: ${why}` : `${from} becomes ${to}${written}`;
}
