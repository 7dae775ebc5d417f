/** `longshore completion bash|zsh|fish`: completion scripts made from the command's own tree. */
import { Argument, type Command } from "commander";

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

/** The script for a shell. */
export function completionScript(program: Command, shell: Shell): string {
  const words = new Map<string, readonly string[]>();
  collect(program, [], words);
  return shell === "fish" ? fishScript(words) : bashScript(words, shell);
}

/** Every command path with the sub-commands and options that can follow it. */
function collect(command: Command, path: readonly string[], words: Map<string, readonly string[]>): void {
  const options = command.options.filter((o) => !o.hidden && o.long != null).map((o) => o.long as string);
  words.set(path.join(" "), [...command.commands.map((c) => c.name()), ...options, "--help"]);
  for (const child of command.commands) collect(child, [...path, child.name()], words);
}

function bashScript(words: ReadonlyMap<string, readonly string[]>, shell: "bash" | "zsh"): string {
  const cases = [...words].map(([path, next]) => `    "${path}") words="${next.join(" ")}" ;;`).join("\n");
  const zsh = shell === "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "";
  return `${zsh}_longshore() {
  local path="" word words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) path="\${path:+$path }$word" ;; esac
  done
  case "$path" in
${cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _longshore longshore
`;
}

function fishScript(words: ReadonlyMap<string, readonly string[]>): string {
  const lines = [...words].flatMap(([path, next]) => {
    const condition =
      path === "" ? "__fish_use_subcommand" : `__fish_seen_subcommand_from ${path.split(" ").at(-1)}`;
    return next.map((word) =>
      word.startsWith("--")
        ? `complete -c longshore -n "${condition}" -l ${word.slice(2)}`
        : `complete -c longshore -f -n "${condition}" -a ${word}`,
    );
  });
  return `${lines.join("\n")}\n`;
}
