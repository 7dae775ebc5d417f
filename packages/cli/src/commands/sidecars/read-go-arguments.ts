/** Reads a command line as Go's `flag` does: `-name`, `--name`, `=value` or the next argument, switches without. */
import type { FlagTable } from "./flag-table.ts";
import { FlagValueError } from "./go-values.ts";

/** What a command line says. */
export interface GivenFlags {
  /** Values of the flags that were given, by name; the last counts. */
  readonly values: ReadonlyMap<string, unknown>;
  /** What is not of the table, in its order: flags with two dashes and without a value, and arguments. */
  readonly rest: readonly string[];
}

/** A flag was given wrongly. */
export class FlagError extends Error {
  override readonly name = "FlagError";
}

/** Reads the arguments. @throws FlagError naming the flag, what was given and what would be right */
export function readGoArguments(table: FlagTable, argv: readonly string[]): GivenFlags {
  const values = new Map<string, unknown>();
  const rest: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i] ?? "";
    if (argument === "--") {
      rest.push(...argv.slice(i));
      break;
    }
    const match = /^--?([^-=][^=]*)(?:=([\s\S]*))?$/.exec(argument);
    const name = match?.[1] ?? "";
    const flag = Object.hasOwn(table, name) ? table[name] : undefined;
    if (match === null || flag === undefined) {
      // A single dash before a word is Go's, too; `-h` is everybody's. Without its value its name is looked for.
      rest.push(match !== null && name.length > 1 ? `--${name}` : argument);
      continue;
    }
    let given = match[2];
    if (given === undefined && flag.value === undefined) given = "true";
    if (given === undefined) {
      given = argv[++i];
      if (given === undefined) throw new FlagError(`flag --${name} needs a value: ${flag.value}`);
    }
    try {
      values.set(name, flag.parse(given));
    } catch (error) {
      if (!(error instanceof FlagValueError)) throw error;
      throw new FlagError(`--${name}: "${given}" cannot be: ${error.message}`);
    }
  }
  return { values, rest };
}
