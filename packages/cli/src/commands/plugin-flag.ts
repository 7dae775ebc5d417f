/** The flag that names in-tree plugins. */
import { clusterPlugins, everyPlugin } from "@longshore/local";
import { Option } from "commander";
import { repeated } from "../flags.ts";

const names: readonly string[] = clusterPlugins.map(({ name }) => name);

/** `--plugin` for one plugin. Also takes its in-tree name, and that of its driver. */
export function onePluginOption(description: string): Option {
  return withChoices(new Option("--plugin <name>", description), names);
}

/** `--plugin` for several: it may be repeated, and `all` stands for all of them. */
export function pluginsOption(description: string): Option {
  const option = new Option("--plugin <name>", `${description}; may be repeated`).argParser(repeated);
  return withChoices(option, [...names, everyPlugin]);
}

/** Not by `choices`, which would refuse the other names of a plugin; help and completion show them nevertheless. */
function withChoices(option: Option, choices: readonly string[]): Option {
  option.argChoices = [...choices];
  return option;
}
