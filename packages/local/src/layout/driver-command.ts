/**
 * The command of the user's own driver: one process for the controller and one on each node, or on the nodes alone. What differs
 * from place to place stands in braces and is filled in.
 */
import type { ClusterConfig } from "./cluster-config.ts";
import type { ClusterLayout } from "./cluster-layout.ts";

/** Where the controller service runs; a node's place is named after the node. */
export const controllerPlace = "controller";

/** Where the user's own driver runs; nowhere in a cluster without one. */
export function ownDriverPlaces({
  nodes,
  ownDriver,
}: Pick<ClusterConfig, "nodes" | "ownDriver">): readonly string[] {
  if (ownDriver === undefined) return [];
  const names = nodes.map(({ name }) => name);
  return ownDriver.nodeDeployment === true ? names : [controllerPlace, ...names];
}

/** The command cannot be used: which part, and what to do. */
export class DriverCommandError extends Error {
  override readonly name = "DriverCommandError";
}

/** What may stand in braces, and what it is. */
export const driverPlaceholders: Readonly<Record<string, string>> = {
  endpoint: "unix:// and the socket on which the driver must listen",
  services: "controller, or node; all where each node makes its own volumes",
  node: "name of the node; the word controller for the controller",
  "node-id": "the node's id at the provider; the word controller for the controller",
  zone: "the node's zone; that of the first node for the controller",
  "state-dir": "directory for the driver's state, the same at all places",
};

/** The words of a command line: split at blanks, `"…"` and `'…'` hold them together. No shell is involved. */
export function commandWords(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (const character of text) {
    if (quote !== "") {
      if (character === quote) quote = "";
      else word += character;
    } else if (character === '"' || character === "'") {
      quote = character;
      word ??= "";
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + character;
  }
  if (quote !== "") throw new DriverCommandError(`the driver's command has a ${quote} that is not closed`);
  if (word !== undefined) words.push(word);
  return words;
}

/** A text of which {@link commandWords} makes these words. */
export function commandText(words: readonly string[]): string {
  return words.map((word) => `"${word.replaceAll('"', `"'"'"`)}"`).join(" ");
}

/** What each placeholder stands for at a place. */
export function driverValues(
  config: ClusterConfig,
  layout: ClusterLayout,
  place: string,
): Readonly<Record<string, string>> {
  const node = config.nodes.find(({ name }) => name === place);
  return {
    endpoint: `unix://${layout.ownDriverSocket(place)}`,
    services: servicesAt(node, config),
    node: node?.name ?? controllerPlace,
    "node-id": node?.instanceId ?? controllerPlace,
    zone: (node ?? config.nodes[0])?.zone ?? "",
    "state-dir": layout.ownDriverDir,
  };
}

function servicesAt(node: ClusterConfig["nodes"][number] | undefined, { ownDriver }: ClusterConfig): string {
  if (node === undefined) return "controller";
  return ownDriver?.nodeDeployment === true ? "all" : "node";
}

/** The command at a place. @throws DriverCommandError for a placeholder that is none, or a command without `{endpoint}` */
export function driverArgv(
  command: readonly string[],
  values: Readonly<Record<string, string>>,
): readonly string[] {
  const known = Object.keys(driverPlaceholders);
  let listens = false;
  const argv = command.map((word) =>
    word.replace(/\{([a-z-]+)\}/g, (_, name: string) => {
      const value = values[name];
      if (value === undefined) {
        throw new DriverCommandError(
          `{${name}} in the driver's command is not known: there are ${known.map((k) => `{${k}}`).join(", ")}`,
        );
      }
      if (name === "endpoint") listens = true;
      return value;
    }),
  );
  if (argv.length === 0) throw new DriverCommandError("the driver's command is empty: name its program");
  if (!listens) {
    throw new DriverCommandError(
      "the driver's command does not say where to listen: put {endpoint} where the driver takes its CSI endpoint",
    );
  }
  return argv;
}
