/** An embedded API server and a kubectl of one version that talks to it. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type RunningApiServer, runApiServer } from "../../../packages/apiserver/src/index.ts";
import { realEnv } from "../../../packages/apiserver/src/testing/serve.ts";

const run = promisify(execFile);
const script = new URL("../../../scripts/kubectl.sh", import.meta.url).pathname;

/** Versions of kubectl that are tried, each with the version that its server shows. */
export const kubectlVersions = [
  ["1.20", "1.20"],
  ["1.32", "1.36"],
] as const;

/** The program of that version, or undefined (with a line that says so) where it is not available. */
export async function kubectlOf(version: string): Promise<string | undefined> {
  try {
    return (await run(script, [version])).stdout.trim();
  } catch (error) {
    console.warn(`kubectl ${version} is not to be had, its tests are skipped: ${(error as Error).message}`);
    return undefined;
  }
}

/** What a command printed, and how it ended. */
export interface Ran {
  readonly out: string;
  readonly err: string;
  readonly code: number;
}

/** A watch that is under way. */
export interface Watching {
  /** Resolves once what was printed matches. */
  has(pattern: RegExp): Promise<void>;
  stop(): void;
}

/** An embedded API server with a kubectl of one version. */
export class Kubectl {
  readonly #program: string;
  readonly #server: RunningApiServer;
  readonly #children: ChildProcess[] = [];
  /** Everything of the server and the client on disk; kubectl's home, since it caches what it discovers. */
  readonly directory: string;
  readonly kubeconfig: string;

  private constructor(program: string, server: RunningApiServer, directory: string) {
    this.#program = program;
    this.#server = server;
    this.directory = directory;
    this.kubeconfig = join(directory, "kubeconfig");
  }

  /** Starts a server of that version in a directory of its own. */
  static async start(program: string, emulatedVersion: string): Promise<Kubectl> {
    const directory = await mkdtemp(join(tmpdir(), "kubectl-"));
    const server = await runApiServer(realEnv, {
      dataDir: join(directory, "data"),
      port: 0,
      kubeconfigOut: join(directory, "kubeconfig"),
      emulatedVersion,
    });
    return new Kubectl(program, server, directory);
  }

  async stop(): Promise<void> {
    for (const child of this.#children) child.kill("SIGKILL");
    await this.#server.stop();
    await rm(this.directory, { recursive: true });
  }

  #env(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
    const { PATH = "" } = process.env;
    return { PATH, HOME: this.directory, KUBECONFIG: this.kubeconfig, ...more };
  }

  /** Runs a command to its end, however it ends. */
  async ran(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
    try {
      const { stdout, stderr } = await run(this.#program, [...args], { env: this.#env(env) });
      return { out: stdout, err: stderr, code: 0 };
    } catch (error) {
      const { stdout = "", stderr = "", code } = error as { stdout?: string; stderr?: string; code?: number };
      return { out: stdout, err: stderr, code: typeof code === "number" ? code : 1 };
    }
  }

  /** What a command prints that succeeds. */
  async run(...args: readonly string[]): Promise<string> {
    const { out, err, code } = await this.ran(args);
    if (code !== 0) throw new Error(`kubectl ${args.join(" ")} ended with ${code}: ${err}`);
    return out;
  }

  /** What a command says that fails. */
  async refused(...args: readonly string[]): Promise<string> {
    const { out, err, code } = await this.ran(args);
    return code === 0 ? `not refused: ${out}` : err;
  }

  /** A file in kubectl's home. */
  async file(name: string, text: string): Promise<string> {
    const path = join(this.directory, name);
    await writeFile(path, text);
    return path;
  }

  /** A program in kubectl's home, for the shell of POSIX. */
  async program(name: string, text: string): Promise<string> {
    const path = await this.file(name, `#!/bin/sh\n${text}\n`);
    await chmod(path, 0o755);
    return path;
  }

  /** Starts a command that goes on. */
  watch(...args: readonly string[]): Watching {
    const child = spawn(this.#program, [...args], { env: this.#env() });
    this.#children.push(child);
    let text = "";
    child.stdout.on("data", (chunk) => {
      text += chunk;
    });
    return {
      has: (pattern) =>
        new Promise((resolve) => {
          const look = () => {
            if (!pattern.test(text)) return;
            child.stdout.off("data", look);
            resolve();
          };
          child.stdout.on("data", look);
          look();
        }),
      stop: () => child.kill(),
    };
  }
}
