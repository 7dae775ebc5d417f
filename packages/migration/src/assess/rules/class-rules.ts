/** StorageClasses of in-tree provisioners: whether they can be translated, and what becomes of their parameters. */
import type { StorageClass, Stored } from "@longshore/kube";
import { explain, type TraceStep } from "@longshore/translation";
import { type AssessView, gatesOf, stateOf } from "../assess-view.ts";
import { type Becomes, found, type RuleFinding } from "../assessment-finding.ts";
import { parameterRefusal } from "../driver-facts.ts";
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
    const severity = state === "redirected" ? "error" : "warning";
    let becomes: readonly Becomes[] = [];
    const fault = translationFault(() => {
      becomes = sides(storageClass, gates.driverName);
    });
    if (fault !== undefined) return [found("LS1301", { object, severity, ...fault })];
    const refused = becomes
      .filter(({ fate }) => fate === "rejected")
      .map(({ field, to, why }) =>
        found("LS1303", {
          object,
          severity,
          field,
          evidence: `it becomes ${to}: ${why} (${gates.driverName})`,
        }),
      );
    // Every class gets another provisioner.
    const changes = becomes
      .filter(({ field, fate }) => fate !== "kept" && field !== "provisioner")
      .map(changeText);
    if (changes.length === 0) return refused;
    const evidence = changes.join("; ");
    return [...refused, found("LS1302", { object, field: "parameters", evidence, becomes })];
  });
}

/** The class as it is beside the class that the driver is given, in the order of its parameters. */
function sides(storageClass: Stored<StorageClass>, driver: string): Becomes[] {
  type Translated = Parameters<typeof explain.translateInTreeStorageClassToCSI>[1];
  const { steps } = explain.translateInTreeStorageClassToCSI(
    storageClass.provisioner,
    storageClass as Translated,
  );
  const provisioner: Becomes = {
    ...{ field: "provisioner", value: storageClass.provisioner, to: "provisioner", toValue: driver },
    ...{ fate: "renamed", why: "the driver that takes this plugin over" },
  };
  const others = steps.filter(({ from }) => from !== "provisioner");
  return [provisioner, ...others.map((step) => side(storageClass, step, driver))];
}

function side(storageClass: Stored<StorageClass>, step: TraceStep, driver: string): Becomes {
  const { from, to, value, why } = step;
  const name = /^parameters\[(.*)\]$/.exec(from)?.[1];
  const before = name === undefined ? undefined : storageClass.parameters?.[name];
  const after = value === undefined ? undefined : [value].flat().map(String).join(",");
  const written = /^parameters\[(.*)\]$/.exec(to)?.[1];
  const refusal = written === undefined ? undefined : parameterRefusal(driver, written, after ?? "");
  return {
    field: from,
    ...(before === undefined ? {} : { value: before }),
    to,
    ...(after === undefined || to === "" ? {} : { toValue: after }),
    fate: refusal === undefined ? fateOf(step) : "rejected",
    why: refusal ?? why,
  };
}

function fateOf({ from, to }: TraceStep): Becomes["fate"] {
  if (to === "") return "dropped";
  if (from === "") return "added";
  if (from === to) return "kept";
  return to.startsWith("allowedTopologies") && from.startsWith("parameters") ? "moved" : "renamed";
}

function changeText({ field, to, toValue, fate, why }: Becomes): string {
  const written = toValue === undefined ? "" : ` = ${toValue}`;
  switch (fate) {
    case "dropped":
      return `${field} is dropped: ${why}`;
    case "added":
      return `${to}${written} is added: ${why}`;
    case "rejected":
      return `${field} becomes ${to}${written} and is rejected: ${why}`;
    default:
      return `${field} ${fate === "moved" ? "moves to" : "becomes"} ${to}${written}`;
  }
}
