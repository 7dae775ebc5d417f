/** Reading the values of flags. */
import { type Command, Option } from "commander";
import { UsageError } from "./exit.ts";

/** The number that the flag's text stands for. @throws UsageError when it is none from `least` to `most` */
export function wholeNumber(flag: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw new UsageError(`${flag}: "${text}" is not a whole number from ${least} to ${most}`);
}

/** Milliseconds. A number alone is of seconds. */
export function duration(flag: string, text: string): number {
  const factors: Readonly<Record<string, number>> = { ms: 1, s: 1000, "": 1000, m: 60_000, h: 3_600_000 };
  const [, number = "", unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? [];
  const ms = Number(number) * (factors[unit] ?? 1000);
  // A timer takes no more than 2^31 - 1 ms.
  if (number !== "" && ms >= 1 && ms <= 24 * 3_600_000) return ms;
  throw new UsageError(`${flag}: "${text}" is not a duration of up to a day: write 500ms, 30s or 2m`);
}

/** Collects the values of a flag that may be given several times. */
export const repeated = (value: string, before: readonly string[] | undefined): readonly string[] => [
  ...(before ?? []),
  value,
];

/** `-o, --output`: the form of what a verb prints; the first one unless the user says. */
export function formOption(forms: readonly string[]): Option {
  return new Option("-o, --output <form>", "form of what is printed").choices(forms).default(forms[0]);
}

/** `--json [file]`: true without a file and for `-`, which is standard output. */
export function jsonFileOption(description: string): Option {
  return new Option("--json [file]", description).argParser((file) => (file === "-" ? true : file));
}

/**
 * Gives a verb the forms of its output: `-o FORM`, of which the first is the default, and `--json`, which means `-o json`. Its
 * action finds both set, whichever was given.
 */
export function withForms(command: Command, forms: readonly string[]): Command {
  return command
    .addOption(formOption(forms))
    .addOption(new Option("--json", "the same as -o json").implies({ output: "json" }))
    .hook("preAction", (_, verb) => {
      if (verb.getOptionValue("output") === "json") verb.setOptionValue("json", true);
    });
}

/** Whole seconds, none or more; a duration, too. @throws UsageError when it is more than `most` seconds */
export function wholeSeconds(flag: string, text: string, most: number): number {
  const seconds = /^0(s|m|h)?$/.test(text) ? 0 : duration(flag, text) / 1000;
  if (Number.isInteger(seconds) && seconds <= most) return seconds;
  throw new UsageError(`${flag}: "${text}" is not a duration of whole seconds from 0 to ${most} s`);
}
