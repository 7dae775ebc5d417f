/** What a container asks for and may have at most (kubernetes pkg/apis/core/validation ValidateResourceRequirements, v1/helper). */
import { parseQuantity, type Quantity } from "@longshore/kube/basics";
import { type FieldProblem, forbiddenValue, invalidValue, requiredValue } from "../../api/errors.ts";
import { qualifiedNameProblems } from "../../api/names.ts";
import { spendTime } from "../../api/work-time.ts";
import type { Loose } from "./shaping.ts";

const ofContainers: ReadonlySet<string> = new Set(["cpu", "memory", "ephemeral-storage"]);

/** Further names without a prefix that the API knows, for quotas. */
const ofOthers: ReadonlySet<string> = new Set(
  "pods services replicationcontrollers resourcequotas secrets configmaps persistentvolumeclaims storage requests.cpu requests.memory requests.storage requests.ephemeral-storage limits.cpu limits.memory limits.ephemeral-storage services.nodeports services.loadbalancers".split(
    " ",
  ),
);

const isHugePages = (name: string) => name.startsWith("hugepages-");
const isNative = (name: string) => !name.includes("/") || name.includes("kubernetes.io/");

/** A resource that some node offers: its name must also be one behind `requests.`, for quotas. */
function isExtended(name: string): boolean {
  if (isNative(name) || name.startsWith("requests.")) return false;
  return qualifiedNameProblems(`requests.${name}`).length === 0;
}

/** Whether more of it can be promised than there is: of what nodes count in whole pieces, not. */
const mayBeOvercommitted = (name: string) => isNative(name) && !isHugePages(name);

function nameProblems(name: string, at: string): FieldProblem[] {
  const problems = qualifiedNameProblems(name).map((why) => invalidValue(at, name, why));
  const isOfContainers = ofContainers.has(name) || isHugePages(name);
  if (!name.includes("/")) {
    if (isOfContainers) return problems;
    if (problems.length === 0 && !ofOthers.has(name)) {
      problems.push(invalidValue(at, name, "must be a standard resource type or fully qualified"));
    }
    return [...problems, invalidValue(at, name, "must be a standard resource for containers")];
  }
  if (isNative(name) || isExtended(name)) return problems;
  return [...problems, invalidValue(at, name, "doesn't follow extended resource name standard")];
}

function amountProblems(map: Loose, at: string): FieldProblem[] {
  return Object.entries(map).flatMap(([name, value]) => {
    spendTime();
    const field = `${at}[${name}]`;
    const quantity = parseQuantity(String(value));
    const problems = nameProblems(name, field);
    if (quantity.sign() < 0) {
      problems.push(invalidValue(field, String(value), "must be greater than or equal to 0"));
    }
    if (isExtended(name) && !isWhole(quantity)) {
      problems.push(invalidValue(field, String(value), "must be an integer"));
    }
    return problems;
  });
}

const isWhole = (quantity: Quantity) => quantity.milliValue() % 1000n === 0n;

/** Problems of `resources`, in the order of the reference. */
export function resourceProblems(resources: Loose | undefined, at: string): FieldProblem[] {
  const { limits = {}, requests = {} } = resources ?? {};
  const problems = amountProblems(limits, `${at}.limits`);
  for (const [name, value] of Object.entries(requests as Loose)) {
    spendTime();
    problems.push(...amountProblems({ [name]: value }, `${at}.requests`));
    const limit = limits[name];
    const isLoose = mayBeOvercommitted(name);
    if (limit === undefined) {
      if (!isLoose) {
        problems.push(requiredValue(`${at}.limits`, "Limit must be set for non overcommitable resources"));
      }
      continue;
    }
    const asked = parseQuantity(String(value));
    const order = asked.compare(parseQuantity(String(limit)));
    if (order !== 0 && !isLoose) {
      problems.push(invalidValue(`${at}.requests`, asked.toString(), `must be equal to ${name} limit`));
    } else if (order > 0) {
      const why = `must be less than or equal to ${name} limit`;
      problems.push(invalidValue(`${at}.requests`, asked.toString(), why));
    }
  }
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  if (names.some(isHugePages) && !names.some((name) => name === "cpu" || name === "memory")) {
    problems.push(forbiddenValue(at, "HugePages require cpu or memory"));
  }
  return problems;
}
