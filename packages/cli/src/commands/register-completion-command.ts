/** `longshore completion bash|zsh|fish`: completion scripts made from the command's own tree. */
import { Argument, type Command } from "commander";
import type { ClusterNames } from "./register-complete-command.ts";

const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

/** Adds the verb. */
export function registerCompletionCommand(program: Command): void {
  program
    .command("completion")
    .description("print a completion script: source <(longshore completion bash)")
    .addArgument(new Argument("<shell>").choices(shells))
    .action((shell: Shell) => {
      process.stdout.write(completionScript(program, shell));
    });
}

/** What can follow one command. */
interface Place {
  /** The sub-commands that lead to it, e.g. `["cluster", "up"]`; empty for the command itself. */
  readonly path: readonly string[];
  readonly verbs: readonly { readonly name: string; readonly description: string }[];
  /** Words that its first argument may be. */
  readonly choices: readonly string[];
  /** What of the cluster its first argument names. */
  readonly names: ClusterNames | undefined;
  readonly options: readonly {
    readonly long: string;
    readonly description: string;
    readonly takesValue: boolean;
    /** Words that its value may be; none: anything. */
    readonly choices: readonly string[];
    /** What of the cluster its value names. */
    readonly names: ClusterNames | undefined;
  }[];
}

/** The script for a shell. */
export function completionScript(program: Command, shell: Shell): string {
  const places = placesOf(program, []);
  return shell === "fish" ? fishScript(places) : bashScript(places, shell);
}

function placesOf(command: Command, path: readonly string[]): Place[] {
  const below = shownBelow(command);
  const verbs = below.map((verb) => ({ name: verb.name(), description: verb.description() }));
  const options = command.options.flatMap(
    ({ hidden, long, description, required, optional, flags, argChoices = [] }) =>
      hidden || long == null
        ? []
        : {
            long,
            description,
            takesValue: required || optional,
            choices: argChoices.filter(isWord),
            names: namesFor(/[<[](\w+)/.exec(flags)?.[1]),
          },
  );
  const [argument] = command.registeredArguments;
  const choices = argument?.argChoices ?? [];
  return [
    { path, verbs, options, choices, names: namesFor(argument?.name()) },
    ...below.flatMap((verb) => placesOf(verb, [...path, verb.name()])),
  ];
}

/** The verbs below a command that its help shows, but for that of help itself. */
export function shownBelow(command: Command): readonly Command[] {
  const shown = new Set(command.createHelp().visibleCommands(command));
  return command.commands.filter((verb) => shown.has(verb) && verb.name() !== "help");
}

/** What is called so in help names something that the cluster can be asked for. */
function namesFor(placeholder: string | undefined): ClusterNames | undefined {
  const named: Readonly<Record<string, ClusterNames>> = {
    node: "nodes",
    namespace: "namespaces",
    pv: "persistentVolumes",
    code: "codes",
  };
  return placeholder === undefined ? undefined : named[placeholder];
}

/** The words of the cluster, asked for as the line is typed. */
const asked = (names: ClusterNames) =>
  `$(longshore complete ${names} -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)`;

/**
 * After an option with known values these are offered, or the cluster's own names; after another that takes a value nothing: the shell
 * completes a file name.
 */
function bashScript(places: readonly Place[], shell: "bash" | "zsh"): string {
  const known = places.filter((p) => p.path.length > 0).map((p) => `"${p.path.join(" ")}"`);
  const valued = places.flatMap((p) =>
    p.options
      .filter((o) => o.takesValue && o.choices.length === 0 && o.names === undefined)
      .map((o) => `"${[...p.path, o.long].join(" ")}"`),
  );
  const cases = places.map(({ path, verbs, choices, options, names }) => {
    const words = [...verbs.map((v) => v.name), ...choices, ...options.map((o) => o.long), "--help"];
    // The cluster is asked only where a name can be meant.
    const more = names === undefined ? "" : ` [[ "$cur" == -* ]] || words="${asked(names)} $words"`;
    return `    "${path.join(" ")}") words="${words.join(" ")}"${more === "" ? "" : `;${more}`} ;;`;
  });
  const chosen = places.flatMap((p) =>
    p.options
      .filter((o) => o.choices.length > 0 || o.names !== undefined)
      .map((o) => {
        const words = o.names === undefined ? o.choices.join(" ") : asked(o.names);
        return `    "${[...p.path, o.long].join(" ")}") words="${words}" ;;`;
      }),
  );
  const zsh = shell === "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "";
  return `${zsh}_longshore() {
  local place="" word="" last="" words="" cur="\${COMP_WORDS[COMP_CWORD]}"
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    last="$word"
    case "\${place:+$place }$word" in
      ${known.join("|")}) place="\${place:+$place }$word" ;;
    esac
  done
  case "\${place:+$place }$last" in
    ${valued.join("|")}) return ;;
  esac
  case "$place" in
${cases.join("\n")}
  esac
  case "\${place:+$place }$last" in
${chosen.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _longshore longshore
`;
}

function fishScript(places: readonly Place[]): string {
  const ask = (names: ClusterNames) =>
    quoted(`(longshore complete ${names} -- (commandline -opc)[2..-1] 2>/dev/null)`);
  const lines = places.flatMap(({ path, verbs, choices, options, names }) => {
    const seen = path.map((name) => `__fish_seen_subcommand_from ${name}`);
    const notDeeper =
      verbs.length === 0 ? [] : [`not __fish_seen_subcommand_from ${verbs.map((v) => v.name).join(" ")}`];
    const condition = [...seen, ...notDeeper].join("; and ");
    const start = `complete -c longshore -n '${condition}'`;
    return [
      ...verbs.map((v) => `${start} -f -a ${v.name} -d ${quoted(v.description)}`),
      ...choices.map((choice) => `${start} -f -a ${choice}`),
      ...(names === undefined ? [] : [`${start} -f -a ${ask(names)}`]),
      ...options.map((o) => `${start} -l ${o.long.slice(2)}${valuesOf(o, ask)} -d ${quoted(o.description)}`),
    ];
  });
  return `${lines.join("\n")}\n`;
}

/** That an option takes a value, and which words are offered for it. */
function valuesOf(
  { takesValue, choices, names }: Place["options"][number],
  ask: (names: ClusterNames) => string,
): string {
  if (!takesValue) return "";
  if (names !== undefined) return ` -x -a ${ask(names)}`;
  return choices.length === 0 ? " -r" : ` -x -a ${quoted(choices.join(" "))}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

/** What shells can offer as it is. */
function isWord(choice: string): boolean {
  return !choice.includes(" ");
}
