/** The commands of a guide, as a reader would type them: every line of its `sh` blocks, in order. */
import { spawn } from "node:child_process";
import { once } from "node:events";

/** Blocks of code of one language, in order. */
export function blocksOf(guide: string, language: string): readonly string[] {
  return [...guide.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, name, text = ""]) =>
    name === language ? [text] : [],
  );
}

/** The commands of a guide, one a line. */
export function commandsOf(guide: string): readonly string[] {
  return blocksOf(guide, "sh").flatMap((block) => block.split("\n").filter((line) => line !== ""));
}

/** How a command ended. */
export interface CommandOutcome {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Where and how commands run. */
export interface CommandPlace {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Runs one command in a shell; a failure of any program of a pipe is one of the command.
 * @param untilOutput where it is given, the command is one that goes on: it is sent Ctrl-C once what it printed matches
 */
export async function runGuideCommand(
  command: string,
  { cwd, env }: CommandPlace,
  untilOutput?: RegExp,
): Promise<CommandOutcome> {
  // A group of its own, so that Ctrl-C reaches every program as it does in a terminal.
  const child = spawn("bash", ["-o", "pipefail", "-c", command], {
    cwd,
    env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  let isAsked = false;
  const look = () => {
    if (untilOutput === undefined || isAsked || !untilOutput.test(out)) return;
    isAsked = true;
    process.kill(-(child.pid as number), "SIGINT");
  };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
    look();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, out, err };
}
