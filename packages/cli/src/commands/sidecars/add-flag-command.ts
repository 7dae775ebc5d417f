/** A verb whose flags are a table, read in Go's manner; help and completion see them as any other verb's. */
import { Command, Option } from "commander";
import type { FlagTable, FlagValues } from "./flag-table.ts";
import { FlagError, type GivenFlags, readGoArguments } from "./read-go-arguments.ts";

/** What a command line came to. */
export interface ReadFlags<T extends FlagTable> {
  readonly values: FlagValues<T>;
  /** The flags that were given. */
  readonly given: ReadonlySet<string>;
}

class FlagCommand extends Command {
  readonly #table: FlagTable;
  #given: GivenFlags | undefined;

  constructor(name: string, table: FlagTable) {
    super(name);
    this.#table = table;
    for (const [flagName, flag] of Object.entries(table)) {
      const option = new Option(
        flag.value === undefined ? `--${flagName}` : `--${flagName} <${flag.value}>`,
        flag.help,
      );
      if (flag.deprecated !== undefined) option.hideHelp();
      if (flag.defaultText !== "") option.default(flag.default ?? flag.defaultText, flag.defaultText);
      this.addOption(option);
    }
  }

  override parseOptions(argv: string[]): ReturnType<Command["parseOptions"]> {
    try {
      this.#given = readGoArguments(this.#table, argv);
    } catch (error) {
      if (error instanceof FlagError) this.error(`error: ${error.message}`);
      throw error;
    }
    return super.parseOptions([...this.#given.rest]);
  }

  get given(): ReadonlyMap<string, unknown> {
    return this.#given?.values ?? new Map();
  }
}

/**
 * Adds a verb with these flags to `parent`.
 * @param run is given the values, those not given by default: the reference's with `--compat=reference`
 */
export function addFlagCommand<T extends FlagTable>(
  parent: Command,
  name: string,
  table: T,
  run: (flags: ReadFlags<T>, command: Command) => Promise<void>,
): Command {
  const command = new FlagCommand(name, table);
  command.copyInheritedSettings(parent);
  parent.addCommand(command);
  return command.action(() => run(resolved(table, command.given), command));
}

/** The values of all flags of a table. */
export function resolved<T extends FlagTable>(table: T, given: ReadonlyMap<string, unknown>): ReadFlags<T> {
  const likeReference = given.get("compat") === "reference";
  const values: Record<string, unknown> = {};
  for (const [name, flag] of Object.entries(table)) {
    const fallback =
      likeReference && flag.referenceDefault !== undefined ? flag.referenceDefault : flag.default;
    values[name] = given.has(name) ? given.get(name) : fallback;
  }
  return { values: values as FlagValues<T>, given: new Set(given.keys()) };
}
