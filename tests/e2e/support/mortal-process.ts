/** Processes with a component in them that can be killed at any point, from bundles of the sources. */
import { type ChildProcess, fork } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { NthCall, Side } from "@longshore/testing/kube";
import { build } from "esbuild";
import type { Answer, MigrationSurroundings, Order, Surroundings } from "./mortal-program.ts";

const program = fileURLToPath(new URL("./mortal-program.ts", import.meta.url));
const cache = fileURLToPath(new URL("../../../node_modules/.cache/", import.meta.url));
const tsconfig = fileURLToPath(new URL("../../../tsconfig.tests.json", import.meta.url));
/** Modules in CommonJS form can be loaded from a bundle in ESM form only with this. */
const requireForBundle =
  'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);';

/** Makes processes; a spare one is always warm. */
export class MortalProcesses {
  readonly #directory: string;
  readonly #children = new Set<ChildProcess>();
  #spare: Promise<MortalProcess>;

  private constructor(directory: string) {
    this.#directory = directory;
    this.#spare = this.#spawn();
  }

  /** Bundles the program. */
  static async prepare(): Promise<MortalProcesses> {
    // Below the repository: the bundle finds libraries there that are loaded when they are needed.
    await mkdir(cache, { recursive: true });
    const directory = await mkdtemp(join(cache, "ls-mortal-"));
    await build({
      entryPoints: [program],
      outfile: join(directory, "program.mjs"),
      bundle: true,
      platform: "node",
      format: "esm",
      tsconfig,
      banner: { js: requireForBundle },
    });
    return new MortalProcesses(directory);
  }

  /** A process that waits for its first life. */
  take(): Promise<MortalProcess> {
    const next = this.#spare;
    this.#spare = this.#spawn();
    return next;
  }

  /** Ends every process that is left. */
  async stop(): Promise<void> {
    await this.#spare;
    for (const child of this.#children) child.kill("SIGKILL");
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #spawn(): Promise<MortalProcess> {
    const child = fork(join(this.#directory, "program.mjs"), {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#children.add(child);
    child.on("exit", () => this.#children.delete(child));
    const process = new MortalProcess(child);
    await process.answered("ready");
    return process;
  }
}

/** One process, which lives one life after the other until one is ended by force. */
export class MortalProcess {
  readonly #child: ChildProcess;
  /** Resolves with the signal that ended the process. */
  readonly killed: Promise<NodeJS.Signals | null>;

  constructor(child: ChildProcess) {
    this.#child = child;
    this.killed = new Promise((resolve) => child.once("exit", (_, by) => resolve(by)));
  }

  /** Ends the process, if it still runs. */
  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Begins a life, which ends at that call if one is given. */
  async live(
    surroundings: Surroundings | MigrationSurroundings,
    diesAt?: NthCall,
    side?: Side,
  ): Promise<void> {
    const point = diesAt === undefined ? {} : { diesAt, ...(side === undefined ? {} : { side }) };
    this.#send({ kind: "live", ...surroundings, ...point });
    // It may die before it can say so.
    await Promise.race([this.answered("living"), this.killed]);
  }

  /** Ends a life without a kill; returns its calls. */
  async end(): Promise<readonly string[]> {
    this.#send({ kind: "end" });
    const { calls } = await this.answered("ended");
    return calls;
  }

  /** Waits for an answer of this kind. */
  answered<K extends Answer["kind"]>(kind: K): Promise<Extract<Answer, { readonly kind: K }>> {
    return new Promise((resolve) => {
      const listen = (answer: Answer) => {
        if (answer.kind !== kind) return;
        this.#child.off("message", listen);
        resolve(answer as Extract<Answer, { readonly kind: K }>);
      };
      this.#child.on("message", listen);
    });
  }

  #send(order: Order): void {
    this.#child.send(order);
  }
}
