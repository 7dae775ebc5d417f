/** The rights of a cycle's component, as a deployment renders them, and each of them alone. */
import {
  type AccessRule,
  accessRules,
  accountOf,
  type Grant,
  type Grantee,
  granteesOf,
  planDeployment,
  renderAccess,
  rulesOf,
} from "@longshore/deployment";
import type { KubeObject } from "@longshore/kube";
import { type AccessCycle, accessNames } from "./access-world.ts";

/** One verb on one resource, of one rule. */
export interface Right {
  /** The place of the rule among those of the component. */
  readonly index: number;
  readonly rule: AccessRule;
  readonly verb: AccessRule["verbs"][number];
}

const planOf = ({ deploy }: AccessCycle) =>
  planDeployment({
    name: accessNames.driver,
    image: "registry.example.com/driver:v1",
    namespace: accessNames.namespace,
    secretNamespaces: [accessNames.secretNamespace],
    controller: "deployment",
    ...deploy,
  });

/** The component and its account. A component that no deployment has gets one like the others'. */
export function granteeOf(cycle: AccessCycle): Grantee {
  const plan = planOf(cycle);
  const found = granteesOf(plan).find(({ component }) => component === cycle.component);
  return found ?? { component: cycle.component, part: "controller", account: accountOf(plan, "controller") };
}

/** The rules of the component. */
export function rulesOfCycle(cycle: AccessCycle): readonly AccessRule[] {
  const plan = planOf(cycle);
  const grantee = granteeOf(cycle);
  return granteesOf(plan).some(({ component }) => component === cycle.component)
    ? rulesOf(plan, grantee)
    : accessRules(cycle.component, plan.needs);
}

/** Every single right of the component. */
export function rightsOf(cycle: AccessCycle): readonly Right[] {
  return rulesOfCycle(cycle).flatMap((rule, index) => rule.verbs.map((verb) => ({ index, rule, verb })));
}

/** What a right is called in a report. */
export function rightText({ rule: { group, resource, scope }, verb }: Right): string {
  return `${verb} ${resource}${group === "" ? "" : `.${group}`}${scope === undefined ? "" : ` (${scope})`}`;
}

/** Roles and bindings of the component, with all of its rights but one. */
export function rolesWithout(cycle: AccessCycle, taken: Right | undefined): readonly KubeObject[] {
  const rules = rulesOfCycle(cycle)
    .map((rule, index) => (index === taken?.index ? without(rule, taken.verb) : rule))
    .filter(({ verbs }) => verbs.length > 0);
  const grant: Grant = { grantee: granteeOf(cycle), rules };
  return renderAccess(planOf(cycle), [grant]).map(({ object }) => object);
}

function without(rule: AccessRule, taken: Right["verb"]): AccessRule {
  return { ...rule, verbs: rule.verbs.filter((verb) => verb !== taken) };
}
