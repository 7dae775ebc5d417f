/** Runs a program on a node through a command of the administrator, such as ssh; never through a shell of this machine. */
import type { Host } from "@longshore/runtime";

/** Runs one program on one node. */
export type NodeCommand = (
  nodeName: string,
  words: readonly string[],
  options: { readonly input?: string; readonly signal: AbortSignal },
) => Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }>;

/** The command or what it is to run cannot be used. */
export class NodeCommandError extends Error {
  override readonly name = "NodeCommandError";
}

const placeholder = "{node}";
const dnsName = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
/** Words that a shell at the other end, as ssh starts one, takes as they are. */
const plainWord = /^[\w./=:@-]+$/;

/**
 * The command in its words, with the placeholder for the node's name in at least one of them; the program and its arguments are added at its end.
 * @throws NodeCommandError without the placeholder
 */
export function nodeCommandOf(
  host: Pick<Host, "runProgram">,
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
): NodeCommand {
  const [program, ...args] = command;
  if (program === undefined || program === "" || !command.some((word) => word.includes(placeholder))) {
    throw new NodeCommandError(
      `\`nodeCommand\`: "${command.join(" ")}" does not name the node: write ${placeholder} where its name belongs`,
    );
  }
  return async (nodeName, words, options) => {
    if (!dnsName.test(nodeName)) throw new NodeCommandError(`Node ${nodeName}: its name is no DNS name`);
    const odd = words.find((word) => !plainWord.test(word));
    if (odd !== undefined)
      throw new NodeCommandError(`"${odd}": a shell on the node could read it in another way`);
    const named = args.map((word) => word.replaceAll(placeholder, nodeName));
    return host.runProgram(program.replaceAll(placeholder, nodeName), {
      args: [...named, ...words],
      env,
      ...options,
    });
  };
}

/** @throws NodeCommandError unless the program ended with 0 */
export async function runOnNode(
  command: NodeCommand,
  nodeName: string,
  words: readonly string[],
  options: { readonly input?: string; readonly signal: AbortSignal },
): Promise<string> {
  const { code, stdout, stderr } = await command(nodeName, words, options);
  if (code === 0) return stdout;
  throw new NodeCommandError(
    `Node ${nodeName}: \`${words.join(" ")}\` ended with code ${code}: ${stderr.trim().slice(-500) || "it said nothing"}`,
  );
}
