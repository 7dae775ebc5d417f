/** Does what a reader of a playbook does: types its commands one after the other, and compares what comes. */
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { shellWord } from "@longshore/runtime";
import { filledCommand, outputMismatch, playbookSteps } from "./playbook.ts";
import { longshoreCommand } from "./test-cluster.ts";

/** Where playbooks are. */
export const playbookDirectory = fileURLToPath(new URL("../../../docs/playbooks/", import.meta.url));

/** Longest that one command may take, in milliseconds: those that wait have limits of their own below it. */
const commandWithinMs = 90_000;

/** What the reader has before them. */
export interface ReaderDesk {
  /** A directory for the reader's files, in which the commands are typed; `bin` below it is made. */
  readonly dir: string;
  /** The program kubectl. */
  readonly kubectl: string;
  readonly kubeconfig: string;
  /** `XDG_STATE_HOME`, so that `longshore` finds its local cluster without being given a directory. */
  readonly stateHome: string;
  /** The kubelet's root directory on the node that the pages look at. */
  readonly kubeletDir: string;
  /** The data directory of the API server. */
  readonly apiData: string;
}

/** A reader at a desk. */
export interface PlaybookReader {
  /**
   * Does everything that the page says, and resolves with the number of its commands.
   * @param onSection called before the first command below each heading
   * @throws Error with line, command and output where that is not what the page says, or a command fails
   */
  follow(page: string, onSection?: (title: string) => Promise<void> | void): Promise<number>;
  /** Types a command that is on no page, which must succeed; resolves with what it prints. */
  type(command: string): Promise<string>;
}

/** Seats a reader. */
export function playbookReader({
  dir,
  kubectl,
  kubeconfig,
  stateHome,
  kubeletDir,
  apiData,
}: ReaderDesk): PlaybookReader {
  const bin = join(dir, "bin");
  mkdirSync(bin, { recursive: true });
  const longshore = join(bin, "longshore");
  writeFileSync(longshore, `#!/bin/sh\nexec ${longshoreCommand.map(shellWord).join(" ")} "$@"\n`);
  chmodSync(longshore, 0o755);
  const { PATH = "" } = process.env;
  const env = {
    PATH: `${bin}:${dirname(kubectl)}:${PATH}`,
    HOME: dir,
    KUBECONFIG: kubeconfig,
    XDG_STATE_HOME: stateHome,
    KUBELET_DIR: kubeletDir,
    API_DATA: apiData,
  };
  return {
    async follow(page, onSection) {
      let section: string | undefined;
      const values = new Map<string, string>();
      const steps = playbookSteps(readFileSync(join(playbookDirectory, page), "utf8"));
      for (const step of steps) {
        if (step.section !== section) {
          section = step.section;
          await onSection?.(section);
        }
        const command = filledCommand(step, values);
        const { output, code } = await typed(command, dir, env);
        const mismatch =
          code === 0 ? outputMismatch(step.expected, output, values) : `it ended with ${code ?? "a signal"}`;
        if (mismatch !== undefined) {
          throw new Error(`${page}:${step.line}: ${mismatch}\n$ ${command}\n${output}`);
        }
      }
      return steps.length;
    },
    async type(command) {
      const { output, code } = await typed(command, dir, env);
      if (code !== 0) throw new Error(`$ ${command} ended with ${code ?? "a signal"}:\n${output}`);
      return output;
    },
  };
}

/** Runs the command in the shell of a reader, who sees standard output and error together. */
function typed(
  command: string,
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly output: string; readonly code: number | null }> {
  const child = spawn("bash", ["-c", `exec 2>&1\n${command}`], {
    cwd,
    env,
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const timer = setTimeout(() => {
    output += `\n(not done after ${commandWithinMs / 1000} s)`;
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  }, commandWithinMs);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ output, code });
    });
  });
}
