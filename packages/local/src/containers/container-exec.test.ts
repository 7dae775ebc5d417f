/** Programs on a real terminal, beside a container without a root of its own. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { identifyProcess, isAlive, type ProcessIdentity } from "../programs/process-identity.ts";
import { startExec } from "./container-exec.ts";
import type { ContainerConfig, ExecProcess } from "./pod-runtime.ts";
import { terminalFileText } from "./terminal.ts";

let dir: string;
let terminal: string;
let stop: AbortController;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "longshore-exec-"));
  terminal = join(dir, "terminal");
  stop = new AbortController();
  // From the sources, which Node alone does not run.
  const program = fileURLToPath(new URL("./terminal-program.ts", import.meta.url));
  const [tsx, first] = [import.meta.resolve("tsx"), terminalFileText().split("\n")[0]];
  writeFileSync(terminal, `${first}\nimport("${tsx}").then(() => import("${program}"));\n`, { mode: 0o700 });
});
afterEach(() => {
  stop.abort();
  rmSync(dir, { recursive: true, force: true });
});

function onTerminal(...argv: string[]) {
  const config: ContainerConfig = {
    podUID: "u",
    namespace: "default",
    podName: "p",
    containerName: "c",
    attempt: 0,
    quickRestarts: 0,
    argv: ["sleep"],
    env: { GREETING: "a 'b' \"c\" $d", SHELL: "/bin/false" },
    mounts: [],
    logFile: join(dir, "log"),
  };
  const request = { podUID: "u", containerName: "c", argv, tty: true, signal: stop.signal };
  const process_ = startExec({ config, isolated: false }, identityOf(process.pid), request, terminal);
  return { process: process_, screen: new Screen(process_) };
}

function identityOf(pid: number): ProcessIdentity {
  const identity = identifyProcess(pid);
  if (identity === undefined) throw new Error(`no process ${pid}`);
  return identity;
}

/** What the program has shown. */
class Screen {
  text = "";
  readonly #output: AsyncIterator<Uint8Array>;

  constructor({ stdout }: ExecProcess) {
    this.#output = stdout[Symbol.asyncIterator]();
  }

  async until(part: string): Promise<void> {
    while (!this.text.includes(part)) {
      const { done, value } = await this.#output.next();
      if (done === true) throw new Error(`"${part}" has not come: ${this.text}`);
      this.text += Buffer.from(value).toString();
    }
  }
}

test("what is asked is run as it stands, with the container's environment, and its exit code comes back", async () => {
  const script =
    'const { GREETING, SHELL, TERM } = process.env; console.log([process.stdin.isTTY, process.argv[1], GREETING, SHELL, TERM, "done"].join(" ")); process.exit(7)';
  const { process: program, screen } = onTerminal(process.execPath, "-e", script, "$(x); 'y'");
  await screen.until("done");
  expect(screen.text).toContain(`true $(x); 'y' a 'b' "c" $d /bin/false xterm done`);
  expect(await program.exitCode).toBe(7);
});

test("what is typed is shown and read, an interrupt reaches the program, and the end of input ends it", async () => {
  const { process: program, screen } = onTerminal(
    "sh",
    "-c",
    "trap 'echo interrupted' INT; echo ready; cat; echo \"left $?\"; cat",
  );
  await screen.until("ready");
  await program.write(Buffer.from("typed\n"));
  await screen.until("typed\r\ntyped\r\n");
  await program.write(Buffer.from([3]));
  await screen.until("interrupted");
  await screen.until("left 130");
  program.endInput();
  expect(await program.exitCode).toBe(0);
});

test("the program sees the size of the terminal, and its change", async () => {
  const script =
    'console.log("ready"); process.stdout.on("resize", () => console.log(process.stdout.columns + "x" + process.stdout.rows)); process.stdin.resume()';
  const { process: program, screen } = onTerminal(process.execPath, "-e", script);
  await screen.until("ready");
  program.resize?.({ columns: 100, rows: 40 });
  await screen.until("100x40");
  program.resize?.({ columns: 81, rows: 25 });
  await screen.until("81x25");
});

test("who goes away ends the program, also one that does not listen", async () => {
  const { process: program, screen } = onTerminal(
    "sh",
    "-c",
    "trap '' HUP TERM; echo \"pid $$.\"; while :; do sleep 0.1; done",
  );
  await screen.until(".");
  const pid = Number(/pid (\d+)/.exec(screen.text)?.[1]);
  const identity = identityOf(pid);
  stop.abort();
  expect(await program.exitCode).toBe(137);
  await expect.poll(() => isAlive(identity), { timeout: 10_000 }).toBe(false);
});

test("a program that is not there is 127", async () => {
  const { process: program, screen } = onTerminal("no-such-program");
  await screen.until("cannot start no-such-program");
  expect(await program.exitCode).toBe(127);
});

test("a node whose path no first line can hold is refused by name", () => {
  expect(() => terminalFileText("/a b/node")).toThrow('"/a b/node"');
});
