/** Operations that convert volumes to native ones of their driver, or carry them back: each is killed once, and run to its end. */
import { clusterPlugin } from "@longshore/local";
import type { ConversionResult } from "@longshore/migration";
import { convertVolumes, undoVolumes } from "../../carry-volumes.ts";
import { convertInline, undoInline } from "../../inline-conversion.ts";
import { type AdministratorEnv, killedOnce } from "./mortal.ts";
import type { Choice, Operation, Operators } from "./operators.ts";

/** Where the machine of the operators has the journals of all conversions. */
const journals = { journalDir: "/conversions", backupDir: "/backup" } as const;

/** The volumes of a plugin are converted to native ones of its driver, or carried back. */
export const conversion: Operation = (operators, { name, target, isOn, killMs, happens }) => {
  const plugin = operators.pluginAt(target);
  const what = isOn ? "convert" : "undo the conversion of";
  if (plugin === undefined || !happens(`${what} ${plugin}, killed after ${killMs} ms`)) return;
  const carry = isOn ? convertVolumes : undoVolumes;
  const options = { ...journals, plugins: [clusterPlugin(plugin).inTreeName], scaleDown: true };
  changeByRun(operators, plugin, { name, killMs }, (env, signal) => carry(env, options, signal));
};

/** The disks that a template names itself become claims of native volumes, or are named by it again. */
export const inlineConversion: Operation = (operators, { name, isOn, killMs, happens }) => {
  if (!operators.env.plan.volumes.includes("inline")) return;
  const what = isOn ? "convert" : "undo the conversion of";
  if (!happens(`${what} what templates name themselves, killed after ${killMs} ms`)) return;
  const carry = isOn ? convertInline : undoInline;
  changeByRun(operators, "templates", { name, killMs }, (env, signal) =>
    carry(env, { ...journals, parallel: 1 }, { scaleDown: true }, signal),
  );
};

/** A run that dies once and is begun again until it comes to its end; and again after a restore, if it is the last one that was begun of its kind. */
function changeByRun(
  operators: Operators,
  kind: string,
  { name, killMs }: Pick<Choice, "name" | "killMs">,
  carry: (env: AdministratorEnv, signal: AbortSignal) => Promise<ConversionResult>,
): void {
  const run = (draw: string) =>
    killedOnce(operators, draw, operators.machine, killMs, async (env, signal) =>
      expectCarried(await carry(env, signal)),
    );
  const first = run(name);
  operators.change(() => {
    operators.conversions.set(kind, run(`${name} again`));
    return first();
  });
}

/** @throws while something is not carried */
function expectCarried({ failed, left }: ConversionResult): void {
  const [problem] = failed;
  if (problem !== undefined) throw new Error(`${problem.volume}: ${problem.error}`);
  if (left.length > 0) throw new Error(`${left.length} volumes are left`);
}
