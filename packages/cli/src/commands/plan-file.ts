/** Plans in files: one YAML document for each plugin. */
import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { CrossingPlan } from "@longshore/migration";

/** The plans in the file, in its order. @param named what names the file, for errors @throws PlanError */
export async function readPlanFile(named: string, file: string): Promise<readonly CrossingPlan[]> {
  const { PlanError, readPlan } = await import("@longshore/migration");
  const { loadAll } = await import("js-yaml");
  try {
    const plans = loadAll(await readFile(resolve(file), "utf8")).map(readPlan);
    if (plans.length === 0) throw new PlanError("there is no plan in it");
    const twice = plans.find(({ plugin }, at) => plans.findIndex((other) => other.plugin === plugin) !== at);
    if (twice !== undefined) throw new PlanError(`plugin: ${twice.plugin} is planned twice`);
    if (plans.some(({ direction }) => direction !== plans[0]?.direction)) {
      throw new PlanError("direction: plans of one file go the same way");
    }
    return plans;
  } catch (error) {
    throw new PlanError(`${named} ${file}`, { cause: error });
  }
}

/** Writes the plans: as JSON, of one plan only, where the name says so; as YAML otherwise. */
export async function writePlanFile(file: string, plans: readonly CrossingPlan[]): Promise<void> {
  const { dump } = await import("js-yaml");
  const [plan] = plans;
  const text =
    file.endsWith(".json") && plans.length === 1
      ? `${JSON.stringify(plan, undefined, 2)}\n`
      : plans.map((each) => dump(each, { lineWidth: -1, noRefs: true })).join("---\n");
  await writeFile(resolve(file), text);
}
